"""What the reconciler reads, in memory."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from app.matching.states import OPEN
from app.matching.store.memory.part import Part
from app.matching.store.memory.tables import TaskRow
from app.matching.store.records import Standing


class MemorySweep(Part):
    def due_tasks(self, most: int) -> list[UUID]:
        now = self.now()
        due = [
            (row.next_step_at, row.id)
            for row in self.rows.tasks.values()
            if row.status in OPEN and row.next_step_at is not None and row.next_step_at <= now
        ]
        return [task_id for _, task_id in sorted(due)[:most]]

    def due_and_unchanged(self, most: int, unchanged_for: timedelta) -> list[UUID]:
        until = self.now() - unchanged_for
        due = self.due_tasks(len(self.rows.tasks))
        return [task_id for task_id in due if self.rows.tasks[task_id].updated_at <= until][:most]

    def open_standings(self, after: UUID, most: int) -> list[Standing]:
        ids = sorted(row.id for row in self.rows.tasks.values() if row.status in OPEN and row.id > after)
        return self.standings(ids[:most])

    def standings(self, task_ids: Sequence[UUID]) -> list[Standing]:
        return [self._standing(self.rows.tasks[task_id]) for task_id in task_ids if task_id in self.rows.tasks]

    def _standing(self, row: TaskRow) -> Standing:
        live = self.rows.live_offer_for(row.id)
        asked, deadline = (None, None) if live is None else (live.student_id, live.deadline)
        seen = [offer.student_id for offer in self.rows.offers.values() if offer.task_id == row.id]
        return Standing(row.id, row.status, asked, deadline, row.next_step_at, row.updated_at, seen)

    def changed_tasks(self, since: datetime, until: datetime, most: int) -> dict[UUID, datetime]:
        changed = sorted(
            (row.updated_at, row.id) for row in self.rows.tasks.values() if since < row.updated_at <= until
        )
        return {task_id: version for version, task_id in changed[:most]}
