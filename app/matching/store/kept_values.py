"""Statements that compute again what rows of tasks and students repeat of other rows.

Everything that changes a task's number of offers holds the lock of the task. Everything that changes which task a
student has, how many the student completed, or whether they are active, writes the student's row in the same
transaction. So under these locks a recount cannot miss a change.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from sqlalchemy import text

from app.matching.rules.eligibility import completed_this_month, month
from app.matching.rules.states import TaskStatus, is_held
from app.matching.store.connected import Connected
from app.matching.store.records import StudentDrift, TaskDrift
from app.matching.store.students import VERSION
from app.matching.store.tasks import SET_COUNTS

# Read once in a statement, so that no month begins in the middle of it.
NOW = "statement_timestamp()"
MONTH = month(":time_zone", NOW)
KEPT = completed_this_month(":time_zone", NOW)

# One statement, so that the counts and the versions of the students are of the same moment. The task with the lowest id
# is right if a student has two, which an index forbids. A task changes last when it ends, or later, so the index on
# `updated_at` finds all that ended this month.
DRIFTING_STUDENTS = text(f"""
WITH done AS (
    SELECT student_id, count(*) AS completed FROM tasks
    WHERE status = '{TaskStatus.COMPLETED}' AND updated_at >= ({MONTH}::timestamp AT TIME ZONE :time_zone)
      AND ended_at >= ({MONTH}::timestamp AT TIME ZONE :time_zone)
    GROUP BY student_id
), held AS (
    SELECT DISTINCT ON (student_id) student_id, id AS task_id FROM tasks
    WHERE {is_held()} AND student_id IS NOT NULL ORDER BY student_id, id
)
SELECT s.id, {VERSION} AS version, {MONTH} AS month, {KEPT} AS kept_completed, coalesce(done.completed, 0) AS completed,
       s.open_task_id AS kept_open_task_id, held.task_id AS open_task_id, s.active AS kept_active, u.active
FROM students s JOIN users u ON u.id = s.id
LEFT JOIN done ON done.student_id = s.id LEFT JOIN held ON held.student_id = s.id
WHERE {KEPT} <> coalesce(done.completed, 0) OR s.open_task_id IS DISTINCT FROM held.task_id OR s.active <> u.active
ORDER BY s.id
""")

# A student whose count was right keeps an older month.
REPAIR_STUDENTS = text(f"""
UPDATE students s SET month = CASE WHEN {KEPT} <> d.completed THEN d.month ELSE s.month END,
                      completed = CASE WHEN {KEPT} <> d.completed THEN d.completed ELSE s.completed END,
                      open_task_id = d.open_task_id, active = d.active
FROM unnest(CAST(:ids AS bigint[]), CAST(:versions AS bigint[]), CAST(:months AS date[]), CAST(:completed AS int[]),
            CAST(:open_task_ids AS uuid[]), CAST(:active AS bool[]))
     AS d (id, version, month, completed, open_task_id, active)
WHERE s.id = d.id AND s.xmin::text::bigint = d.version AND d.month = {MONTH} RETURNING s.id
""")

END_OF_PORTION = text("SELECT id FROM tasks WHERE id > :after ORDER BY id OFFSET :most - 1 LIMIT 1")

DRIFTING_TASKS = text("""
SELECT t.id, t.asked AS kept_asked, t.skipped AS kept_skipped, coalesce(o.asked, 0) AS asked,
       coalesce(o.skipped, 0) AS skipped
FROM tasks t
LEFT JOIN (SELECT task_id, count(offered_at) AS asked, count(*) - count(offered_at) AS skipped FROM offers
           WHERE task_id > :after AND task_id <= :until GROUP BY task_id) o ON o.task_id = t.id
WHERE t.id > :after AND t.id <= :until AND (t.asked, t.skipped) <> (coalesce(o.asked, 0), coalesce(o.skipped, 0))
ORDER BY t.id
""")

REPAIR_TASKS = text(f"UPDATE tasks SET {SET_COUNTS} WHERE id = ANY(:ids)")


class KeptValueStatements(Connected):
    def drifting_students(self, time_zone: str) -> list[StudentDrift]:
        return [StudentDrift(*row) for row in self.conn.execute(DRIFTING_STUDENTS, {"time_zone": time_zone})]

    def repair_students(self, drifts: Sequence[StudentDrift], time_zone: str) -> set[int]:
        """Writes locked students, except those whose row has changed since the drift was found. Returns those it
        wrote."""
        values = {
            "ids": [drift.student_id for drift in drifts],
            "versions": [drift.version for drift in drifts],
            "months": [drift.month for drift in drifts],
            "completed": [drift.completed for drift in drifts],
            "open_task_ids": [drift.open_task_id for drift in drifts],
            "active": [drift.active for drift in drifts],
            "time_zone": time_zone,
        }
        return {row.id for row in self.conn.execute(REPAIR_STUDENTS, values)}

    def end_of_portion(self, after: UUID, most: int) -> UUID | None:
        """The id of the last of the next `most` tasks; None if fewer are left."""
        return self.conn.execute(END_OF_PORTION, {"after": after, "most": most}).scalar_one_or_none()

    def drifting_tasks(self, after: UUID, until: UUID) -> list[TaskDrift]:
        rows = self.conn.execute(DRIFTING_TASKS, {"after": after, "until": until})
        return [TaskDrift(*row) for row in rows]

    def lock_tasks_by_id(self, ids: Iterable[UUID]) -> list[UUID]:
        """Without the tasks that another transaction has locked."""
        statement = "SELECT id FROM tasks WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"
        return [row.id for row in self.conn.execute(text(statement), {"ids": list(ids)})]

    def repair_tasks(self, ids: Sequence[UUID]) -> None:
        self.conn.execute(REPAIR_TASKS, {"ids": list(ids)})
