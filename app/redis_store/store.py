"""The clockwork: candidate lists, pending keys and deadlines. It can be lost at any time.

Whoever calls it has committed to PostgreSQL already, so a failure here costs time, never truth: the callers log
it and go on, and the reconciler repairs what is missing.
"""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol, cast
from uuid import UUID

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from app.errors import Unavailable
from app.redis_store import keys, scripts

CLAIM_MS = 1000
DOWN_PAUSE_S = 1.0


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
    ids: Sequence[int] = field(default_factory=tuple)
    """With KEEP the candidates that were dealt with, with REPLACE the whole new list."""


@dataclass(frozen=True)
class Due:
    task_ids: list[UUID]
    next_at: datetime | None
    """When the earliest of the rest is due; None when there is no other."""


@dataclass(frozen=True)
class Shown:
    """What Redis holds for one task now, to compare with PostgreSQL."""

    student_id: int | None
    next_step_at: datetime | None


class Clockwork(Protocol):
    def apply(self, changes: Sequence[TaskKeys], now: datetime) -> None: ...
    def peek(self, task_ids: Sequence[UUID], most: int) -> dict[UUID, list[int]]: ...
    def claim_due(self, now: datetime, most: int) -> Due: ...
    def shown(self, task_ids: Sequence[UUID]) -> dict[UUID, Shown]: ...
    def is_alive(self) -> bool: ...
    def mark_alive(self) -> None: ...
    def ping(self) -> None: ...
    def close(self) -> None: ...


def to_ms(moment: datetime) -> int:
    """Rounded up: what is due at this millisecond is due in PostgreSQL too."""
    return math.ceil(moment.timestamp() * 1000)


def from_ms(score: str | float) -> datetime:
    return datetime.fromtimestamp(float(score) / 1000, UTC)


class RedisClockwork:
    def __init__(self, redis_url: str, timeout_s: float = 0.5) -> None:
        # One try and short timeouts: a press must not wait for a Redis that is gone, and a script that is run
        # again by the client would count twice.
        self._client: Any = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            redis_url,
            decode_responses=True,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
        )
        self._set_task = self._client.register_script(scripts.SET_TASK)
        self._claim_due = self._client.register_script(scripts.CLAIM_DUE)
        self._down_until = 0.0
        self._lock = threading.Lock()

    def apply(self, changes: Sequence[TaskKeys], now: datetime) -> None:
        if not changes:
            return
        with self._reachable():
            pipe = self._client.pipeline(transaction=False)
            for change in changes:
                self._set_task(
                    keys=[keys.candidates(change.task_id), keys.pending(change.task_id), keys.DEADLINES],
                    args=_arguments(change, now),
                    client=cast(Any, pipe),
                )
            pipe.execute()

    def peek(self, task_ids: Sequence[UUID], most: int) -> dict[UUID, list[int]]:
        if not task_ids:
            return {}
        with self._reachable():
            pipe = self._client.pipeline(transaction=False)
            for task_id in task_ids:
                pipe.lrange(keys.candidates(task_id), 0, most - 1)
            lists: list[list[str]] = pipe.execute()
        return {task_id: [int(item) for item in items] for task_id, items in zip(task_ids, lists, strict=True)}

    def claim_due(self, now: datetime, most: int) -> Due:
        now_ms = int(now.timestamp() * 1000)
        with self._reachable():
            first, *ids = cast(
                list[str],
                self._claim_due(keys=[keys.DEADLINES], args=[now_ms, most, now_ms + CLAIM_MS, keys.PENDING_PREFIX]),
            )
        return Due([UUID(item) for item in ids], from_ms(first) if first else None)

    def shown(self, task_ids: Sequence[UUID]) -> dict[UUID, Shown]:
        if not task_ids:
            return {}
        with self._reachable():
            pipe = self._client.pipeline(transaction=False)
            for task_id in task_ids:
                pipe.get(keys.pending(task_id))
                pipe.zscore(keys.DEADLINES, str(task_id))
            answers = cast(list[Any], pipe.execute())
        return {
            task_id: Shown(int(student) if student else None, from_ms(score) if score is not None else None)
            for task_id, student, score in zip(task_ids, answers[0::2], answers[1::2], strict=True)
        }

    def is_alive(self) -> bool:
        with self._reachable():
            return bool(self._client.exists(keys.SENTINEL))

    def mark_alive(self) -> None:
        with self._reachable():
            self._client.set(keys.SENTINEL, "1")

    def ping(self) -> None:
        with self._reachable():
            self._client.ping()

    def close(self) -> None:
        self._client.close()

    def _reachable(self) -> "_Reachable":
        return _Reachable(self)

    def refuse_while_down(self) -> None:
        if time.monotonic() < self._down_until:
            raise RedisUnavailable("Redis did not answer a moment ago.")

    def note_down(self) -> None:
        with self._lock:
            self._down_until = time.monotonic() + DOWN_PAUSE_S


class _Reachable:
    """Translates the driver's errors, and after one of them spares callers the timeout for a moment."""

    def __init__(self, clockwork: RedisClockwork) -> None:
        self._clockwork = clockwork

    def __enter__(self) -> None:
        self._clockwork.refuse_while_down()

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, (redis.ConnectionError, redis.TimeoutError)):
            self._clockwork.note_down()
            raise RedisUnavailable("Redis does not answer.") from error
        if isinstance(error, redis.ResponseError):
            raise RedisUnavailable("Redis refused a command.") from error


def _arguments(change: TaskKeys, now: datetime) -> list[str | int]:
    left_ms = 0
    if change.student_id is not None and change.deadline is not None:
        # Rounded up, so that the key never ends before the offer does.
        left_ms = int((change.deadline - now).total_seconds() * 1000) + 1
    asked = change.student_id if left_ms > 0 and change.student_id is not None else ""
    next_step = to_ms(change.next_step_at) if change.next_step_at is not None else ""
    return [
        str(change.task_id),
        asked,
        left_ms,
        next_step,
        change.list_change.value,
        keys.CANDIDATES_TTL_S,
        *change.ids,
    ]
