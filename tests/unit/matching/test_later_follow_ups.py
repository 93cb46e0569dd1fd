"""Follow-ups that are carried out beside the requests."""

import threading
from collections.abc import Iterator

import pytest

from app.foundation.errors import Unavailable
from app.matching.follow_up import FollowUp
from app.matching.later_follow_ups import LaterFollowUps

PATIENCE_S = 30.0


def freeing(*student_ids: int) -> FollowUp:
    return FollowUp(freed=frozenset(student_ids))


class Recorded:
    """Keeps what it carries out. The first one waits for `go_on`."""

    def __init__(self, *errors: Exception) -> None:
        self.done: list[frozenset[int]] = []
        self.began, self.go_on = threading.Event(), threading.Event()
        self._errors = list(errors)

    def __call__(self, follow_up: FollowUp) -> None:
        self.began.set()
        assert self.go_on.wait(PATIENCE_S)
        self.done.append(follow_up.freed)
        if self._errors:
            raise self._errors.pop(0)


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def later(recorded: Recorded) -> Iterator[LaterFollowUps]:
    later = LaterFollowUps(recorded)
    later.start()
    yield later
    recorded.go_on.set()
    later.close()


def test_follow_ups_that_come_meanwhile_are_carried_out_together(recorded: Recorded, later: LaterFollowUps) -> None:
    later.add(freeing(1))
    assert recorded.began.wait(PATIENCE_S)
    later.add(freeing(2))
    later.add(freeing(3))
    recorded.go_on.set()
    later.close()
    assert recorded.done == [{1}, {2, 3}]


def test_closing_carries_out_what_waits(recorded: Recorded, later: LaterFollowUps) -> None:
    recorded.go_on.set()
    for number in range(250):
        later.add(freeing(number))
    later.close()
    assert frozenset().union(*recorded.done) == set(range(250))


def test_without_a_thread_it_is_carried_out_at_once() -> None:
    recorded = Recorded()
    recorded.go_on.set()
    LaterFollowUps(recorded).add(freeing(1))
    assert recorded.done == [{1}]


@pytest.mark.parametrize("error", [Unavailable("down"), ValueError("a fault of ours")])
def test_after_an_error_the_next_ones_are_carried_out(error: Exception) -> None:
    recorded = Recorded(error)
    later = LaterFollowUps(recorded)
    later.start()
    later.add(freeing(1))
    assert recorded.began.wait(PATIENCE_S)
    later.add(freeing(2))
    recorded.go_on.set()
    later.close()
    assert recorded.done == [{1}, {2}]
