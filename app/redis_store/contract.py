"""The clockwork as matching knows it: candidate lists, pending keys and deadlines, all of which can be lost.

Whoever calls it has committed to PostgreSQL already, so a failure here costs time, never truth: callers log it and
go on, and the reconciler repairs what is missing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    """What Redis should hold for one task."""

    task_id: UUID
    student_id: int | None = None
    deadline: datetime | None = None
    next_step_at: datetime | None = None
    list_change: ListChange = ListChange.KEEP
    ids: Sequence[int] = ()
    """With KEEP the candidates that were dealt with, with REPLACE the whole new list."""
    version: datetime | None = None
    """When the row said so. What is older than what Redis was told already is refused: a process that was stopped
    between its commit and its hint comes too late to be believed."""


@dataclass(frozen=True)
class Due:
    task_ids: list[UUID]
    next_at: datetime | None
    """When the earliest of the rest is due; None when there is no other."""


class Clockwork(Protocol):
    def apply(self, changes: Sequence[TaskKeys], now: datetime) -> None: ...
    def peek(self, task_ids: Sequence[UUID], most: int) -> dict[UUID, list[int]]: ...
    def claim_due(self, now: datetime, most: int) -> Due: ...
    def scheduled(self, task_ids: Sequence[UUID], now: datetime) -> set[UUID]:
        """Which of them `claim_due` would bring by itself, now or as soon as somebody's claim ends."""
        ...

    def versions(self, task_ids: Sequence[UUID]) -> dict[UUID, datetime]: ...
    def fill_list(self, task_id: UUID, ids: Sequence[int], version: datetime) -> None: ...
    def is_complete(self) -> bool: ...
    def begin_rebuild(self) -> str: ...
    def finish_rebuild(self, token: str) -> None: ...
    def ping(self) -> None: ...
    def close(self) -> None: ...


def to_ms(moment: datetime) -> int:
    """Rounded up: what is due at this millisecond is due in PostgreSQL too."""
    return math.ceil(moment.timestamp() * 1000)


def from_ms(score: str | float) -> datetime:
    return datetime.fromtimestamp(float(score) / 1000, UTC)
