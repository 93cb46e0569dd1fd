"""Deeds of coordinators: assign, move on, release."""

import pytest

from app.foundation.errors import InvalidValue
from app.foundation.ids import uuid7
from app.matching.rules.errors import NotAssigned, OfferReleased, OfferWithdrawn, StudentUnavailable, TaskNotFound
from app.matching.rules.states import IllegalTaskTransition
from tests.support.matching import Neighbourhood


@pytest.fixture
def coordinator(town: Neighbourhood):
    return town.coordinator()


def test_assign_withdraws_the_live_offer_to_another_student(town: Neighbourhood, coordinator) -> None:
    elder, ali, banu = town.elder(), town.student(10), town.student(20, "Banu Ak")
    task_id = town.press(elder)
    view = town.matching.assign(coordinator, task_id, banu.id)
    assert (view.status, view.student and view.student.id) == ("ASSIGNED", banu.id)
    assert town.states(task_id) == [
        (ali.id, "WITHDRAWN", "ASSIGNED_BY_HAND"),
        (banu.id, "ACCEPTED", "ASSIGNED_BY_HAND"),
    ]
    assert [(row.kind, row.status) for row in town.told(ali)] == [
        ("OFFER", "CANCELLED"),
        ("OFFER_WITHDRAWN", "ACCEPTED"),
    ]
    assert town.bodies(banu) == ["Koordinatör size bir görev verdi: Ayşe sizi bekliyor."]
    assert town.bodies(elder) == ["Banu yola çıktı!"]
    assert [view.rank for view in town.offers(task_id)] == [1, 2]
    with pytest.raises(OfferWithdrawn):
        town.matching.accept(ali, task_id)
    town.matching.assign(coordinator, task_id, banu.id)
    assert len(town.told(banu)) == 1, "the second assignment had an effect"


def test_assign_to_the_student_with_the_live_offer(town: Neighbourhood, coordinator) -> None:
    ali = town.student(10)
    task_id = town.press()
    town.matching.assign(coordinator, task_id, ali.id)
    assert town.states(task_id) == [(ali.id, "ACCEPTED", "ASSIGNED_BY_HAND")]
    assert town.matching.accept(ali, task_id).status == "ASSIGNED", "accept after the assignment had an effect"
    assert town.matching.current_offer(ali) is None


def test_assign_withdraws_the_students_offer_for_another_task(town: Neighbourhood, coordinator) -> None:
    ali, banu, can = town.students(10, 20, 30)
    elsewhere = town.press(town.elder("Hatice Demir"))
    task_id = town.press()
    assert (town.asked(elsewhere), town.asked(task_id)) == (ali.id, banu.id)
    town.matching.assign(coordinator, task_id, ali.id)
    assert town.states(elsewhere)[0] == (ali.id, "WITHDRAWN", "ASSIGNED_BY_HAND")
    assert town.asked(elsewhere) in (banu.id, can.id)
    assert town.status(task_id) == "ASSIGNED"


@pytest.mark.parametrize("became", ["REJECTED", "EXPIRED", "WITHDRAWN", "RELEASED"])
def test_student_can_be_assigned_after_any_earlier_offer(town: Neighbourhood, coordinator, became: str) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    match became:
        case "REJECTED":
            town.matching.reject(ali, task_id)
        case "EXPIRED":
            town.expire(task_id)
        case "WITHDRAWN":
            town.matching.move_on(coordinator, task_id)
        case _:
            town.matching.accept(ali, task_id)
            town.matching.withdraw(ali, task_id)
    assert town.states(task_id)[0][:2] == (ali.id, became)
    town.matching.assign(coordinator, task_id, ali.id)
    assert sorted(town.states(task_id)) == [
        (ali.id, "ACCEPTED", "ASSIGNED_BY_HAND"),
        (banu.id, "WITHDRAWN", "ASSIGNED_BY_HAND"),
    ]
    town.matching.start(ali, task_id)
    town.matching.complete(ali, task_id)


def test_skipped_student_can_be_assigned_and_counts_as_asked(town: Neighbourhood, coordinator) -> None:
    elder = town.elder()
    ali, banu, can = town.students(10, 20, 30)
    task_id = town.press(elder)
    town.matching.set_availability(banu, False)
    town.matching.reject(ali, task_id)
    assert town.states(task_id)[-1] == (banu.id, "SKIPPED", "OFF_DUTY")
    town.matching.assign(coordinator, task_id, banu.id)
    assert (town.task(task_id).asked, town.task(task_id).skipped) == (3, 0)
    assert {view.student_id: view.rank is not None for view in town.offers(task_id)}[banu.id]
    assert town.asked_in_order(task_id) == [ali.id, can.id, banu.id]


def test_assign_ignores_duty_and_distance(town: Neighbourhood, coordinator) -> None:
    for student in (town.student(50_000), town.student(10, on_duty=False), town.student(10, located=False)):
        town.student(700)
        task_id = town.press(town.elder())
        assert town.matching.assign(coordinator, task_id, student.id).status == "ASSIGNED"


def test_waiting_task_can_be_assigned(town: Neighbourhood, coordinator) -> None:
    ali = town.student(10)
    first = town.press(town.elder("Hatice Demir"))
    waiting, far = town.press(), town.student(3000)
    town.matching.assign(coordinator, waiting, far.id)
    assert town.status(waiting) == "ASSIGNED"
    town.matching.reject(ali, first)
    assert town.asked(waiting) is None


