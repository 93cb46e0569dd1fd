"""Decides which parts of a task each user sees.

The elder and the coordinators always see the exact location and the phone number, and the student who accepted sees
them until the task ends. All other students see only the first word of the elder's name.
"""

from typing import Any

from app.matching.rules.states import HELD, TaskStatus
from app.matching.rules.views import CurrentOffer, Person, TaskView
from app.matching.rules.words import first_name
from app.users.models import Caller, LatLon, Role


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
    )


def _student(caller: Caller, row: Any, status: TaskStatus, mine: bool) -> Person | None:
    """The elder sees the student's phone number until the task ends. Other students do not see who accepted."""
    if row.student_id is None or not (caller.is_coordinator or caller.role is Role.ELDER or mine):
        return None
    phone_shown = caller.is_coordinator or mine or status in HELD
    return Person(row.student_id, row.student_name, row.student_phone if phone_shown else None)


def _current(caller: Caller, row: Any, being_asked: bool) -> CurrentOffer | None:
    if row.live_deadline is None or (caller.role is Role.STUDENT and not being_asked):
        return None
    return CurrentOffer(row.live_deadline, row.live_student_id if caller.is_coordinator else None)
