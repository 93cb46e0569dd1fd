"""Statements on the rows of students."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, text

from app.db.plain_statements import execute_after_commit, execute_later
from app.foundation.ids import earliest_id
from app.matching.rules.eligibility import (
    ACTIVE,
    ASSIGNABLE,
    goes_on_searching,
    has_strayed,
    may_be_asked,
    may_be_asked_later,
    month,
    near_place,
    seen_or_spared,
)
from app.matching.rules.liveness import live
from app.matching.rules.map_cells import MapPoint
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import TaskStatus, is_searching
from app.matching.store.connected import Connected
from app.matching.store.records import NamedPerson, Withdrawals
from app.users.models import LatLon

# The index holds only waiting tasks, so the condition costs next to nothing while no task waits.
WAITS = f"t.waiting AND {is_searching('t.status')}"
NEAR, RULED_OUT = near_place(), seen_or_spared("t.id", "t.elder_id")

OLDEST_WAITING = text(f"""
SELECT DISTINCT oldest.id
FROM students s CROSS JOIN LATERAL (
    SELECT t.id FROM tasks t WHERE {WAITS} AND {goes_on_searching("t")} AND {may_be_asked(NEAR, RULED_OUT)}
    ORDER BY t.created_at, t.id LIMIT 1
) oldest
WHERE s.id = ANY(:student_ids)
""")

WAITING = text(f"""
SELECT t.id FROM students s JOIN tasks t ON {WAITS} AND {may_be_asked_later(NEAR, RULED_OUT)}
WHERE s.id = ANY(:student_ids)
""")

SPOT = "ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography"

PLACE = text(f"""
UPDATE students SET location = {SPOT}, location_at = clock_timestamp(), next_location = NULL, next_location_from = NULL,
                    ahead_m = NULL
WHERE id = :id RETURNING id
""")

# A budget and not the speed between two reports: positions jitter, and many short jumps are as fast as a long one.
AHEAD_M = f"""
greatest(0, coalesce(s.ahead_m, 0) + coalesce(ST_Distance(coalesce(s.next_location, s.location), {SPOT}), 0)
            - :fastest_mps * extract(epoch FROM clock.now - s.location_at))"""
JUMPS = f"{AHEAD_M} > :jitter_m"
WAITS_FOR_PLACE = f"({JUMPS} OR s.next_location_from > clock.now) IS TRUE"

REPORT_PLACE = text(f"""
UPDATE students s
SET location = CASE WHEN NOT {WAITS_FOR_PLACE} THEN {SPOT} END, location_at = clock.now,
    next_location = CASE WHEN {WAITS_FOR_PLACE} THEN {SPOT} END,
    next_location_from = CASE WHEN {JUMPS} THEN clock.now + :pause
                              WHEN {WAITS_FOR_PLACE} THEN s.next_location_from END,
    ahead_m = CASE WHEN NOT ({JUMPS}) THEN nullif({AHEAD_M}, 0) END
FROM (SELECT clock_timestamp() AS now) clock
WHERE s.id = :id RETURNING s.id
""")

# Every sweep runs it, so it must not look at all students. The subselects let PostgreSQL use the index of those who
# wait.
PLACE_WAITING = text("""
UPDATE students s SET location = next_location, next_location = NULL, next_location_from = NULL
FROM (SELECT id FROM students
      WHERE id = ANY (ARRAY(SELECT id FROM students WHERE next_location_from <= (SELECT clock_timestamp())
                            ORDER BY next_location_from LIMIT :most))
        AND next_location_from <= clock_timestamp()
      ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) due
WHERE s.id = due.id RETURNING s.id
""")

SET_DUTY = text("""
UPDATE students SET on_duty = :on_duty, suspended_at = CASE WHEN NOT :on_duty THEN clock_timestamp() END,
                    withdrew_at = CASE WHEN NOT :on_duty THEN withdrew_at END
