"""Which names, phones, locations, notes and counts each role sees, in each state of a task."""

import pytest

from app.foundation.errors import InvalidValue
from app.foundation.ids import uuid7
from app.matching.rules.errors import TaskNotFound
from app.users.models import Role
from tests.support.matching import SPOT, Neighbourhood

PHONE, STUDENTS_PHONE = "+905550000001", "+905551112233"


@pytest.fixture
def cast(town: Neighbourhood):
    return (
        town.elder("Ayşe Nur Yılmaz"),
        town.student(10, "Ahmet Çelik"),
        town.student(20, "Berat Şahin"),
        town.coordinator(),
    )


def test_views_while_the_first_student_is_asked(town: Neighbourhood, cast) -> None:
    elder, ahmet, berat, coordinator = cast
    task_id = town.press(elder, "Ekmek")
    seen = town.matching.task(elder, task_id)
    assert (seen.elder.name, seen.elder.phone, seen.location, seen.note) == ("Ayşe Nur Yılmaz", PHONE, SPOT, "Ekmek")
    assert seen.student is None
    assert seen.current_offer is not None
    assert (seen.current_offer.student_id, seen.current_offer.student_name) == (None, "Ahmet")
    seen = town.matching.task(coordinator, task_id)
    assert (seen.elder.phone, seen.location) == (PHONE, SPOT)
    assert seen.current_offer is not None
    assert (seen.current_offer.student_id, seen.current_offer.student_name) == (ahmet.id, "Ahmet Çelik")
    assert [offer.student_name for offer in town.offers(task_id)] == ["Ahmet Çelik"]
    seen = town.matching.task(ahmet, task_id)
    assert (seen.elder.name, seen.elder.phone, seen.location, seen.note) == ("Ayşe", None, None, "Ekmek")
    assert seen.current_offer is not None and seen.current_offer.student_name is None
    offer = town.matching.current_offer(ahmet)
    assert offer is not None
    assert (offer.task_id, offer.elder_name, offer.note) == (task_id, "Ayşe", "Ekmek")
    assert offer.deadline == seen.current_offer.deadline
    assert offer.distance_m == 100
    assert town.matching.task(coordinator, task_id).search_ends_at == town.task(task_id).search_until
    assert {town.matching.task(caller, task_id).search_ends_at for caller in (elder, ahmet)} == {None}
    with pytest.raises(TaskNotFound):
        town.matching.task(berat, task_id)
    with pytest.raises(TaskNotFound):
        town.matching.task(town.elder("Hatice Demir"), task_id)
    assert town.matching.current_offer(berat) is None
    assert town.matching.open_task(ahmet) is None


def test_overdue_offer_is_not_shown_as_current(town: Neighbourhood, cast) -> None:
    elder, ahmet, _, coordinator = cast
    task_id = town.press(elder)
    town.make_overdue(task_id)
    for caller in (elder, ahmet, coordinator):
        assert town.matching.task(caller, task_id).current_offer is None
    assert town.matching.current_offer(ahmet) is None


def test_student_who_rejected_sees_no_other_student(town: Neighbourhood, cast) -> None:
    elder, ahmet, berat, _ = cast
    task_id = town.press(elder, "Ekmek")
    town.matching.reject(ahmet, task_id)
    seen = town.matching.task(ahmet, task_id)
    assert (seen.elder.name, seen.elder.phone, seen.location, seen.note) == ("Ayşe", None, None, None)
    assert seen.current_offer is None
    town.matching.accept(berat, task_id)
    assert town.matching.task(ahmet, task_id).student is None
    rejected, accepted = town.offers(task_id)
    assert rejected.closed_at is not None and accepted.closed_at is not None
    assert rejected.closed_at < accepted.closed_at


