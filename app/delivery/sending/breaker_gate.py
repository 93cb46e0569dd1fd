"""Asks the breakers that all workers share before a message is sent, and tells them its result."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from app.foundation.errors import Unavailable
from app.redis_store.breakers import GO, Breakers, Passage, Permit

log = structlog.get_logger(__name__)

MOST_KNOWN = 1_000
"""Every host of a webhook is a provider, so the number of those remembered is limited."""
LOOK_EVERY_S = 0.25
"""How long a breaker counts as closed after it was asked, and how long successes are collected before it is told."""


@dataclass
class _Known:
    looked_at: float = float("-inf")
    calls: int = 0
    told_at: float = 0.0


class BreakerGate:
    """Asks the shared state rarely while a provider works. While the shared state cannot be reached it lets everything
    through, because a breaker must not be the reason that nothing is sent.
    """

    def __init__(self, breakers: Breakers, now: Callable[[], float] = time.monotonic) -> None:
        self._breakers = breakers
        self._now = now
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def ask(self, name: str, probe_s: float) -> Permit:
        with self._lock:
            known = self._find(name)
        if self._now() - known.looked_at < LOOK_EVERY_S:
            return GO
        try:
            permit = self._breakers.ask(name, probe_s)
        except Unavailable as error:
            log.warning("breaker_not_asked", breaker=name, code=error.code)
            permit = GO
        if permit.passage is Passage.GO:
            known.looked_at = self._now()
        return permit

    def tell(self, name: str, permit: Permit, *, calls: int, failures: int) -> None:
        with self._lock:
            known = self._find(name)
            probe = permit.passage is Passage.PROBE
            if not probe:
                # A probe reports its own calls only: earlier successes must not close the breaker.
                calls += known.calls
            if not probe and not failures and self._now() - known.told_at < LOOK_EVERY_S:
                known.calls = calls
                return
            known.calls, known.told_at = 0, self._now()
            if failures:
                known.looked_at = float("-inf")
        try:
            self._breakers.tell(name, calls=calls, failures=failures, probe=probe)
        except Unavailable as error:
            log.warning("breaker_not_told", breaker=name, code=error.code)

    def _find(self, name: str) -> _Known:
        if name not in self._known:
            while len(self._known) >= MOST_KNOWN:
                # The oldest. Its untold calls are few, and all are successes.
                del self._known[next(iter(self._known))]
            self._known[name] = _Known(told_at=self._now())
        return self._known[name]