WHERE id = :id RETURNING id
""")

COUNT_WITHDRAWAL = text("""
UPDATE students s
SET withdrew_at = recent.times, on_duty = s.on_duty AND NOT recent.are_many,
    suspended_at = CASE WHEN recent.are_many THEN coalesce(s.suspended_at, clock_timestamp()) ELSE s.suspended_at END
FROM (SELECT id, times, cardinality(times) >= :most AS are_many
      FROM (SELECT id, array(SELECT at FROM unnest(withdrew_at) at
                             WHERE at > clock_timestamp() - interval '24 hours') || clock_timestamp() AS times
            FROM students WHERE id = :id) own) recent
WHERE s.id = recent.id RETURNING cardinality(s.withdrew_at), s.suspended_at IS NOT NULL
""")

# The id of a task tells when it was made, and the index of offers has it.
SHORT_VISITS = text(f"""
SELECT count(*) FROM offers o JOIN tasks t ON t.id = o.task_id AND t.student_id = o.student_id
WHERE o.student_id = :id AND o.task_id >= :since AND t.status = '{TaskStatus.COMPLETED}'
  AND t.ended_at > clock_timestamp() - interval '24 hours' AND t.ended_at - t.assigned_at < :shortest
""")


def take_student(task_id: str, student_id: str) -> str:
    return f"""
    UPDATE students s SET open_task_id = {task_id} FROM users u
    WHERE s.id = {student_id} AND u.id = s.id AND {ASSIGNABLE}"""


TAKE_STUDENT = text(f"{take_student(':task_id', ':id')} RETURNING u.id, u.name, u.phone")

# The id of the transaction that wrote this version of the row.
VERSION = "s.xmin::text::bigint"
LOCK = f"SELECT id, {VERSION} AS version FROM students s WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE"
LOCK_STUDENTS, LOCK_FREE_STUDENTS = text(LOCK), text(LOCK + " SKIP LOCKED")


class StudentStatements(Connected):
    def lock_students(self, ids: Iterable[int], *, skip_locked: bool = False) -> dict[int, int]:
        """The locked students, with the versions of their rows. Call this once in a transaction: two transactions that
        lock students twice could deadlock."""
        statement = LOCK_FREE_STUDENTS if skip_locked else LOCK_STUDENTS
        rows = self.conn.execute(statement, {"ids": sorted(set(ids))})
        return {row.id: row.version for row in rows}

    def lock_student_later(self, student_id: int) -> Callable[[], int | None]:
        """Together with the next statement. Returns what gives the version of the row after that; None if there is no
        such student."""
        locked = execute_later(self.conn, LOCK_STUDENTS, {"ids": [student_id]})
        return lambda: next((row.version for row in locked.rows), None)

    def is_active_student(self, student_id: int) -> bool:
        statement = f"SELECT {ACTIVE} FROM students s WHERE id = :id"
        return bool(self.conn.execute(text(statement), {"id": student_id}).scalar_one_or_none())

    def take_student(self, student_id: int, task_id: UUID) -> NamedPerson | None:
        """None if the student is not active or has another task."""
        row = self.conn.execute(TAKE_STUDENT, {"id": student_id, "task_id": task_id}).one_or_none()
        return None if row is None else NamedPerson(*row)

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

    def oldest_waiting_tasks_after_commit(
        self, student_ids: Collection[int], rules: MatchingRules
    ) -> Callable[[], set[UUID] | None]:
        """The same, read in the round trip of COMMIT, when others see these students free. Returns what gives the tasks
        after that; None if they could not be read."""
        return self._waiting_after_commit(OLDEST_WAITING, student_ids, rules)

    def tasks_waiting_for_after_commit(
        self, student_ids: Collection[int], rules: MatchingRules
    ) -> Callable[[], set[UUID] | None]:
        """As `tasks_waiting_for` and `oldest_waiting_tasks_after_commit`."""
        return self._waiting_after_commit(WAITING, student_ids, rules)

    def _waiting_after_commit(
        self, statement: TextClause, student_ids: Collection[int], rules: MatchingRules
    ) -> Callable[[], set[UUID] | None]:
        if not student_ids:
            return set[UUID]
        asked = execute_after_commit(self.conn, statement, _waiting_values(student_ids, rules))
        return lambda: None if asked.rows is None else {row.id for row in asked.rows}

    def tasks_waiting_for(self, student_ids: Iterable[int], rules: MatchingRules) -> set[UUID]:
        """All waiting tasks that may ask these students at some time, whether or not the students can be asked now."""
        return self._waiting(WAITING, student_ids, rules)

    def _waiting(self, statement: TextClause, student_ids: Iterable[int], rules: MatchingRules) -> set[UUID]:
        return {row.id for row in self.conn.execute(statement, _waiting_values(student_ids, rules))}

    def set_on_duty(self, student_id: int, on_duty: bool) -> None:
        self.conn.execute(
            text("UPDATE students SET on_duty = :on_duty WHERE id = :id AND on_duty <> :on_duty"),
            {"id": student_id, "on_duty": on_duty},
        )

    def place_student(self, student_id: int, spot: LatLon, rules: MatchingRules | None = None) -> bool:
        """False if there is no such student. With `rules`, it counts only later if the student moved too fast."""
        values = {"id": student_id, "lat": spot.lat, "lon": spot.lon}
        if rules is None:
            return self.conn.execute(PLACE, values).one_or_none() is not None
        pace = {"fastest_mps": rules.fastest_mps, "jitter_m": rules.offer_reach_m, "pause": rules.jump_pause}
        return self.conn.execute(REPORT_PLACE, values | pace).one_or_none() is not None

    def place_waiting_students(self, most: int) -> list[int]:
        """Students who had moved too fast, and whose new place counts from now on."""
        return list(self.conn.execute(PLACE_WAITING, {"most": most}).scalars())

    def is_suspended(self, student_id: int) -> bool:
        statement = "SELECT suspended_at IS NOT NULL FROM students WHERE id = :id"
        return bool(self.conn.execute(text(statement), {"id": student_id}).scalar_one_or_none())

    def set_duty(self, student_id: int, on_duty: bool) -> bool:
        """For a coordinator: off duty, the student cannot go on duty again. False if there is no such student."""
        values = {"id": student_id, "on_duty": on_duty}
        return self.conn.execute(SET_DUTY, values).one_or_none() is not None

    def count_withdrawal(self, student_id: int, most: int) -> Withdrawals:
        """Suspends the student at the `most`-th withdrawal within 24 hours."""
        return Withdrawals(*self.conn.execute(COUNT_WITHDRAWAL, {"id": student_id, "most": most}).one())

    def short_visits(self, student_id: int, now: datetime, shortest: timedelta) -> int:
        """How many tasks of the last 24 hours the student completed sooner than `shortest` after the accept."""
        values = {"id": student_id, "since": earliest_id(now - timedelta(days=2)), "shortest": shortest}
        return self.conn.execute(SHORT_VISITS, values).scalar_one()

    def has_strayed(self, student_id: int, rules: MatchingRules) -> bool:
        """True if the student is too far away from the task for which they are being asked."""
        statement = f"""
        SELECT s.plane[0] AS x, s.plane[1] AS y, ST_Y(t.location::geometry) AS lat, ST_X(t.location::geometry) AS lon
        FROM offers o JOIN tasks t ON t.id = o.task_id JOIN students s ON s.id = o.student_id
        WHERE o.student_id = :id AND {live("o")}"""
        row = self.conn.execute(text(statement), {"id": student_id}).one_or_none()
        if row is None:
            return False
        return row.x is None or has_strayed(MapPoint(row.x, row.y), LatLon(row.lat, row.lon), rules)

    def set_active_student(self, student_id: int, active: bool) -> None:
        self.conn.execute(
            text("UPDATE students SET active = :active WHERE id = :id"), {"id": student_id, "active": active}
        )


def _waiting_values(student_ids: Iterable[int], rules: MatchingRules) -> dict[str, Any]:
    return {"student_ids": sorted(student_ids), **rules.parameters}
