"""Statements that read tasks and offers for views. `rules/visibility.py` decides which parts each user sees."""

from uuid import UUID

from sqlalchemy import text

from app.foundation.pages import Page, page_of, parse_uuid
from app.matching.rules.eligibility import OfferReason
from app.matching.rules.errors import TaskNotFound
from app.matching.rules.liveness import answerable
from app.matching.rules.map_cells import MapPoint, shown_distance_m
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import OfferState, TaskStatus, is_held, is_open
from app.matching.rules.visibility import MyOffer, OfferView, TaskView, first_name, seen_by
from app.matching.store.connected import Connected
from app.users.contract import StaffScope, scope_of
from app.users.models import Caller, LatLon, Role

COLUMNS = """
       t.id, t.status, t.created_at, t.note, t.asked, greatest(t.listed - t.asked - t.skipped, 0) AS remaining,
       t.next_step_at, ST_Y(t.location::geometry) AS lat, ST_X(t.location::geometry) AS lon,
       t.elder_id, elder.name AS elder_name, elder.phone AS elder_phone,
       t.student_id, student.name AS student_name, student.phone AS student_phone,
       live.student_id AS live_student_id, live.deadline AS live_deadline, live.name AS live_student_name"""
# The live offer of the view is the caller's own, or else the one with the earliest deadline.
TABLES = f"""
FROM tasks t
JOIN users elder ON elder.id = t.elder_id
LEFT JOIN users student ON student.id = t.student_id
LEFT JOIN LATERAL (
    SELECT o.student_id, o.deadline, asked.name FROM offers o JOIN users asked ON asked.id = o.student_id
    WHERE o.task_id = t.id AND {answerable("o")}
    ORDER BY o.student_id = :me DESC, o.deadline, o.id LIMIT 1
) live ON true
"""
STAFF_COLUMNS = f"""{COLUMNS}, t.assigned_at, t.started_at, t.ended_at, t.search_until,
       said.outcome, said.note AS outcome_note, said.said_by, said.said_at"""
STAFF_TABLES = f"{TABLES} LEFT JOIN task_outcomes said ON said.task_id = t.id"

VIEW = f"SELECT {COLUMNS} {TABLES}"
STAFF_VIEW = f"SELECT {STAFF_COLUMNS} {STAFF_TABLES}"

CALLER_WAS_ASKED = f"""
EXISTS (SELECT FROM offers mine
        WHERE mine.task_id = t.id AND mine.student_id = :me AND mine.state <> '{OfferState.SKIPPED}')
"""


def _view(caller: Caller) -> str:
    return STAFF_VIEW if caller.is_coordinator else VIEW


def seen_elder(scope: StaffScope) -> str:
    """The role is there for the index of elders."""
    if scope.is_everything:
        return "true"
    return f"elder.role = '{Role.ELDER}' AND {scope.sees('elder.institution_id')}"


def _may_see(caller: Caller) -> str:
    if caller.is_coordinator:
        return seen_elder(scope_of(caller))
    return "t.elder_id = :me" if caller.role is Role.ELDER else CALLER_WAS_ASKED


SEEN_TASK = "SELECT FROM tasks t JOIN users elder ON elder.id = t.elder_id WHERE t.id = :id AND {seen}"


class ViewStatements(Connected):
    def check_seen(self, scope: StaffScope, task_id: UUID) -> None:
        """The task of an elder whom the coordinator does not see does not exist for them."""
        if self.conn.execute(text(SEEN_TASK.format(seen=seen_elder(scope))), {"id": task_id}).one_or_none() is None:
            raise TaskNotFound

    def task_view(self, caller: Caller, task_id: UUID) -> TaskView:
        statement = f"{_view(caller)} WHERE t.id = :id AND {_may_see(caller)}"
        row = self.conn.execute(text(statement), {"id": task_id, "me": caller.id}).one_or_none()
        if row is None:
            raise TaskNotFound
        return seen_by(caller, row)

    def task_views(self, caller: Caller, status: TaskStatus | None, cursor: str | None, limit: int) -> Page[TaskView]:
        """Newest first: ids sort by time."""
        conditions = [_may_see(caller)]
        if status is not None:
            conditions.append("t.status = :status")
        if cursor is not None:
            conditions.append("t.id < :before")
        statement = f"{_view(caller)} WHERE {' AND '.join(conditions)} ORDER BY t.id DESC LIMIT :limit"
        values = {
            "me": caller.id,
            "status": status,
            "before": None if cursor is None else parse_uuid(cursor),
            "limit": limit + 1,
        }
        rows = self.conn.execute(text(statement), values).all()
        return page_of(rows, limit, lambda row: seen_by(caller, row))

    def open_task(self, caller: Caller) -> TaskView | None:
        """An elder's open task, or the task that a student has accepted."""
        mine = {
            Role.ELDER: f"t.elder_id = :me AND {is_open('t.status')}",
            Role.STUDENT: f"t.student_id = :me AND {is_held('t.status')}",
        }.get(caller.role, "false")
        row = self.conn.execute(text(f"{VIEW} WHERE {mine}"), {"me": caller.id}).one_or_none()
        return None if row is None else seen_by(caller, row)

    def current_offer(self, caller: Caller, rules: MatchingRules) -> MyOffer | None:
        statement = f"""
        SELECT o.task_id, o.deadline, t.note, elder.name AS elder_name, s.plane[0] AS x, s.plane[1] AS y,
               ST_Y(t.location::geometry) AS lat, ST_X(t.location::geometry) AS lon
        FROM offers o JOIN tasks t ON t.id = o.task_id JOIN users elder ON elder.id = t.elder_id
        JOIN students s ON s.id = o.student_id
        WHERE o.student_id = :me AND {answerable("o")} AND s.location IS NOT NULL"""
        row = self.conn.execute(text(statement), {"me": caller.id}).one_or_none()
        if row is None:
            return None
        distance_m = shown_distance_m(MapPoint(row.x, row.y), LatLon(row.lat, row.lon), rules.cell_m)
        return MyOffer(row.task_id, row.deadline, distance_m, first_name(row.elder_name), row.note)

    def offer_views(self, scope: StaffScope, task_id: UUID) -> list[OfferView]:
        self.check_seen(scope, task_id)
        statement = """
        SELECT o.student_id, u.name, o.rank, o.completed_this_month, o.distance_m, o.state, o.reason, o.offered_at,
               o.deadline, o.closed_at
        FROM offers o JOIN users u ON u.id = o.student_id
        WHERE o.task_id = :id ORDER BY o.offered_at NULLS LAST, o.id"""
        return [
            OfferView(
                student_id=row.student_id,
                student_name=row.name,
                rank=row.rank,
                completed_this_month=row.completed_this_month,
                distance_m=row.distance_m,
                state=OfferState(row.state),
                reason=None if row.reason is None else OfferReason(row.reason),
                offered_at=row.offered_at,
                deadline=row.deadline,
                closed_at=row.closed_at,
            )
            for row in self.conn.execute(text(statement), {"id": task_id})
        ]
