"""Who sees which event, and which of its fields."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.realtime.contract import EventType, Wanted
from app.realtime.event_visibility import EventRow, Eyes, eyes_of, is_wanted, seen_with
from app.users.models import Caller, Role

E = EventType
TASK = UUID("0197a000-0000-7000-8000-000000000001")
AT = datetime(2026, 11, 19, 20, 0, 0, 123456, tzinfo=UTC)
ELDER, STUDENT, OTHER, OWN_INSTITUTION, OTHER_INSTITUTION = 3, 5, 6, 1, 2


def caller(role: Role, id_: int = 9, institution_id: int | None = None) -> Caller:
    return Caller(id_, role, "Zeynep Koç", "tr", institution_id)


def event(type_: EventType, **more: Any) -> EventRow:
    known: dict[str, Any] = {"task_id": TASK, "elder_id": ELDER, "elder_name": "Ayşe Yılmaz"}
    known |= {"asked": 2, "remaining": 1, "next_step_at": AT, "institutions": frozenset({OWN_INSTITUTION})}
    if type_ not in (E.TASK_CREATED, E.TASK_TIMED_OUT, E.TASK_RESOLVED):
        known |= {"person_id": STUDENT, "person_name": "Ahmet Çelik"}
    if type_ is E.MESSAGE_ARRIVED:
        known = {"person_id": ELDER, "person_name": "Ayşe Yılmaz", "message_id": 4}
        known["institutions"] = frozenset({OWN_INSTITUTION})
    if type_ is E.DUTY_CHANGED:
        known = {"person_id": STUDENT, "person_name": "Ahmet Çelik", "on_duty": False}
        known["institutions"] = frozenset({None, OWN_INSTITUTION})
    if type_ in (E.TASK_OFFERED, E.TASK_REOFFERED):
        known["deadline"] = AT
    if type_ in (E.STUDENT_SKIPPED, E.OFFER_WITHDRAWN):
        known["reason"] = "OFF_DUTY"
    return EventRow(7, type_, AT, **(known | more))


OF_TASKS_AND_OFFERS = [type_ for type_ in E if type_ not in (E.MESSAGE_ARRIVED, E.DUTY_CHANGED)]
STAFF_ONLY = {E.STUDENT_SKIPPED, E.TASK_RESOLVED}
WITHOUT_STUDENT = {E.TASK_CREATED, E.TASK_TIMED_OUT}

#            who                                                 which of the events that have a task
SEES = [
    (caller(Role.ADMIN, institution_id=OTHER_INSTITUTION), set(OF_TASKS_AND_OFFERS)),
    (caller(Role.COORDINATOR), set(OF_TASKS_AND_OFFERS)),
    (caller(Role.COORDINATOR, institution_id=OWN_INSTITUTION), set(OF_TASKS_AND_OFFERS)),
    (caller(Role.COORDINATOR, institution_id=OTHER_INSTITUTION), set[EventType]()),
    (caller(Role.ELDER, ELDER), set(OF_TASKS_AND_OFFERS) - STAFF_ONLY),
    (caller(Role.ELDER, OTHER), set[EventType]()),
    # A user who is no student any more.
    (caller(Role.ELDER, STUDENT), set[EventType]()),
    (caller(Role.STUDENT, STUDENT), set(OF_TASKS_AND_OFFERS) - STAFF_ONLY - WITHOUT_STUDENT),
    (caller(Role.STUDENT, OTHER), set[EventType]()),
    (caller(Role.STUDENT, ELDER), set[EventType]()),
]


@pytest.mark.parametrize(("who", "expected"), SEES, ids=lambda value: str(getattr(value, "role", "")))
def test_who_sees_what_happens_to_a_task(who: Caller, expected: set[EventType]) -> None:
    assert {type_ for type_ in OF_TASKS_AND_OFFERS if eyes_of(who, event(type_)) is not None} == expected


@pytest.mark.parametrize("role", Role)
def test_messages_are_seen_by_their_owner_only(role: Role) -> None:
    assert eyes_of(caller(role, ELDER, OWN_INSTITUTION), event(E.MESSAGE_ARRIVED)) is Eyes.SELF
    assert eyes_of(caller(role, OTHER, OWN_INSTITUTION), event(E.MESSAGE_ARRIVED)) is None


def test_duty_is_seen_by_the_student_and_by_coordinators_who_see_the_student() -> None:
    duty = event(E.DUTY_CHANGED)
    assert eyes_of(caller(Role.STUDENT, STUDENT), duty) is Eyes.SELF
    assert eyes_of(caller(Role.STUDENT, OTHER), duty) is None
    assert eyes_of(caller(Role.ELDER, ELDER), duty) is None
    assert eyes_of(caller(Role.COORDINATOR, institution_id=OWN_INSTITUTION), duty) is Eyes.COORDINATOR
    assert eyes_of(caller(Role.COORDINATOR, institution_id=OTHER_INSTITUTION), duty) is None
    assert eyes_of(caller(Role.ADMIN), duty) is Eyes.COORDINATOR


COMMON = {"id": 7, "at": "2026-11-19T20:00:00.123Z"}
OF_TASK = {"taskId": str(TASK), "asked": 2, "remaining": 1, "nextStepAt": "2026-11-19T20:00:00.123Z"}
OF_COORDINATOR = {"elderId": ELDER, "elderName": "Ayşe Yılmaz"}
AHMET = {"studentId": STUDENT, "studentName": "Ahmet Çelik"}
DEADLINE = {"deadline": "2026-11-19T20:00:00.123Z"}
STATUS_THEN = {
    E.TASK_ASSIGNED: "ASSIGNED",
    E.TASK_STARTED: "STARTED",
    E.TASK_COMPLETED: "COMPLETED",
    E.TASK_CANCELLED: "CANCELLED",
    E.TASK_TIMED_OUT: "TIMED_OUT",
    E.TASK_RESOLVED: "TIMED_OUT",
}


@pytest.mark.parametrize("type_", OF_TASKS_AND_OFFERS)
def test_which_fields_coordinators_see(type_: EventType) -> None:
    expected = COMMON | OF_TASK | OF_COORDINATOR | {"type": type_, "status": STATUS_THEN.get(type_, "PENDING")}
    expected |= DEADLINE if type_ in (E.TASK_OFFERED, E.TASK_REOFFERED) else {}
    expected |= {"reason": "OFF_DUTY"} if type_ in (E.STUDENT_SKIPPED, E.OFFER_WITHDRAWN) else {}
    expected |= {} if type_ in (E.TASK_CREATED, E.TASK_TIMED_OUT, E.TASK_RESOLVED) else AHMET
    assert seen_with(Eyes.COORDINATOR, event(type_)) == expected


@pytest.mark.parametrize("type_", sorted(set(OF_TASKS_AND_OFFERS) - STAFF_ONLY))
def test_the_elder_learns_who_comes_and_of_others_the_first_name(type_: EventType) -> None:
    expected = COMMON | OF_TASK | {"type": type_, "status": STATUS_THEN.get(type_, "PENDING")}
    expected |= DEADLINE if type_ in (E.TASK_OFFERED, E.TASK_REOFFERED) else {}
    if type_ not in WITHOUT_STUDENT:
        expected["studentName"] = "Ahmet"
    if type_ in (E.TASK_ASSIGNED, E.TASK_STARTED, E.TASK_COMPLETED, E.TASK_CANCELLED):
        expected["studentId"] = STUDENT
    assert seen_with(Eyes.ELDER, event(type_)) == expected


@pytest.mark.parametrize("type_", sorted(set(OF_TASKS_AND_OFFERS) - STAFF_ONLY - WITHOUT_STUDENT))
def test_students_see_themselves_and_nobody_else(type_: EventType) -> None:
    expected = COMMON | OF_TASK | {"type": type_, "status": STATUS_THEN.get(type_, "PENDING"), "studentId": STUDENT}
    expected |= DEADLINE if type_ in (E.TASK_OFFERED, E.TASK_REOFFERED) else {}
    assert seen_with(Eyes.SELF, event(type_)) == expected


def test_fields_of_messages_and_of_duty() -> None:
    message = {"type": "MESSAGE_ARRIVED", "messageId": 4}
    assert seen_with(Eyes.SELF, event(E.MESSAGE_ARRIVED)) == COMMON | message
    duty = COMMON | {"type": "DUTY_CHANGED", "studentId": STUDENT, "onDuty": False}
    assert seen_with(Eyes.SELF, event(E.DUTY_CHANGED)) == duty
    assert seen_with(Eyes.COORDINATOR, event(E.DUTY_CHANGED)) == duty | {"studentName": "Ahmet Çelik"}


def test_a_stream_gets_only_what_it_asks_for() -> None:
    offered = event(E.TASK_OFFERED)
    assert is_wanted(Wanted(), offered)
    assert is_wanted(Wanted(TASK, frozenset({E.TASK_OFFERED})), offered)
    assert not is_wanted(Wanted(UUID(int=1)), offered)
    assert not is_wanted(Wanted(types=frozenset({E.TASK_CREATED})), offered)