@pytest.mark.parametrize("started", [False, True])
def test_assigned_student_sees_location_and_phone(town: Neighbourhood, cast, started: bool) -> None:
    elder, ahmet, _, coordinator = cast
    task_id = town.press(elder, "Ekmek")
    town.matching.accept(ahmet, task_id)
    if started:
        town.matching.start(ahmet, task_id)
    seen = town.matching.task(ahmet, task_id)
    assert (seen.elder.name, seen.elder.phone, seen.location, seen.note) == ("Ayşe Nur Yılmaz", PHONE, SPOT, "Ekmek")
    assert town.matching.open_task(ahmet) == seen
    times = [town.matching.task(caller, task_id) for caller in (coordinator, elder, ahmet)]
    assert [(task.assigned_at is not None, task.started_at is not None) for task in times] == [
        (True, started),
        (False, False),
        (False, False),
    ]
    for caller in (elder, coordinator):
        student = town.matching.task(caller, task_id).student
        assert student is not None
        assert (student.name, student.phone) == ("Ahmet Çelik", STUDENTS_PHONE)
    assert town.matching.open_task(elder) == town.matching.task(elder, task_id)
    assert town.matching.open_task(coordinator) is None


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_location_and_phone_are_hidden_after_the_end(town: Neighbourhood, cast, end: str) -> None:
    elder, ahmet, _, coordinator = cast
    task_id = town.press(elder, "Ekmek")
    town.matching.accept(ahmet, task_id)
    if end == "complete":
        town.matching.start(ahmet, task_id)
        town.matching.complete(ahmet, task_id)
    else:
        town.matching.cancel(elder, task_id)
    seen = town.matching.task(ahmet, task_id)
    assert (seen.elder.name, seen.elder.phone, seen.location) == ("Ayşe", None, None)
    student = town.matching.task(elder, task_id).student
    assert student is not None
    assert (student.name, student.phone) == ("Ahmet Çelik", None)
    seen = town.matching.task(coordinator, task_id)
    assert (seen.elder.phone, seen.student and seen.student.phone) == (PHONE, STUDENTS_PHONE)
    assert town.matching.open_task(ahmet) is town.matching.open_task(elder) is None


def test_location_is_hidden_after_withdrawal(town: Neighbourhood, cast) -> None:
    elder, ahmet, _, _ = cast
    task_id = town.press(elder)
    town.matching.accept(ahmet, task_id)
    seen = town.matching.withdraw(ahmet, task_id)
    assert (seen.elder.name, seen.elder.phone, seen.location) == ("Ayşe", None, None)


def test_lists_hold_the_callers_tasks_newest_first(town: Neighbourhood, cast) -> None:
    elder, ahmet, berat, coordinator = cast
    other = town.elder("Hatice Demir")
    first = town.press(elder)
    second = town.press(other)
    assert (town.asked(first), town.asked(second)) == (ahmet.id, berat.id)

    def ids(caller, **filters):
        page = town.matching.tasks(caller, **({"status": None, "cursor": None, "limit": 10} | filters))
        return [task.id for task in page.items]

    assert ids(elder) == ids(ahmet) == [first]
    assert ids(other) == ids(berat) == [second]
    assert ids(coordinator) == ids(town.coordinator(role=Role.ADMIN)) == [second, first]
    assert ids(town.student(30)) == []
    town.matching.cancel(elder, first)
    assert ids(coordinator, status="PENDING") == [second]
    assert ids(coordinator, status="CANCELLED") == [first]


def test_long_list_is_paginated(town: Neighbourhood) -> None:
    coordinator = town.coordinator()
    tasks = [town.press(elder) for elder in town.elders(5)]
    seen, cursor = [], None
    for expected in (2, 2, 1):
        page = town.matching.tasks(coordinator, status=None, cursor=cursor, limit=2)
        assert len(page.items) == expected
        seen += [task.id for task in page.items]
        cursor = page.next_cursor
    assert cursor is None
    assert seen == tasks[::-1]
    with pytest.raises(InvalidValue):
        town.matching.tasks(coordinator, status=None, cursor="x", limit=2)


def test_coordinator_sees_why_each_student_was_asked_or_skipped(town: Neighbourhood) -> None:
    helper, near, far, off_duty = (
        town.student(5, completed=2),
        town.student(100),
        town.student(200),
        town.student(150),
    )
    task_id = town.press()
    town.matching.set_availability(off_duty, False)
    town.matching.reject(near, task_id)
    town.matching.reject(far, task_id)
    assert [
        (view.student_id, view.rank, view.completed_this_month, round(view.distance_m or 0), view.state.value)
        for view in town.offers(task_id)
    ] == [
        (near.id, 1, 0, 100, "REJECTED"),
        (far.id, 3, 0, 200, "REJECTED"),
        (helper.id, 4, 2, 5, "PENDING"),
        (off_duty.id, None, 0, 150, "SKIPPED"),
    ]
    with pytest.raises(TaskNotFound):
        town.matching.offers(town.coordinator(), uuid7())
