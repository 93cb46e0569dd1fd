"""Tasks in memory."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from app.matching.errors import Overtaken
from app.matching.states import OPEN, TaskStatus
from app.matching.store.memory.part import TICK, Part
from app.matching.store.memory.tables import TaskRow
from app.matching.store.records import FromNow, Moved, Progress, Task
from app.users.models import LatLon


class MemoryTasks(Part):
    def lock_tasks(self, ids: Iterable[UUID], *, skip_locked: bool = False) -> list[Task]:
        return self.read_tasks(ids)

    def lock_task(self, task_id: UUID) -> Task | None:
        return next(iter(self.lock_tasks([task_id])), None)

    def read_tasks(self, ids: Iterable[UUID]) -> list[Task]:
        known = [self.rows.tasks[task_id] for task_id in sorted(set(ids)) if task_id in self.rows.tasks]
        return [replace(row, read_at=self.now()) for row in known]

    def unknown_tasks(self, ids: set[UUID]) -> set[UUID]:
        return ids - self.rows.tasks.keys()

    def insert_task(
        self,
        *,
        task_id: UUID,
        elder_id: int,
        note: str | None,
        spot: LatLon,
        listed: int,
        search_limit: timedelta,
        idempotency_key: str | None,
    ) -> bool:
        now = self.now()
        row = TaskRow(
            id=task_id,
            status=TaskStatus.PENDING,
            elder_id=elder_id,
            student_id=None,
            note=note,
            spot=spot,
            created_at=now,
            search_until=now + search_limit,
            next_step_at=now,
            waiting=False,
            listed=listed,
            asked=0,
            skipped=0,
            assigned_at=None,
            idempotency_key=idempotency_key,
            updated_at=now,
            read_at=now,
        )
        fits = self.rows.task_fits(row)
        if fits:
            self.rows.put_task(row)
        return fits

    def find_open_task(self, elder_id: int) -> Task | None:
        return self._find(lambda row: row.elder_id == elder_id and row.status in OPEN)

    def find_task_by_key(self, elder_id: int, key: str) -> Task | None:
        return self._find(lambda row: row.elder_id == elder_id and row.idempotency_key == key)

    def _find(self, wanted: Callable[[TaskRow], bool]) -> Task | None:
        found = next((row for row in self.rows.tasks.values() if wanted(row)), None)
        return None if found is None else replace(found, read_at=self.now())

    def count_recent_tasks(self, elder_id: int, most: int) -> int:
        newest = sorted((row for row in self.rows.tasks.values() if row.elder_id == elder_id), key=lambda row: row.id)
        since = self.now() - timedelta(minutes=1)
        return sum(row.created_at > since for row in newest[-most:])

    def move_task(self, task: Task, target: TaskStatus, **changes: Any) -> Moved:
        row = self.rows.tasks.get(task.id)
        if row is None or row.status is not task.status:
            raise Overtaken
        now = self.now()
        settled = {name: now + value.by if isinstance(value, FromNow) else value for name, value in changes.items()}
        changed = self._change(row, status=target, **settled)
        return Moved(changed.next_step_at, changed.updated_at)

    def _change(self, row: TaskRow, **changes: Any) -> TaskRow:
        changed = replace(row, updated_at=max(self.now(), row.updated_at + TICK), **changes)
        self.rows.put_task(changed)
        return changed

    def save_progress(self, progress: Sequence[Progress]) -> dict[UUID, datetime]:
        return {
            item.task_id: self._change(
                self.rows.tasks[item.task_id],
                next_step_at=item.next_step_at,
                waiting=item.waiting,
                asked=item.asked,
                skipped=item.skipped,
                listed=item.listed,
            ).updated_at
            for item in progress
        }

    def set_due(self, task_id: UUID) -> None:
        row = self.rows.tasks.get(task_id)
        if row is not None and row.status is TaskStatus.PENDING:
            self._change(row, next_step_at=self.now())

    def end_searches(self, task_ids: Sequence[UUID]) -> dict[UUID, datetime]:
        over: dict[UUID, datetime] = {}
        for row in [self.rows.tasks[task_id] for task_id in task_ids]:
            if row.status is TaskStatus.PENDING:
                asked, skipped = self.rows.counted(row.id)
                over[row.id] = self._change(
                    row,
                    status=TaskStatus.TIMED_OUT,
                    next_step_at=None,
                    ended_at=self.now(),
                    asked=asked,
                    skipped=skipped,
                ).updated_at
        return over
