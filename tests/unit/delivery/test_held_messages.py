"""Whose messages a worker holds, and who is a crowd."""

from app.delivery.messages.claims import NO_CROWD, Claimed, Crowd
from app.delivery.messages.values import Priority
from app.delivery.sending.held_messages import HeldMessages
from app.foundation.clock import FakeClock
from tests.support.delivery import claimed


def to(recipient: str, number: int, priority: Priority = Priority.NORMAL) -> list[Claimed]:
    return [claimed(FakeClock(), recipient=recipient, priority=priority) for _ in range(number)]


def test_recipient_with_a_twentieth_of_the_room_is_a_crowd() -> None:
    held = HeldMessages()
    held.add([*to("user:1", 4), *to("user:2", 5)])
    assert held.crowd(capacity=100) == Crowd(["user:2"], [Priority.NORMAL])
    held.remove(to("user:2", 1))
    assert held.crowd(capacity=100) is NO_CROWD
    assert held.crowd(capacity=10).recipients == ["user:1", "user:2"], "in a small memory one is enough"


def test_crowds_of_two_priorities_are_named_with_the_highest_first() -> None:
    held = HeldMessages()
    held.add([*to("user:1", 2, Priority.LOW), *to("user:1", 2, Priority.URGENT)])
    assert held.crowd(capacity=40).priorities == [Priority.URGENT, Priority.LOW]


def test_what_is_recorded_makes_room() -> None:
    held = HeldMessages()
    held.add(to("user:1", 3))
    assert held.room(capacity=4) == 1
    held.remove(to("user:1", 3))
    assert (held.room(capacity=4), held.crowd(capacity=4)) == (4, NO_CROWD)
