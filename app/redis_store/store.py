"""The implementation of `Clockwork` on Redis."""

import json
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID, uuid4

from app.foundation.failpoints import failpoint
from app.redis_store import keys, scripts
from app.redis_store.client import DOWN_PAUSE_S, FastScript, Reach, open_client
from app.redis_store.contract import Due, HeldKeys, RedisUnavailable, TaskKeys, from_ms, to_ms

CLAIM_MS = 1000
SOON_MS = 2 * CLAIM_MS
"""Longer than one claim, because another process may have claimed a task after the caller of `scheduled` read the
clock."""
SCANNED_AT_ONCE = 500
SET_AT_ONCE = 100
"""Every other client of Redis waits while a script runs."""


def connect(redis_url: str, timeout_s: float = 0.5, pool_size: int = 16) -> "RedisClockwork":
    return RedisClockwork(open_client(redis_url, timeout_s=timeout_s, pool_size=pool_size))


class RedisClockwork:
    def __init__(self, client: Any, down_pause_s: float = DOWN_PAUSE_S) -> None:
        self._client = client
        self._reach = Reach(down_pause_s)
        self._set_tasks = FastScript(client, scripts.SET_TASKS)
        self._peek = FastScript(client, scripts.PEEK)
        self._claim_due = FastScript(client, scripts.CLAIM_DUE)
        self._fill_list = client.register_script(scripts.FILL_LIST)
        self._finish_rebuild = client.register_script(scripts.FINISH_REBUILD)
        # The number of failed writes. When Redis answers again, this process deletes the sentinel, and a reconciler
        # writes all keys again. If this process dies before that, the reconciler finds the changes later.
        self._missed = 0
        self._counting = threading.Lock()

    def apply(self, changes: Sequence[TaskKeys], now: datetime) -> None:
        if not changes:
            return
        missed = self._missed
        try:
            with self._reach:
                failpoint("redis.untold")
                if missed:
                    self._client.delete(keys.SENTINEL)
                for start in range(0, len(changes), SET_AT_ONCE):
                    self._set(changes[start : start + SET_AT_ONCE], now)
        except RedisUnavailable:
            with self._counting:
                self._missed += 1
            raise
        failpoint("redis.told")
        self._reset_missed(missed)

    def _set(self, changes: Sequence[TaskKeys], now: datetime) -> None:
        self._set_tasks(
            keys=[keys.DEADLINES],
            args=[
                json.dumps([_values(change, now) for change in changes]),
                keys.CANDIDATES_TTL_S,
                keys.VERSION_TTL_S,
                keys.CANDIDATES_PREFIX,
                keys.PENDING_PREFIX,
                keys.VERSION_PREFIX,
            ],
        )

    def peek(self, task_ids: Sequence[UUID], most: int) -> dict[UUID, list[int]]:
        if not task_ids:
            return {}
        with self._reach:
            lists: list[list[str]] = self._peek(
                keys=[keys.candidates(task_id) for task_id in task_ids], args=[most - 1]
            )
        return {task_id: _numbers(items) for task_id, items in zip(task_ids, lists, strict=True)}

    def claim_due(self, now: datetime, most: int, candidates: int = 0) -> Due:
        now_ms = int(now.timestamp() * 1000)
        with self._reach:
            first, ids, lists = self._claim_due(
                keys=[keys.DEADLINES],
                args=[now_ms, most, now_ms + CLAIM_MS, keys.PENDING_PREFIX, keys.CANDIDATES_PREFIX, candidates],
            )
        tasks = {item: task_id for item in ids if (task_id := keys.parse_task_id(item)) is not None}
        self._remove_foreign_members(set(ids) - tasks.keys())
        read = {tasks[item]: _numbers(listed) for item, listed in zip(ids, lists, strict=True) if item in tasks}
        return Due(list(tasks.values()), from_ms(first) if first else None, read if candidates else {})

    def _remove_foreign_members(self, members: set[str]) -> None:
        """Removes members that are not task ids. Another program added them, and they would stay first in the set."""
        if members:
            with self._reach:
                self._client.zrem(keys.DEADLINES, *members)

    def scheduled(self, task_ids: Sequence[UUID], now: datetime) -> set[UUID]:
        if not task_ids:
            return set()
        with self._reach:
            scores: list[float | None] = self._client.zmscore(keys.DEADLINES, [str(task_id) for task_id in task_ids])
        latest = to_ms(now) + SOON_MS
        return {
            task_id for task_id, score in zip(task_ids, scores, strict=True) if score is not None and score <= latest
        }

    def versions(self, task_ids: Sequence[UUID]) -> dict[UUID, datetime]:
        """The version that Redis has of each task; 1970 if it has none."""
        if not task_ids:
            return {}
        with self._reach:
            versions: list[str | None] = self._client.mget([keys.version(task_id) for task_id in task_ids])
        return {task_id: _moment(item) for task_id, item in zip(task_ids, versions, strict=True)}

    def fill_list(self, task_id: UUID, ids: Sequence[int], version: datetime) -> None:
        with self._reach:
            self._fill_list(
                keys=[keys.candidates(task_id), keys.version(task_id)],
                args=[keys.CANDIDATES_TTL_S, _version(version), *ids],
            )

    def held(self, task_ids: Sequence[UUID]) -> dict[UUID, HeldKeys]:
        with self._reach:
            pipe = self._client.pipeline(transaction=False)
            for task_id in task_ids:
                pipe.get(keys.pending(task_id))
                pipe.zscore(keys.DEADLINES, str(task_id))
                pipe.lrange(keys.candidates(task_id), 0, -1)
            answers: list[Any] = pipe.execute() if task_ids else []
        return {
            task_id: HeldKeys(
                int(asked) if asked else None, int(score) if score is not None else None, [int(item) for item in listed]
            )
            for task_id, asked, score, listed in zip(task_ids, answers[::3], answers[1::3], answers[2::3], strict=True)
        }

    def task_ids(self) -> Iterator[set[UUID]]:
        """SCAN and ZSCAN, because no other client has to wait for them."""
        with self._reach:
            for prefix in (keys.PENDING_PREFIX, keys.CANDIDATES_PREFIX):
                names: Iterator[str] = self._client.scan_iter(f"{prefix}*", count=SCANNED_AT_ONCE)
                yield from _portions(name.removeprefix(prefix) for name in names)
            members = self._client.zscan_iter(keys.DEADLINES, count=SCANNED_AT_ONCE)
            yield from _portions(member for member, _ in members)

    def is_complete(self) -> bool:
        with self._reach:
            return self._client.get(keys.SENTINEL) == "1" and not self._missed

    def begin_rebuild(self) -> str:
        token, missed = f"rebuild {uuid4()}", self._missed
        with self._reach:
            self._client.set(keys.SENTINEL, token)
        self._reset_missed(missed)
        return token

    def finish_rebuild(self, token: str) -> None:
        with self._reach:
            self._finish_rebuild(keys=[keys.SENTINEL], args=[token])

    def ping(self) -> None:
        with self._reach:
            self._client.ping()

    def close(self) -> None:
        self._client.close()

    def _reset_missed(self, missed: int) -> None:
        """Only if no write of another thread has failed since."""
        with self._counting:
            if self._missed == missed:
                self._missed = 0


def _numbers(items: list[str]) -> list[int]:
    return [int(item) for item in items]


def _portions(names: Iterator[str]) -> Iterator[set[UUID]]:
    while batch := list(islice(names, SCANNED_AT_ONCE)):
        yield {task_id for name in batch if (task_id := keys.parse_task_id(name)) is not None}


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def _version(moment: datetime | None) -> int:
    return 0 if moment is None else (moment - EPOCH) // MICROSECOND


def _moment(version: str | None) -> datetime:
    return EPOCH + int(version or 0) * MICROSECOND


def _values(change: TaskKeys, now: datetime) -> list[Any]:
    """For `SET_TASKS`. Texts, because Lua would round large numbers when it writes them."""
    left_ms = 0
    if change.student_id is not None and change.deadline is not None:
        # Rounded up, so that the key never expires before the offer.
        left_ms = int((change.deadline - now).total_seconds() * 1000) + 1
    return [
        str(change.task_id),
        str(change.student_id) if left_ms > 0 else "",
        str(left_ms),
        str(to_ms(change.next_step_at)) if change.next_step_at is not None else "",
        change.list_change.value,
        str(_version(change.version)),
        [str(id_) for id_ in change.ids],
    ]
