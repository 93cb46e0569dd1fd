"""Statements on the rows of students."""

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import TextClause, text

from app.matching.rules.eligibility import (
    ACTIVE,
    ASSIGNABLE,
    goes_on_searching,
    may_be_asked,
    may_be_asked_later,
    month,
    near_place,
    seen_before,
    strayed,
)
from app.matching.rules.liveness import live
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import is_searching
from app.matching.store.connected import Connected
from app.users.models import LatLon

# The index holds only waiting tasks, so the condition costs next to nothing while no task waits.
WAITS = f"t.waiting AND {is_searching('t.status')}"
NEAR, SEEN = near_place("t.location"), seen_before("t.id")

OLDEST_WAITING = text(f"""
SELECT DISTINCT oldest.id
FROM students s CROSS JOIN LATERAL (
    SELECT t.id FROM tasks t WHERE {WAITS} AND {goes_on_searching("t")} AND {may_be_asked(NEAR, SEEN)}
    ORDER BY t.created_at, t.id LIMIT 1
) oldest
WHERE s.id = ANY(:student_ids)
""")

WAITING = text(f"""
SELECT t.id FROM students s JOIN tasks t ON {WAITS} AND {may_be_asked_later(NEAR, SEEN)}
WHERE s.id = ANY(:student_ids)
""")

# The id of the transaction that wrote this version of the row.
VERSION = "s.xmin::text::bigint AS version"


class StudentStatements(Connected):
    def lock_students(self, ids: Iterable[int], *, skip_locked: bool = False) -> dict[int, int]:
        """The locked students, with the versions of their rows. Call this once in a transaction: two transactions that
        lock students twice could deadlock."""
        statement = f"SELECT id, {VERSION} FROM students s WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE"
        rows = self.conn.execute(text(statement + (" SKIP LOCKED" if skip_locked else "")), {"ids": sorted(set(ids))})
        return {row.id: row.version for row in rows}

    def is_active_student(self, student_id: int) -> bool:
        statement = f"SELECT {ACTIVE} FROM students s WHERE id = :id"
        return bool(self.conn.execute(text(statement), {"id": student_id}).scalar_one_or_none())

    def take_student(self, student_id: int, task_id: UUID) -> bool:
        """False if the student is not active or has another task."""
        statement = f"UPDATE students s SET open_task_id = :task_id WHERE id = :id AND {ASSIGNABLE} RETURNING id"
        return self.conn.execute(text(statement), {"id": student_id, "task_id": task_id}).one_or_none() is not None

    def free_student(self, student_id: int) -> None:
        self.conn.execute(text("UPDATE students SET open_task_id = NULL WHERE id = :id"), {"id": student_id})

    def count_completed(self, student_id: int, time_zone: str) -> None:
        """Counts the task that the student has, which was completed, and frees the student. The count begins at 1 in
        each month. The month is that in which the task ended, so that a recount from the tasks gives the same."""
        ended_at = "(SELECT ended_at FROM tasks WHERE tasks.id = open_task_id)"
        this_month = month(":time_zone", f"coalesce({ended_at}, clock_timestamp())")
        statement = f"""
        UPDATE students SET completed = CASE WHEN month = {this_month} THEN completed + 1 ELSE 1 END,
                            month = {this_month}, open_task_id = NULL
        WHERE id = :id"""
        self.conn.execute(text(statement), {"id": student_id, "time_zone": time_zone})

    def oldest_waiting_tasks(self, student_ids: Iterable[int], rules: MatchingRules) -> set[UUID]:
        """For each of these students who can be asked, the oldest waiting task that may ask them."""
        return self._waiting(OLDEST_WAITING, student_ids, rules)

    def tasks_waiting_for(self, student_ids: Iterable[int], rules: MatchingRules) -> set[UUID]:
        """All waiting tasks that may ask these students at some time, whether or not the students can be asked now."""
        return self._waiting(WAITING, student_ids, rules)

    def _waiting(self, statement: TextClause, student_ids: Iterable[int], rules: MatchingRules) -> set[UUID]:
        rows = self.conn.execute(statement, {"student_ids": sorted(student_ids), **rules.parameters})
        return {row.id for row in rows}

    def set_on_duty(self, student_id: int, on_duty: bool) -> None:
        self.conn.execute(
            text("UPDATE students SET on_duty = :on_duty WHERE id = :id AND on_duty <> :on_duty"),
            {"id": student_id, "on_duty": on_duty},
        )

    def place_student(self, student_id: int, spot: LatLon) -> bool:
        """False if there is no such student."""
        statement = """
        UPDATE students SET location = ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography,
                            location_at = clock_timestamp()
        WHERE id = :id RETURNING id"""
        moved = self.conn.execute(text(statement), {"id": student_id, "lat": spot.lat, "lon": spot.lon})
        return moved.one_or_none() is not None

    def has_strayed(self, student_id: int, rules: MatchingRules) -> bool:
        """True if the student is too far away from the task for which they are being asked."""
        statement = f"""
        SELECT {strayed("t.location")}
        FROM offers o JOIN tasks t ON t.id = o.task_id JOIN students s ON s.id = o.student_id
        WHERE o.student_id = :id AND {live("o")}"""
        found = self.conn.execute(text(statement), {"id": student_id, **rules.parameters})
        return bool(found.scalar_one_or_none())

    def set_active_student(self, student_id: int, active: bool) -> None:
        self.conn.execute(
            text("UPDATE students SET active = :active WHERE id = :id"), {"id": student_id, "active": active}
        )
