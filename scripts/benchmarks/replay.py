"""Turns the recorded statements of one settled task into those of a batch, which bare psycopg runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.foundation.ids import uuid7
from benchmarks.bench import Connection, run
from benchmarks.capture import COMMIT, SentStatement


@dataclass(frozen=True)
class Due:
    """A task whose offer is over: the student who was asked, and the candidates that are left."""

    task_id: UUID
    asked: int
    left: Sequence[int]


@dataclass(frozen=True)
class Template:
    """The recorded statements of `model`, whose ids are replaced by those of the tasks of a batch."""

    sent: Sequence[SentStatement]
    model: Due

    def run(self, conn: Connection, alone: Connection, batch: Sequence[Due], deadline: datetime) -> None:
        """`alone` is a connection with autocommit."""
        for one in self.sent:
            if one.statement == COMMIT:
                conn.commit()
            else:
                run(alone if one.autocommitted else conn, one.statement, self._fill(one.values, batch, deadline))

    def _fill(self, values: Mapping[str, Any], batch: Sequence[Due], deadline: datetime) -> dict[str, Any]:
        return {name: self._value(value, batch, deadline) for name, value in values.items()}

    def _value(self, value: Any, batch: Sequence[Due], deadline: datetime) -> Any:
        if isinstance(value, str) and value.startswith("["):
            rows = json.loads(value)
            return json.dumps([self._row(row, due, deadline) for due in batch for row in rows], ensure_ascii=False)
        if isinstance(value, list):
            filled = [self._swap(item, due, deadline) for due in batch for item in value]
            # Locks are taken in the order of ids, as in the application.
            return sorted(filled) if value == sorted(value) and len(value) == 1 and self._is_id(value[0]) else filled
        return value

    def _row(self, row: Any, due: Due, deadline: datetime) -> Any:
        fresh = str(uuid7())
        return self._swap_row(row, due, deadline, row["id"], fresh)

    def _swap_row(self, value: Any, due: Due, deadline: datetime, old: str, fresh: str) -> Any:
        if isinstance(value, dict):
            return {key: self._swap_row(item, due, deadline, old, fresh) for key, item in value.items()}
        if value == str(self.model.task_id):
            return str(due.task_id)
        if value == old:
            return fresh
        return self._swap(value, due, deadline)

    def _is_id(self, value: Any) -> bool:
        return isinstance(value, UUID) or (isinstance(value, int) and value in (self.model.asked, *self.model.left))

    def _swap(self, value: Any, due: Due, deadline: datetime) -> Any:
        if value == self.model.task_id:
            return due.task_id
        if isinstance(value, datetime):
            return deadline
        if isinstance(value, int) and not isinstance(value, bool):
            if value == self.model.asked:
                return due.asked
            if value in self.model.left:
                place = self.model.left.index(value)
                return due.left[place] if place < len(due.left) else due.left[-1]
        return value
