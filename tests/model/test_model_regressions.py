"""Minimal sequences that the model found: the service handled them wrongly once, or would without one of its lines."""

from uuid import UUID

import pytest

from app.matching import availability, deeds
from app.matching.cascade import Lists
from app.matching.contract import NewTask
from app.matching.follow_up import FollowUp
from app.matching.store.records import Pick
from app.matching.store.stores import Store
from app.users.models import Caller
from tests.model.worlds import World, open_world
from tests.support.press_alone import press_alone

world = pytest.fixture(open_world)


def press(world: World, elder: Caller) -> UUID:
    return world.matching.press(elder, NewTask(elder.id)).task.id


def asked(world: World, task_id: UUID) -> int | None:
    with world.stores.reading() as store:
        live = store.live_offers([task_id]).get(task_id, [])
    return live[0].student_id if live else None


@pytest.mark.parametrize("metres", [0, -700])
def test_no_task_waits_for_an_asked_student_who_walks_too_far_away(world: World, metres: float) -> None:
    """The student stays near enough for the task with the live offer, or not; for the waiting task it is too far."""
    asking, waiting = world.elder(907), world.elder(1907)
    student = world.student(991)
    first, second = press(world, asking), press(world, waiting)
    assert (asked(world, first), asked(world, second)) == (student.id, None)
    world.matching.set_location(student.id, world.spot(metres))
    assert world.snapshot().tasks[second].status == "TIMED_OUT", "at once, not at the deadline of the other offer"
    assert asked(world, first) == (student.id if metres == 0 else None)


def test_the_oldest_task_chooses_first_even_without_its_list(world: World) -> None:
    elders = [world.elder(7) for _ in range(3)]
    leaves, stays = world.student(0), world.student(0)
    oldest, middle = press(world, elders[0]), press(world, elders[1])
    world.matching.set_availability(leaves, False)
    world.lose_lists()
    youngest = press(world, elders[2])
    assert [asked(world, task_id) for task_id in (oldest, middle, youngest)] == [None, stays.id, None]
    world.pass_time(601)
    world.matching.runner.advance([oldest, middle, youngest])
    assert [asked(world, task_id) for task_id in (oldest, middle, youngest)] == [stays.id, None, None]


def test_a_student_who_goes_off_duty_while_a_matcher_chooses_is_not_asked(world: World) -> None:
    elder, near, far = world.elder(7), world.student(0), world.student(100)
    with world.stores.transaction() as store:
        task_id, _ = press_alone(store, elder, world.rules)
    world.stores.interruption = lambda store: availability.set_availability(store, near.id, False)
    world.matching.runner.advance([task_id])
    assert world.stores.follow_up is not None, "the student must leave during the transaction of the offer"
    assert asked(world, task_id) == far.id
    assert [(offer.student_id, offer.reason) for offer in world.snapshot().offers if offer.state == "SKIPPED"] == [
        (near.id, "OFF_DUTY")
    ]


def test_a_student_who_goes_off_duty_during_a_press_is_not_asked(world: World) -> None:
    """The press is tried again, so the list is ranked without the student."""
    elder, near, far = world.elder(7), world.student(0), world.student(100)
    world.stores.interruption = lambda store: availability.set_availability(store, near.id, False)
    task_id = press(world, elder)
    assert world.stores.follow_up is not None, "the student must leave during the transaction of the press"
    assert asked(world, task_id) == far.id
    assert [offer.student_id for offer in world.snapshot().offers] == [far.id]


def test_a_student_whom_another_task_asks_during_a_press_is_passed_over(world: World) -> None:
    elder, other = world.elder(7), world.elder(7)
    near, far = world.student(0), world.student(100)
    with world.stores.transaction() as store:
        first, _ = press_alone(store, other, world.rules)
    world.stores.before = "make_task"

    def ask(store: Store) -> FollowUp:
        assert store.insert_offers([Pick(first, near.id, 1, 0, 0.0)], world.rules.offer_ttl)
        return FollowUp()

    # The press holds the lock of the student by then, as whoever asks does otherwise.
    world.stores.interruption = ask
    second = press(world, elder)
    assert (asked(world, first), asked(world, second)) == (near.id, far.id)
    assert world.snapshot().tasks[second].asked == 1


def test_a_press_that_is_overtaken_again_and_again_makes_its_offer_after_its_commit(world: World) -> None:
    elder, student = world.elder(7), world.student(0)
    world.stores.before = "lock_students"

    def move(store: Store) -> FollowUp:
        world.stores.interruption = move
        return availability.set_location(store, student.id, world.spot(1), world.rules)

    world.stores.interruption = move
    assert asked(world, press(world, elder)) == student.id


def test_a_student_who_is_freed_while_a_task_decides_to_wait_is_asked_at_once(world: World) -> None:
    """The process that freed the student saw no waiting task, so the task must check once more."""
    asking, waits = world.elder(7), world.elder(7)
    student = world.student(0)
    first = press(world, asking)
    world.stores.interruption = lambda store: deeds.reject(store, student, first, Lists({}), world.rules)
    world.stores.before = "save_progress"
    second = press(world, waits)
    assert world.stores.follow_up is not None, "the student must be freed before the waiting is committed"
    assert asked(world, second) == student.id
