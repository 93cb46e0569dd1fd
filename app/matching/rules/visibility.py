"""What users see of tasks and offers, and which parts of it each user sees.

The elder and the coordinators always see the exact location and the phone number, and the student who accepted sees
them until the task ends. All other students see only the first word of the elder's name, and the student who is being
asked the distance in steps between cells of the map.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.matching.rules.eligibility import OfferReason
from app.matching.rules.states import HELD, OfferState, TaskOutcome, TaskStatus
from app.users.models import Caller, LatLon, Role


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    phone: str | None


@dataclass(frozen=True)
class CurrentOffer:
    deadline: datetime
    student_id: int | None
    student_name: str | None = None
    """For coordinators the name, for the elder its first word."""


@dataclass(frozen=True)
class TaskOutcomeView:
    outcome: TaskOutcome
    note: str | None
    said_by: int
    said_at: datetime


@dataclass(frozen=True)
class TaskView:
    id: UUID
    status: TaskStatus
    created_at: datetime
    note: str | None
    asked: int
    remaining: int
    next_step_at: datetime | None
    location: LatLon | None
    elder: Person
    student: Person | None
    current_offer: CurrentOffer | None
    # All of these are for coordinators only.
    outcome: TaskOutcomeView | None = None
    assigned_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    search_ends_at: datetime | None = None
    """None if nobody is searched any more."""


@dataclass(frozen=True)
class MyOffer:
    task_id: UUID
    deadline: datetime
    distance_m: float
    elder_name: str
    note: str | None


@dataclass(frozen=True)
class OfferView:
    student_id: int
    student_name: str
    rank: int | None
    completed_this_month: int
    distance_m: float | None
    state: OfferState
    reason: OfferReason | None
    offered_at: datetime | None
    deadline: datetime | None
    closed_at: datetime | None = None
    """When it was answered, ended or skipped."""


def seen_by(caller: Caller, row: Any) -> TaskView:
    status = TaskStatus(row.status)
    mine = caller.role is Role.STUDENT and row.student_id == caller.id
    being_asked = row.live_student_id == caller.id
    full = caller.is_coordinator or caller.role is Role.ELDER or (mine and status in HELD)
    elder = (
        Person(row.elder_id, row.elder_name, row.elder_phone)
        if full
        else Person(row.elder_id, first_name(row.elder_name), None)
    )
    return TaskView(
        id=row.id,
        status=status,
        created_at=row.created_at,
        note=row.note if full or being_asked else None,
        asked=row.asked,
        remaining=row.remaining,
        next_step_at=row.next_step_at,
        location=LatLon(row.lat, row.lon) if full else None,
        elder=elder,
        student=_student(caller, row, status, mine),
        current_offer=_current(caller, row, being_asked),
        **(_for_staff(row) if caller.is_coordinator else {}),
    )


def _for_staff(row: Any) -> dict[str, Any]:
    """The row has the columns for coordinators."""
    return {
        "outcome": _outcome(row),
        "assigned_at": row.assigned_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "search_ends_at": row.search_until if row.status == TaskStatus.PENDING else None,
    }


def _student(caller: Caller, row: Any, status: TaskStatus, mine: bool) -> Person | None:
    """The elder sees the student's phone number until the task ends. Other students do not see who accepted."""
    if row.student_id is None or not (caller.is_coordinator or caller.role is Role.ELDER or mine):
        return None
    phone_shown = caller.is_coordinator or mine or status in HELD
    return Person(row.student_id, row.student_name, row.student_phone if phone_shown else None)


def _current(caller: Caller, row: Any, being_asked: bool) -> CurrentOffer | None:
    if row.live_deadline is None or (caller.role is Role.STUDENT and not being_asked):
        return None
    if caller.is_coordinator:
        return CurrentOffer(row.live_deadline, row.live_student_id, row.live_student_name)
    # The elder may know the first name before the accept: it is no position and no number to call.
    return CurrentOffer(
        row.live_deadline, None, first_name(row.live_student_name) if caller.role is Role.ELDER else None
    )


def _outcome(row: Any) -> TaskOutcomeView | None:
    if row.outcome is None:
        return None
    return TaskOutcomeView(TaskOutcome(row.outcome), row.outcome_note, row.said_by, row.said_at)


def first_name(name: str) -> str:
    """The first word of a name: "Ayşe" for "Ayşe Nur Yılmaz"."""
    return name.split()[0] if name.split() else name