def test_assign_refuses_students_who_cannot_take_the_task(town: Neighbourhood, coordinator) -> None:
    elder, ali, banu = town.elder(), town.student(10), town.student(20)
    gone = town.student(30, active=False)
    task_id = town.press(elder)
    for nobody in (gone.id, elder.id, coordinator.id, 999_999):
        with pytest.raises(InvalidValue) as refusal:
            town.matching.assign(coordinator, task_id, nobody)
        assert refusal.value.field == "studentId"
    other = town.press(town.elder("Hatice Demir"))
    town.matching.accept(banu, other)
    with pytest.raises(StudentUnavailable):
        town.matching.assign(coordinator, task_id, banu.id)
    assert town.states(task_id) == [(ali.id, "PENDING", None)], "a refused assignment changed the task"
    assert [row.kind for row in town.told(ali)] == ["OFFER"]
    with pytest.raises(TaskNotFound):
        town.matching.assign(coordinator, uuid7(), ali.id)


def test_assigned_task_must_be_released_before_it_is_assigned_again(town: Neighbourhood, coordinator) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    town.matching.accept(ali, task_id)
    with pytest.raises(IllegalTaskTransition):
        town.matching.assign(coordinator, task_id, banu.id)
    town.matching.release(coordinator, task_id)
    town.matching.assign(coordinator, task_id, banu.id)
    assert town.matching.open_task(ali) is None


def test_reason_assigned_by_hand_survives_the_release(town: Neighbourhood, coordinator) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    town.matching.assign(coordinator, task_id, banu.id)
    town.matching.release(coordinator, task_id)
    assert (banu.id, "RELEASED", "ASSIGNED_BY_HAND") in town.states(task_id)
    assert (ali.id, "WITHDRAWN", "ASSIGNED_BY_HAND") in town.states(task_id)


def test_ended_task_cannot_be_assigned(town: Neighbourhood, coordinator) -> None:
    task_id = town.press()
    ali = town.student(10)
    assert town.status(task_id) == "TIMED_OUT"
    with pytest.raises(IllegalTaskTransition):
        town.matching.assign(coordinator, task_id, ali.id)


def test_move_on_withdraws_the_offer_and_asks_the_next(town: Neighbourhood, coordinator) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    assert town.matching.move_on(coordinator, task_id).status == "PENDING"
    assert town.states(task_id) == [(ali.id, "WITHDRAWN", "MOVED_ON"), (banu.id, "PENDING", None)]
    assert [(row.kind, row.status) for row in town.told(ali)] == [
        ("OFFER", "CANCELLED"),
        ("OFFER_WITHDRAWN", "ACCEPTED"),
    ]
    town.matching.move_on(coordinator, task_id)
    assert town.status(task_id) == "TIMED_OUT"


def test_assigned_task_cannot_be_moved_on(town: Neighbourhood, coordinator) -> None:
    ali = town.student(10)
    task_id = town.press()
    town.matching.accept(ali, task_id)
    with pytest.raises(NotAssigned):
        town.matching.move_on(coordinator, task_id)
    with pytest.raises(TaskNotFound):
        town.matching.move_on(coordinator, uuid7())


@pytest.mark.parametrize("end", ["CANCELLED", "COMPLETED"])
def test_nobody_is_asked_for_a_task_that_has_ended(town: Neighbourhood, coordinator, end: str) -> None:
    ali = town.student(10)
    task_id = town.press()
    if end == "CANCELLED":
        town.matching.cancel(coordinator, task_id)
    else:
        town.matching.accept(ali, task_id)
        town.matching.start(ali, task_id)
        town.matching.complete(ali, task_id)
    with pytest.raises(IllegalTaskTransition, match=f"has ended, it is {end}"):
        town.matching.move_on(coordinator, task_id)


def test_release_searches_again_without_the_student_and_notifies_all(town: Neighbourhood, coordinator) -> None:
    elder, ali, banu = town.elder(), town.student(10, "Ahmet Çelik"), town.student(20)
    task_id = town.press(elder)
    town.matching.accept(ali, task_id)
    town.matching.start(ali, task_id)
    town.matching.release(coordinator, task_id)
    assert town.states(task_id) == [(ali.id, "RELEASED", None), (banu.id, "PENDING", None)]
    assert town.bodies(ali, "RELEASED") == ["Bu görev artık sizde değil."]
    assert town.bodies(elder)[-1] == "Ahmet gelemiyor. Size başka bir öğrenci arıyoruz."
    row = town.task(task_id)
    assert (row.student_id, row.assigned_at, row.started_at) == (None, None, None)
    with pytest.raises(OfferReleased):
        town.matching.start(ali, task_id)
    with pytest.raises(IllegalTaskTransition):
        town.matching.release(coordinator, task_id)


def test_coordinator_completes_a_task_that_the_student_forgot(town: Neighbourhood, coordinator) -> None:
    ali = town.student(10)
    task_id = town.press()
    with pytest.raises(IllegalTaskTransition):
        town.matching.complete(coordinator, task_id)
    town.matching.accept(ali, task_id)
    assert town.matching.complete(coordinator, task_id).status == "COMPLETED"
    assert town.one("SELECT completed FROM students").completed == 1
    assert town.task(task_id).started_at is not None
