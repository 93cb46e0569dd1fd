"""Tasks and offers as people see them.

Exact place and phone go to the student who accepted, while the task lasts, and to nobody else but the elder and
the coordinators. Before that a student sees the first word of a name.
"""

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.errors import InvalidValue
from app.matching.contract import CurrentOffer, MyOffer, OfferView, Page, Person, TaskView
from app.matching.errors import TaskNotFound
from app.matching.states import HELD, OPEN, OfferState, TaskStatus
from app.matching.words import first_name
from app.users.models import Caller, LatLon, Role

VIEW = """
SELECT t.id, t.status, t.created_at, t.note, t.asked, greatest(t.listed - t.asked - t.skipped, 0) AS remaining,
       t.next_step_at, ST_Y(t.location::geometry) AS lat, ST_X(t.location::geometry) AS lon,
       t.elder_id, elder.name AS elder_name, elder.phone AS elder_phone,
       t.student_id, student.name AS student_name, student.phone AS student_phone,
       live.student_id AS live_student_id, live.deadline AS live_deadline
FROM tasks t
JOIN users elder ON elder.id = t.elder_id
LEFT JOIN users student ON student.id = t.student_id
LEFT JOIN offers live ON live.task_id = t.id AND live.state = 'PENDING' AND live.deadline > clock_timestamp()
"""
ASKED_ME = """
EXISTS (SELECT FROM offers mine WHERE mine.task_id = t.id AND mine.student_id = :me AND mine.state <> 'SKIPPED')
"""


def _concerns(caller: Caller) -> str:
    if caller.is_coordinator:
        return "true"
    return "t.elder_id = :me" if caller.role is Role.ELDER else ASKED_ME


def task_view(conn: Connection, caller: Caller, task_id: UUID) -> TaskView:
    statement = f"{VIEW} WHERE t.id = :id AND {_concerns(caller)}"
    row = conn.execute(text(statement), {"id": task_id, "me": caller.id}).one_or_none()
    if row is None:
        raise TaskNotFound
    return _seen_by(caller, row)


def task_views(
    conn: Connection, caller: Caller, status: TaskStatus | None, cursor: str | None, limit: int
) -> Page[TaskView]:
    """Newest first: ids sort by time."""
    conditions = [_concerns(caller)]
    if status is not None:
        conditions.append("t.status = :status")
    if cursor is not None:
        conditions.append("t.id < :before")
    statement = f"{VIEW} WHERE {' AND '.join(conditions)} ORDER BY t.id DESC LIMIT :limit"
    values = {"me": caller.id, "status": status, "before": _parse_cursor(cursor), "limit": limit + 1}
    rows = conn.execute(text(statement), values).all()
    items = [_seen_by(caller, row) for row in rows[:limit]]
    return Page(items, str(items[-1].id) if len(rows) > limit else None)


def open_task(conn: Connection, caller: Caller) -> TaskView | None:
    """The one task that matters to this person now: an elder's open one, or the one a student has accepted."""
    mine, among = {
        Role.ELDER: ("t.elder_id = :me", OPEN),
        Role.STUDENT: ("t.student_id = :me", HELD),
    }.get(caller.role, ("false", HELD))
    statuses = ", ".join(f"'{status}'" for status in sorted(among))
    row = conn.execute(text(f"{VIEW} WHERE {mine} AND t.status IN ({statuses})"), {"me": caller.id}).one_or_none()
    return None if row is None else _seen_by(caller, row)


def current_offer(conn: Connection, caller: Caller) -> MyOffer | None:
    statement = """
    SELECT o.task_id, o.deadline, o.distance_m, t.note, elder.name AS elder_name
    FROM offers o JOIN tasks t ON t.id = o.task_id JOIN users elder ON elder.id = t.elder_id
    WHERE o.student_id = :me AND o.state = 'PENDING' AND o.deadline > clock_timestamp()"""
    row = conn.execute(text(statement), {"me": caller.id}).one_or_none()
    if row is None:
        return None
    return MyOffer(row.task_id, row.deadline, row.distance_m, first_name(row.elder_name), row.note)


def offer_views(conn: Connection, task_id: UUID) -> list[OfferView]:
    if conn.execute(text("SELECT 1 FROM tasks WHERE id = :id"), {"id": task_id}).one_or_none() is None:
        raise TaskNotFound
    statement = """
    SELECT student_id, rank, completed_this_month, distance_m, state, reason, offered_at, deadline
    FROM offers WHERE task_id = :id ORDER BY offered_at NULLS LAST, id"""
    return [
        OfferView(
            student_id=row.student_id,
            rank=row.rank,
            completed_this_month=row.completed_this_month,
            distance_m=row.distance_m,
            state=OfferState(row.state),
            reason=row.reason,
            offered_at=row.offered_at,
            deadline=row.deadline,
        )
        for row in conn.execute(text(statement), {"id": task_id})
    ]


def _parse_cursor(cursor: str | None) -> UUID | None:
    try:
        return None if cursor is None else UUID(cursor)
    except ValueError:
        raise InvalidValue("cursor", "is not a cursor that this list has given out") from None


def _seen_by(caller: Caller, row: Any) -> TaskView:
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
    """An elder may call the student while the task lasts; other students do not learn who it was."""
    if row.student_id is None or not (caller.is_coordinator or caller.role is Role.ELDER or mine):
        return None
    phone_shown = caller.is_coordinator or mine or status in HELD
    return Person(row.student_id, row.student_name, row.student_phone if phone_shown else None)


def _current(caller: Caller, row: Any, being_asked: bool) -> CurrentOffer | None:
    if row.live_deadline is None or (caller.role is Role.STUDENT and not being_asked):
        return None
    return CurrentOffer(row.live_deadline, row.live_student_id if caller.is_coordinator else None)
