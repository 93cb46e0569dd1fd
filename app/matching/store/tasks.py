"""Statements on tasks."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.db.plain_statements import execute_later
from app.matching.rules.errors import Overtaken
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import TaskStatus, is_searching, may_become_task
from app.matching.store.connected import Connected
from app.matching.store.records import NOW, EndedSearch, FromNow, HelpTask, Moved, Progress, Transition, task_of
from app.matching.store.task_log import log_task
from app.users.models import LatLon

TASK_COLUMNS = """
t.id, t.status, t.elder_id, t.student_id, t.note, t.created_at, t.search_until, t.next_step_at, t.waiting, t.listed,
t.updated_at, t.asked, t.skipped, t.assigned_at, t.idempotency_key, ST_Y(t.location::geometry) AS lat,
ST_X(t.location::geometry) AS lon, t.area::text AS area,
clock_timestamp() AS read_at
"""

SET_VERSION = "updated_at = greatest(clock_timestamp(), tasks.updated_at + interval '1 microsecond')"


LOCK = f"SELECT {TASK_COLUMNS} FROM tasks t WHERE t.id = ANY(:ids) ORDER BY t.id FOR NO KEY UPDATE"
LOCK_TASKS, LOCK_FREE_TASKS = text(LOCK), text(LOCK + " SKIP LOCKED")

# The offers are the truth. The task's row repeats the two counts, so that a view reads one row.
SET_COUNTS = (
    "(asked, skipped) = (SELECT count(offered_at), count(*) - count(offered_at) FROM offers WHERE task_id = tasks.id)"
)

SAVE_PROGRESS = text(f"""
UPDATE tasks SET next_step_at = p.next_step_at, waiting = p.waiting, asked = p.asked,
                   skipped = p.skipped, listed = p.listed, {SET_VERSION}
FROM unnest(CAST(:ids AS uuid[]), CAST(:next_steps AS timestamptz[]), CAST(:waiting AS bool[]),
            CAST(:asked AS int[]), CAST(:skipped AS int[]), CAST(:listed AS int[]))
     AS p (id, next_step_at, waiting, asked, skipped, listed)
WHERE tasks.id = p.id AND {is_searching()} RETURNING tasks.id, tasks.updated_at
""")

# The newest tasks of an elder are more than one can make in the interval.
TOLD = """
SELECT FROM (SELECT id, alarm_owed, alarmed_at FROM tasks WHERE elder_id = t.elder_id ORDER BY id DESC LIMIT 50) recent
WHERE recent.alarmed_at > clock_timestamp() - :interval"""
# One statement for both columns of a row, so that an alarm is either sent with the end of the search or owed. Of each
# task a coordinator has to say what became of it.
END_SEARCHES = text(f"""
WITH joined AS MATERIALIZED (
    SELECT t.id, EXISTS ({TOLD} OR recent.alarm_owed) AS alarm_owed FROM tasks t WHERE t.id = ANY(:ids)
), ended AS (
    UPDATE tasks SET status = '{TaskStatus.TIMED_OUT}', next_step_at = NULL, ended_at = clock_timestamp(),
                     alarm_owed = joined.alarm_owed,
                     alarmed_at = CASE WHEN NOT joined.alarm_owed THEN clock_timestamp() END,
                     {SET_VERSION}, {SET_COUNTS}
    FROM joined WHERE tasks.id = joined.id AND {may_become_task(TaskStatus.TIMED_OUT, "tasks.status")}
    RETURNING tasks.id, tasks.updated_at, tasks.alarm_owed
), owed AS (INSERT INTO task_outcomes (task_id) SELECT id FROM ended)
SELECT id, updated_at, alarm_owed FROM ended
""")

LOCK_ALARMS = text("SELECT pg_try_advisory_xact_lock(hashtextextended('owed_alarms', 0))")
# One time for all tasks, by which `check_promises` knows which ones were told together.
TAKE_OWED_ALARMS = text(f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
UPDATE tasks SET alarm_owed = false, alarmed_at = clock.now
FROM clock,
     (SELECT t.id FROM tasks t
      WHERE t.alarm_owed AND NOT EXISTS ({TOLD}) ORDER BY t.id LIMIT 1000 FOR NO KEY UPDATE) due
WHERE tasks.id = due.id RETURNING tasks.id, tasks.elder_id
""")


