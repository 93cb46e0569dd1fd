"""Sleeps until the next deadline in the sorted set, and brings the task when it falls due."""

import threading

import structlog

from app.foundation.clock import Clock
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.matching.due import DueTasks
from app.redis_store.contract import Clockwork

log = structlog.get_logger(__name__)

LONGEST_NAP_S = 0.25
"""A deadline is at least a second away when it is written, so this misses none. A next step that is due at once, which
is written when a first offer failed, waits this long at most."""
SHORTEST_NAP_S = 0.0005
DOWN_NAP_S = 1.0


class Ticker:
    def __init__(self, clockwork: Clockwork, clock: Clock, due: DueTasks, batch: int) -> None:
        self._clockwork = clockwork
        self._clock = clock
        self._due = due
        self._batch = batch

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                nap_s = self.tick()
            except Unavailable as error:
                log.warning("ticker_cannot_tick", code=error.code)
                nap_s = DOWN_NAP_S
            except Exception as error:
                log.error("ticker_failed", error_type=type(error).__name__, exc_info=True)
                nap_s = DOWN_NAP_S
            stop.wait(nap_s)

    def tick(self) -> float:
        """Brings what is due, and returns how long to sleep."""
        if not self._due.wait_until_idle(LONGEST_NAP_S):
            # A claimed deadline comes up again in a second, so claiming more than can be settled is no use.
            return 0
        due = self._clockwork.claim_due(self._clock.now(), self._batch)
        if due.task_ids:
            failpoint("ticker.claimed")
            self._due.add(due.task_ids)
            return 0
        if due.next_at is None:
            return LONGEST_NAP_S
        until_next_s = (due.next_at - self._clock.now()).total_seconds()
        return min(max(until_next_s, SHORTEST_NAP_S), LONGEST_NAP_S)
