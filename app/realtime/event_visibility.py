"""Who sees an event, and which parts of it. Pure, like `matching/rules/visibility.py`, which says the same of tasks.

An elder sees what happens to the own tasks, and of the students the first word of the name, and who it is once they
have accepted. A student sees the offers to them, the tasks that they have, and their duty. Coordinators see what
belongs to their institution. Nobody else's messages are seen by anybody. No event holds a place, a phone or a note.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from app.foundation.clock import rfc3339
from app.matching.contract import TaskStatus, first_name
from app.realtime.contract import EventType, Wanted
from app.users.contract import scope_of
from app.users.models import Caller, Role

E, T = EventType, TaskStatus

STATUS: Mapping[EventType, TaskStatus] = {
    E.TASK_ASSIGNED: T.ASSIGNED,
    E.TASK_STARTED: T.STARTED,
    E.TASK_COMPLETED: T.COMPLETED,
    E.TASK_CANCELLED: T.CANCELLED,
    E.TASK_TIMED_OUT: T.TIMED_OUT,
    E.TASK_RESOLVED: T.TIMED_OUT,
}
"""The status of the task when the event happened. It is PENDING for all others with a task."""
ONLY_FOR_COORDINATORS = frozenset({E.STUDENT_SKIPPED, E.TASK_RESOLVED})


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event with what its fields show now."""

    id: int
    type: EventType
    at: datetime
    task_id: UUID | None = None
    elder_id: int | None = None
    elder_name: str | None = None
    person_id: int | None = None
    person_name: str | None = None
    message_id: int | None = None
    deadline: datetime | None = None
    reason: str | None = None
    on_duty: bool | None = None
    asked: int | None = None
    remaining: int | None = None
    next_step_at: datetime | None = None
    institutions: frozenset[int | None] = frozenset()
    """Those whose coordinators see it: that of the elder, or of a student and of the elders they were asked for."""


class Eyes(Enum):
    """As whom a caller sees an event. All who see it as the same see the same."""

    COORDINATOR = "coordinator"
    ELDER = "elder"
    SELF = "self"
    """The student or the owner of the message."""


def eyes_of(caller: Caller, row: EventRow) -> Eyes | None:
    """None for who does not see it."""
    if row.type is E.MESSAGE_ARRIVED:
        return Eyes.SELF if row.person_id == caller.id else None
    if caller.is_coordinator:
        scope = scope_of(caller)
        return Eyes.COORDINATOR if scope.is_everything or scope.institution_id in row.institutions else None
    if row.type in ONLY_FOR_COORDINATORS:
        return None
    if caller.role is Role.STUDENT:
        return Eyes.SELF if row.person_id == caller.id else None
    return Eyes.ELDER if row.elder_id == caller.id else None


def is_wanted(wanted: Wanted, row: EventRow) -> bool:
    return (wanted.task_id is None or row.task_id == wanted.task_id) and (
        wanted.types is None or row.type in wanted.types
    )


def seen_with(eyes: Eyes, row: EventRow) -> dict[str, Any]:
    """The fields, without those that are empty."""
    fields: dict[str, Any] = {"id": row.id, "type": row.type.value, "at": rfc3339(row.at, "milliseconds")}
    if row.task_id is not None:
        fields |= _of_task(row)
    if row.type is not E.MESSAGE_ARRIVED:
        fields |= _of_student(eyes, row)
    if eyes is Eyes.COORDINATOR:
        fields |= {"elderId": row.elder_id, "elderName": row.elder_name, "reason": row.reason}
    fields |= {"onDuty": row.on_duty, "messageId": row.message_id}
    return {name: value for name, value in fields.items() if value is not None}


def _of_task(row: EventRow) -> dict[str, Any]:
    return {
        "taskId": str(row.task_id),
        "status": STATUS.get(row.type, T.PENDING).value,
        "asked": row.asked,
        "remaining": row.remaining,
        "nextStepAt": _time(row.next_step_at),
        "deadline": _time(row.deadline),
    }


def _of_student(eyes: Eyes, row: EventRow) -> dict[str, Any]:
    if row.person_id is None:
        return {}
    if eyes is Eyes.ELDER:
        has_accepted = STATUS.get(row.type, T.PENDING) is not T.PENDING
        name = None if row.person_name is None else first_name(row.person_name)
        return {"studentId": row.person_id if has_accepted else None, "studentName": name}
    return {"studentId": row.person_id, "studentName": row.person_name if eyes is Eyes.COORDINATOR else None}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment, "milliseconds")
