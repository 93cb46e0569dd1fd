"""The statements of the reconciler: they read the due tasks, and the state that Redis should hold. Others ask how late
the matchers are; the answer comes from the due tasks, so every process gets the same, whatever the number of
matchers."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.matching.rules.liveness import live
from app.matching.rules.states import TaskStatus, is_open
from app.matching.store.connected import Connected
from app.matching.store.records import Overdue, Standing

STANDINGS = f"""
SELECT t.id, t.status, t.next_step_at, t.updated_at, live.student_id, live.deadline,
       array(SELECT seen.student_id FROM offers seen WHERE seen.task_id = t.id) AS seen
FROM tasks t
LEFT JOIN LATERAL (
    SELECT o.student_id, o.deadline FROM offers o WHERE o.task_id = t.id AND {live("o")}
    ORDER BY o.deadline, o.id LIMIT 1
) live ON true
"""

# The due tasks. The time is a subselect, which is evaluated once, because a volatile function could not use the index.
DUE = f"""
FROM tasks
WHERE next_step_at <= (SELECT clock_timestamp()) AND next_step_at IS NOT NULL
  AND {is_open()}"""


class SweepStatements(Connected):
    def due_tasks(self, most: int) -> list[UUID]:
        """The due tasks, those that have been due longest first."""
        statement = f"SELECT id {DUE} ORDER BY next_step_at LIMIT :most"
        return [row.id for row in self.conn.execute(text(statement), {"most": most})]

    def due_and_unchanged(self, most: int, unchanged_for: timedelta) -> list[UUID]:
        """The due tasks whose row has not changed for some time, so that the process that changed it has written to
        Redis by now."""
        statement = f"""
        SELECT id {DUE} AND updated_at <= clock_timestamp() - :unchanged_for
        ORDER BY next_step_at LIMIT :most"""
        values = {"most": most, "unchanged_for": unchanged_for}
        return [row.id for row in self.conn.execute(text(statement), values)]

    def is_late(self, after_s: float) -> bool:
        """True if a task has been due for longer than `after_s`."""
        statement = f"""
        SELECT EXISTS (
            SELECT {DUE} AND next_step_at < (SELECT clock_timestamp() - make_interval(secs => :after_s)))"""
        return bool(self.conn.execute(text(statement), {"after_s": after_s}).scalar_one())

    def overdue(self) -> Overdue:
        statement = f"""
        SELECT count(*) AS tasks,
               coalesce(extract(epoch FROM clock_timestamp() - min(next_step_at)), 0)::float8 AS longest_s {DUE}"""
        row = self.conn.execute(text(statement)).one()
        return Overdue(row.tasks, row.longest_s)

    def _standings(self, where: str, values: Mapping[str, Any]) -> list[Standing]:
        return [
            Standing(
                row.id, TaskStatus(row.status), row.student_id, row.deadline, row.next_step_at, row.updated_at, row.seen
            )
            for row in self.conn.execute(text(STANDINGS + where), values)
        ]

    def open_standings(self, after: UUID, most: int) -> list[Standing]:
        where = f"WHERE t.id > :after AND {is_open('t.status')} ORDER BY t.id LIMIT :most"
        return self._standings(where, {"after": after, "most": most})

    def standings(self, task_ids: Sequence[UUID]) -> list[Standing]:
        return self._standings("WHERE t.id = ANY(:ids)", {"ids": list(task_ids)})

    def changed_tasks(self, since: datetime, until: datetime, most: int) -> dict[UUID, datetime]:
        """The first `most` tasks that changed in this period, in the order of their versions. The next call begins at
        the last version."""
        statement = """
        SELECT id, updated_at FROM tasks WHERE updated_at > :since AND updated_at <= :until
        ORDER BY updated_at LIMIT :most"""
        rows = self.conn.execute(text(statement), {"since": since, "until": until, "most": most})
        return {row.id: row.updated_at for row in rows}
