"""The clockwork is the data of matching in Redis: candidate lists, pending keys and deadlines. All of it may be lost.

Callers have committed to PostgreSQL before they write here, so a failure costs time and no data: they log it and
continue, and the reconciler writes the missing keys again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from app.foundation.errors import Unavailable


class RedisUnavailable(Unavailable):
    code = "redis_unavailable"


class ListChange(StrEnum):
    KEEP = "keep"
    DROP = "drop"
    REPLACE = "replace"


@dataclass(frozen=True)
class TaskKeys:
    """The content that Redis should have for one task."""

    task_id: UUID
    student_id: int | None = None
    deadline: datetime | None = None
    next_step_at: datetime | None = None
    list_change: ListChange = ListChange.KEEP
    ids: Sequence[int] = ()
    """With KEEP the candidates that leave the list, with REPLACE the whole new list."""
    version: datetime | None = None
    """When the row was written. Redis refuses a version older than the one it has: a process that was stopped between
    its commit and its write to Redis must not overwrite a newer version from another process."""


@dataclass(frozen=True)
class HeldKeys:
    """The content that Redis has for one task."""

    student_id: int | None = None
    due_ms: int | None = None
    candidates: Sequence[int] = ()


@dataclass(frozen=True)
class Due:
    task_ids: list[UUID]
    next_at: datetime | None
    """When the earliest of the other tasks is due; None if there is no other task."""
    lists: Mapping[UUID, Sequence[int]] = field(default_factory=dict[UUID, Sequence[int]])
    """The first candidates of each task, as `peek` returns them; none if the caller wanted none."""


class Clockwork(Protocol):
    def apply(self, changes: Sequence[TaskKeys], now: datetime) -> None: ...
    def peek(self, task_ids: Sequence[UUID], most: int) -> dict[UUID, list[int]]: ...
    def claim_due(self, now: datetime, most: int, candidates: int = 0) -> Due:
        """Claims at most `most` tasks, with so many candidates of each, which saves a call."""
        ...

    def scheduled(self, task_ids: Sequence[UUID], now: datetime) -> set[UUID]:
        """The tasks that `claim_due` will return anyway, now or when another process's claim ends."""
        ...

    def versions(self, task_ids: Sequence[UUID]) -> dict[UUID, datetime]: ...
    def fill_list(self, task_id: UUID, ids: Sequence[int], version: datetime) -> None: ...
    def held(self, task_ids: Sequence[UUID]) -> dict[UUID, HeldKeys]:
        """For checks: all keys of these tasks."""
        ...

    def task_ids(self) -> Iterator[set[UUID]]:
        """For checks: the tasks that have any key, in portions. A task may come more than once."""
        ...

    def is_complete(self) -> bool: ...
    def begin_rebuild(self) -> str: ...
    def finish_rebuild(self, token: str) -> None: ...
    def ping(self) -> None: ...
    def close(self) -> None: ...


def to_ms(moment: datetime) -> int:
    """Rounded up, so that a task that is due at this millisecond is due in PostgreSQL too."""
    return math.ceil(moment.timestamp() * 1000)


def from_ms(score: str | float) -> datetime:
    return datetime.fromtimestamp(float(score) / 1000, UTC)
