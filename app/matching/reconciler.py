"""Sweeps PostgreSQL every few seconds for due tasks that neither an event nor the ticker found, for students whose new
place counts from now on, and for alarms that are owed; and makes Redis agree with PostgreSQL."""

import threading

import structlog

from app.foundation.errors import Unavailable
from app.matching.cascade import send_owed_alarms
from app.matching.due import DueTasks
from app.matching.metrics import MatcherMetrics
from app.matching.missed_deadlines import MissedDeadlines
from app.matching.redis_sync import RedisSync
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.stores import Stores

log = structlog.get_logger(__name__)

INTERVAL_WHEN_OFF_S = 30.0
"""The interval of a reconciler that is switched off. It still sweeps at the start, after every reconnect of the
listener, and at this interval, because some due times, such as the end of a search that waits for a student, have no
key in Redis that could expire."""


class Reconciler:
    def __init__(
        self,
        stores: Stores,
        redis_sync: RedisSync,
        due: DueTasks,
        missed: MissedDeadlines,
        metrics: MatcherMetrics,
        rules: MatchingRules,
        *,
        batch: int,
        interval_s: float,
    ) -> None:
        self._stores = stores
        self._rules = rules
        self._redis_sync = redis_sync
        self._due = due
        self._missed = missed
        self._metrics = metrics
        self._batch = batch
        self._interval_s = interval_s
        self._wake = threading.Event()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._wake.clear()
            try:
                self.sweep()
            except Unavailable as error:
                log.warning("sweep_failed", code=error.code)
            except Exception as error:
                log.error("sweep_failed", error_type=type(error).__name__, exc_info=True)
            self._wake.wait(self._interval_s)

    def sweep_soon(self) -> None:
        self._wake.set()

    def sweep(self) -> None:
        self.collect_due()
        self.place_waiting_students()
        self.send_owed_alarms()
        self._redis_sync.refresh()

    def place_waiting_students(self) -> None:
        with self._stores.transaction() as store:
            placed = store.place_waiting_students(self._batch)
        if placed:
            with self._stores.reading() as store:
                self._due.add(store.oldest_waiting_tasks(placed, self._rules))

    def send_owed_alarms(self) -> None:
        with self._stores.transaction() as store:
            send_owed_alarms(store, self._rules)

    def collect_due(self) -> None:
        with self._stores.reading() as store:
            due = store.due_tasks(self._batch)
        if due and (missed := self._missed.find()):
            self._metrics.found_by_sweep.inc(len(missed))
            log.warning("missed_deadlines_found", tasks=len(missed))
        self._due.add(due)