class TaskStatements(Connected):
    def lock_tasks(self, ids: Iterable[UUID], *, skip_locked: bool = False) -> list[HelpTask]:
        statement = LOCK_FREE_TASKS if skip_locked else LOCK_TASKS
        return [task_of(row) for row in self.conn.execute(statement, {"ids": sorted(ids)})]

    def lock_task(self, task_id: UUID) -> HelpTask | None:
        return next(iter(self.lock_tasks([task_id])), None)

    def lock_tasks_later(self, ids: Iterable[UUID], *, skip_locked: bool = False) -> Callable[[], list[HelpTask]]:
        """Together with the next statement, which sees what was committed before the lock. Returns what gives the tasks
        after that."""
        locked = execute_later(self.conn, LOCK_FREE_TASKS if skip_locked else LOCK_TASKS, {"ids": sorted(ids)})
        return lambda: [task_of(row) for row in locked.rows]

    def lock_task_later(self, task_id: UUID) -> Callable[[], HelpTask | None]:
        """As `lock_tasks_later`."""
        locked = execute_later(self.conn, LOCK_TASKS, {"ids": [task_id]})
        return lambda: next((task_of(row) for row in locked.rows), None)

    def read_tasks(self, ids: Iterable[UUID]) -> list[HelpTask]:
        statement = f"SELECT {TASK_COLUMNS} FROM tasks t WHERE t.id = ANY(:ids) ORDER BY t.id"
        return [task_of(row) for row in self.conn.execute(text(statement), {"ids": list(ids)})]

    def unknown_tasks(self, ids: set[UUID]) -> set[UUID]:
        """The ids of tasks that do not exist. The other tasks are locked by another transaction."""
        rows = self.conn.execute(text("SELECT id FROM tasks WHERE id = ANY(:ids)"), {"ids": list(ids)})
        return ids - {row.id for row in rows}

    def first_place(self, elder_id: int) -> LatLon | None:
        """Where the elder's first task was."""
        statement = """
        SELECT ST_Y(location::geometry) AS lat, ST_X(location::geometry) AS lon
        FROM tasks WHERE elder_id = :elder_id ORDER BY id LIMIT 1"""
        row = self.conn.execute(text(statement), {"elder_id": elder_id}).one_or_none()
        return None if row is None else LatLon(row.lat, row.lon)

    def move_task(self, transition: Transition, **changes: Any) -> Moved:
        """Writes a locked task: its transition, and the columns in `changes`."""
        sets = [SET_VERSION]
        values: dict[str, Any] = {
            "id": transition.task_id,
            "target": transition.target,
            "current": transition.current,
        }
        for column, value in changes.items():
            if value == NOW:
                sets.append(f"{column} = clock_timestamp()")
            elif isinstance(value, FromNow):
                sets.append(f"{column} = clock_timestamp() + :{column}")
                values[column] = value.by
            else:
                sets.append(f"{column} = :{column}")
                values[column] = value
        statement = f"""
        UPDATE tasks SET status = :target, {", ".join(sets)} WHERE id = :id AND status = :current
        RETURNING next_step_at, updated_at"""
        row = self.conn.execute(text(statement), values).one_or_none()
        if row is None:
            raise Overtaken
        if transition.target is not transition.current:
            log_task(transition.target, transition.task_id, changes.get("student_id"))
        return Moved(row.next_step_at, row.updated_at)

    def save_progress(self, progress: Sequence[Progress]) -> Callable[[], dict[UUID, datetime]]:
        """Together with the next statement, or with COMMIT. Returns what gives the new version of each task."""
        if not progress:
            return dict[UUID, datetime]
        saved = execute_later(
            self.conn,
            SAVE_PROGRESS,
            {
                "ids": [item.task_id for item in progress],
                "next_steps": [item.next_step_at for item in progress],
                "waiting": [item.waiting for item in progress],
                "asked": [item.asked for item in progress],
                "skipped": [item.skipped for item in progress],
                "listed": [item.listed for item in progress],
            },
        )
        return lambda: {row.id: row.updated_at for row in saved.rows}

    def set_due(self, task_id: UUID) -> None:
        """Makes the search due now, so that it goes on even if the hint after the commit is lost."""
        self.conn.execute(
            text(
                f"UPDATE tasks SET next_step_at = clock_timestamp(), {SET_VERSION} WHERE id = :id AND {is_searching()}"
            ),
            {"id": task_id},
        )

    def end_searches(self, task_ids: Sequence[UUID], rules: MatchingRules) -> list[EndedSearch]:
        """The tasks that this call ended."""
        values = {"ids": list(task_ids), "interval": rules.alarm_interval}
        ended = [EndedSearch(*row) for row in self.conn.execute(END_SEARCHES, values)]
        for one in ended:
            log_task(TaskStatus.TIMED_OUT, one.task_id)
        return ended

    def take_owed_alarms(self, rules: MatchingRules) -> dict[int, list[UUID]]:
        """The tasks by elder whose joined alarm is due, which the caller sends. Empty while another process does it."""
        if not self.conn.execute(LOCK_ALARMS).scalar_one():
            return {}
        found: dict[int, list[UUID]] = {}
        for row in self.conn.execute(TAKE_OWED_ALARMS, {"interval": rules.alarm_interval}):
            found.setdefault(row.elder_id, []).append(row.id)
        return found
