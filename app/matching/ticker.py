"""The ticker: sleeps until the next deadline of the sorted set in Redis, and adds the task to the due tasks."""

import threading

import structlog

from app.foundation.clock import Clock
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.matching.due import DueTasks
from app.redis_store.contract import Clockwork

log = structlog.get_logger(__name__)

LONGEST_SLEEP_S = 0.25
"""A deadline is written at least a second before it falls due, so this sleep misses none. A task that is due at once,
because its first offer failed, waits for this time at most."""
SHORTEST_SLEEP_S = 0.0005
ERROR_SLEEP_S = 1.0


class Ticker:
    def __init__(self, clockwork: Clockwork, clock: Clock, due: DueTasks, batch: int, cap: int) -> None:
        self._clockwork = clockwork
        self._clock = clock
        self._due = due
        self._batch = batch
        self._cap = cap

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                sleep_s = self.tick()
            except Unavailable as error:
                log.warning("ticker_cannot_tick", code=error.code)
                sleep_s = ERROR_SLEEP_S
            except Exception as error:
                log.error("ticker_failed", error_type=type(error).__name__, exc_info=True)
                sleep_s = ERROR_SLEEP_S
            stop.wait(sleep_s)

    def tick(self) -> float:
        """Claims the tasks that are due, and returns how long to sleep."""
        if not self._due.wait_until_idle(LONGEST_SLEEP_S):
            # A claim lasts a second. Tasks that are not settled by then would only be claimed again.
            return 0
        due = self._clockwork.claim_due(self._clock.now(), self._batch, self._cap)
        shortest_s = SHORTEST_SLEEP_S
        if due.task_ids:
            failpoint("ticker.claimed")
            # The answer also told when the next task is due. To ask again before that would take as long as a tenth of
            # the batch.
            self._due.settle_or_add(due.task_ids, due.lists)
            shortest_s = 0
        if due.next_at is None:
            return LONGEST_SLEEP_S
        until_next_s = (due.next_at - self._clock.now()).total_seconds()
        return min(max(until_next_s, shortest_s), LONGEST_SLEEP_S)
