"""Sweeps PostgreSQL every few seconds for what event and ticker did not bring, and keeps Redis true to it."""

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from app.clock import Clock
from app.db import Database
from app.errors import Unavailable
from app.matching import store
from app.matching.cascade import rank
from app.matching.due import DueTasks
from app.matching.metrics import MatcherMetrics
from app.matching.rules import MatchingRules
from app.matching.states import TaskStatus
from app.matching.store import Standing
from app.redis_store.contract import Clockwork, ListChange, RedisUnavailable, Shown, TaskKeys, to_ms

log = structlog.get_logger(__name__)

CHUNK = 500
CHECK_AFTER = timedelta(seconds=2)
"""What changed is compared with Redis once, this long afterwards: by then whoever made the change has told it."""


class Reconciler:
    def __init__(
        self,
        db: Database,
        clockwork: Clockwork,
        clock: Clock,
        rules: MatchingRules,
        due: DueTasks,
        metrics: MatcherMetrics,
        batch: int,
    ) -> None:
        self._db = db
        self._clockwork = clockwork
        self._clock = clock
        self._rules = rules
        self._due = due
        self._metrics = metrics
        self._batch = batch
        self._checked_until: datetime | None = None
        self._wake = threading.Event()

    def run(self, stop: threading.Event, interval_s: float) -> None:
        while not stop.is_set():
            self._wake.clear()
            try:
                self.sweep()
            except Unavailable as error:
                log.warning("sweep_failed", code=error.code)
            except Exception:
                log.exception("sweep_failed")
            self._wake.wait(interval_s)

    def sweep_soon(self) -> None:
        self._wake.set()

    def sweep(self) -> None:
        self.collect_due()
        try:
            self.restore_redis()
            self.compare_with_redis()
        except RedisUnavailable as error:
            log.warning("sweep_without_redis", code=error.code)

    def collect_due(self) -> None:
        with self._db.transaction() as conn:
            due = store.due_tasks(conn, self._batch)
        self._metrics.backlog.set(self._due.backlog())
        if due:
            self._metrics.found_by_sweep.inc(len(due))
            self._due.add(due)

    def restore_redis(self) -> None:
        """A Redis without the sentinel was emptied, or missed something: everything is written again, deadlines
        first, because lists can wait until they are needed."""
        if self._clockwork.is_complete():
            return
        log.info("redis_is_being_rebuilt")
        token = self._clockwork.begin_rebuild()
        tasks = 0
        searching: list[UUID] = []
        last = UUID(int=0)
        while chunk := self._open_after(last):
            self._show(chunk)
            searching += [standing.task_id for standing in chunk if standing.status is TaskStatus.PENDING]
            tasks += len(chunk)
            last = chunk[-1].task_id
        for start in range(0, len(searching), CHUNK):
            self._restore_lists(searching[start : start + CHUNK])
        self._clockwork.finish_rebuild(token)
        log.info("redis_was_rebuilt", tasks=tasks, lists=len(searching))

    def _open_after(self, last: UUID) -> Sequence[Standing]:
        with self._db.transaction() as conn:
            return store.open_standings(conn, last, CHUNK)

    def _restore_lists(self, task_ids: Sequence[UUID]) -> None:
        missing = [task_id for task_id, ids in self._clockwork.peek(task_ids, 1).items() if not ids]
        for task_id in missing:
            with self._db.transaction() as conn:
                ids = _rank(conn, task_id, self._rules)
            if ids:
                self._clockwork.fill_list(task_id, ids)

    def compare_with_redis(self) -> None:
        """A process that was stopped for a while may have told Redis something that was no longer true."""
        until = self._clock.now() - CHECK_AFTER
        since, self._checked_until = self._checked_until or until - CHECK_AFTER, until
        with self._db.transaction() as conn:
            changed = store.standings_changed(conn, since, until)
        for start in range(0, len(changed), CHUNK):
            chunk = changed[start : start + CHUNK]
            shown = self._clockwork.shown([standing.task_id for standing in chunk])
            wrong = [item for item in chunk if not _agree(item, shown[item.task_id], until)]
            if wrong:
                log.warning("redis_disagreed", tasks=len(wrong))
                self._show(wrong)

    def _show(self, standings: Sequence[Standing]) -> None:
        self._clockwork.apply([_keys(standing) for standing in standings], self._clock.now())


def _keys(standing: Standing) -> TaskKeys:
    return TaskKeys(
        standing.task_id,
        standing.student_id,
        standing.deadline,
        standing.next_step_at,
        ListChange.KEEP if standing.status is TaskStatus.PENDING else ListChange.DROP,
    )


def _agree(standing: Standing, shown: Shown, now: datetime) -> bool:
    if standing.next_step_at is not None and standing.next_step_at <= now:
        return True  # Due: whoever has claimed it has moved it ahead for a moment.
    expected_step = None if standing.next_step_at is None else to_ms(standing.next_step_at)
    shown_step = None if shown.next_step_at is None else to_ms(shown.next_step_at)
    return expected_step == shown_step and standing.student_id == shown.student_id


def _rank(conn: Connection, task_id: UUID, rules: MatchingRules) -> list[int]:
    return [
        item.student_id for task in store.read_tasks(conn, [task_id]) for item in rank(conn, task, rules).candidates
    ]
