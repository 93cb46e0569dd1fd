"""The clockwork in memory, for tests: the keys of `keys.py` as plain values, their lifetimes by the clock given."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from app.foundation.clock import Clock
from app.redis_store.contract import Due, ListChange, RedisUnavailable, TaskKeys, from_ms, to_ms
from app.redis_store.keys import CANDIDATES_TTL_S, VERSION_TTL_S
from app.redis_store.store import CLAIM_MS, SOON_MS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Shown:
    """What is held for one task."""

    candidates: list[int]
    asked: int | None
    next_step_at: datetime | None


class MemoryClockwork:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.is_down = False
        self._missed = False
        self._tokens = count(1)
        self.lose_everything()

    def lose_everything(self) -> None:
        self._lists: dict[UUID, tuple[list[int], datetime]] = {}
        self._pending: dict[UUID, tuple[int, datetime]] = {}
        self._deadlines: dict[UUID, int] = {}
        self._versions: dict[UUID, tuple[datetime, datetime]] = {}
        self._sentinel = ""

    def lose_lists(self) -> None:
        self._lists.clear()

    def shown(self, task_id: UUID) -> Shown:
        asked, until = self._pending.get(task_id, (None, EPOCH))
        score = self._deadlines.get(task_id)
        return Shown(
            list(self._list(task_id)),
            asked if until > self._clock.now() else None,
            None if score is None else from_ms(score),
        )

    def apply(self, changes: Sequence[TaskKeys], now: datetime) -> None:
        if not changes:
            return
        if self.is_down:
            self._missed = True
        self.ping()
        if self._missed:
            self._sentinel, self._missed = "", False
        for change in changes:
            if self._believes(change):
                self._set_list(change)
                self._set_pending(change, now)
                self._set_deadline(change)

    def _believes(self, change: TaskKeys) -> bool:
        if change.version is None:
            return True
        if self._version(change.task_id) > change.version:
            return False
        self._versions[change.task_id] = change.version, self._lives(VERSION_TTL_S)
        return True

    def _set_list(self, change: TaskKeys) -> None:
        if change.list_change is ListChange.KEEP:
            listed = self._list(change.task_id)
            for student_id in change.ids:
                if student_id in listed:
                    listed.remove(student_id)
        else:
            self._lists.pop(change.task_id, None)
        if change.list_change is ListChange.REPLACE and change.ids:
            self._lists[change.task_id] = list(change.ids), self._lives(CANDIDATES_TTL_S)

    def _set_pending(self, change: TaskKeys, now: datetime) -> None:
        self._pending.pop(change.task_id, None)
        if change.student_id is not None and change.deadline is not None and change.deadline > now:
            self._pending[change.task_id] = change.student_id, change.deadline

    def _set_deadline(self, change: TaskKeys) -> None:
        self._deadlines.pop(change.task_id, None)
        if change.next_step_at is not None:
            self._deadlines[change.task_id] = to_ms(change.next_step_at)

    def peek(self, task_ids: Sequence[UUID], most: int) -> dict[UUID, list[int]]:
        self.ping()
        return {task_id: self._list(task_id)[:most] for task_id in task_ids}

    def claim_due(self, now: datetime, most: int) -> Due:
        self.ping()
        now_ms = int(now.timestamp() * 1000)
        due = sorted((score, str(task_id), task_id) for task_id, score in self._deadlines.items() if score <= now_ms)
        ids = [task_id for _, _, task_id in due[:most]]
        self._deadlines |= dict.fromkeys(ids, now_ms + CLAIM_MS)
        return Due(ids, from_ms(min(self._deadlines.values())) if self._deadlines else None)

    def scheduled(self, task_ids: Sequence[UUID], now: datetime) -> set[UUID]:
        self.ping()
        latest = to_ms(now) + SOON_MS
        return {task_id for task_id in task_ids if self._deadlines.get(task_id, latest + 1) <= latest}

    def versions(self, task_ids: Sequence[UUID]) -> dict[UUID, datetime]:
        self.ping()
        return {task_id: self._version(task_id) for task_id in task_ids}

    def fill_list(self, task_id: UUID, ids: Sequence[int], version: datetime) -> None:
        self.ping()
        if self._version(task_id) <= version and not self._list(task_id):
            self._lists[task_id] = list(ids), self._lives(CANDIDATES_TTL_S)

    def is_complete(self) -> bool:
        self.ping()
        return self._sentinel == "1" and not self._missed

    def begin_rebuild(self) -> str:
        self.ping()
        self._sentinel, self._missed = f"rebuild {next(self._tokens)}", False
        return self._sentinel

    def finish_rebuild(self, token: str) -> None:
        self.ping()
        if self._sentinel == token:
            self._sentinel = "1"

    def ping(self) -> None:
        if self.is_down:
            raise RedisUnavailable("Redis does not answer.")

    def close(self) -> None:
        self.lose_everything()

    def _lives(self, seconds: int) -> datetime:
        return self._clock.now() + timedelta(seconds=seconds)

    def _list(self, task_id: UUID) -> list[int]:
        listed, until = self._lists.get(task_id, ([], EPOCH))
        return listed if until > self._clock.now() else []

    def _version(self, task_id: UUID) -> datetime:
        version, until = self._versions.get(task_id, (EPOCH, EPOCH))
        return version if until > self._clock.now() else EPOCH
