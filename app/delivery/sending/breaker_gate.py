"""Asks the shared breakers before a message is sent, and reports its result to them."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import structlog

from app.foundation.errors import Unavailable
from app.redis_store.breakers import GO, Breakers, Passage, Permit

log = structlog.get_logger(__name__)

MOST_KNOWN = 1_000
"""The highest number of providers whose state is kept, because every host of a webhook is a provider."""
ASK_EVERY_S = 0.25
"""A closed breaker is not asked again for this time, and successes are collected for this time before they are
reported."""


@dataclass
class _BreakerCache:
    """The state of one breaker in this process, between two calls of the shared breakers."""

    asked_at: float = float("-inf")
    unreported: int = 0
    reported_at: float = 0.0


class BreakerGate:
    """Asks the shared breakers rarely while a provider works. If they cannot be reached, the gate lets all messages
    through, because a breaker must not be the reason that nothing is sent.
    """

    def __init__(self, breakers: Breakers, now: Callable[[], float] = time.monotonic) -> None:
        self._breakers = breakers
        self._now = now
        self._known: dict[str, _BreakerCache] = {}
        self._lock = threading.Lock()

    def ask(self, name: str, probe_s: float, recipients: Iterable[str]) -> Permit:
        """Reads the recipients only if the breakers are asked."""
        with self._lock:
            known = self._find(name)
        if self._now() - known.asked_at < ASK_EVERY_S:
            return GO
        try:
            permit = self._breakers.ask(name, probe_s, [_marked(one) for one in recipients])
        except Unavailable as error:
            log.warning("breaker_not_asked", breaker=name, code=error.code)
            permit = GO
        if permit.passage is Passage.GO:
            known.asked_at = self._now()
        return permit

    def tell(self, name: str, permit: Permit, *, succeeded: int, failed: Sequence[str]) -> None:
        with self._lock:
            known = self._find(name)
            probe = permit.passage is Passage.PROBE
            if not probe:
                # A probe reports its own calls only: earlier successes must not close the breaker.
                succeeded += known.unreported
            if not probe and not failed and self._now() - known.reported_at < ASK_EVERY_S:
                known.unreported = succeeded
                return
            known.unreported, known.reported_at = 0, self._now()
            if failed:
                known.asked_at = float("-inf")
        try:
            self._breakers.tell(name, succeeded=succeeded, failed=[_marked(one) for one in failed], probe=probe)
        except Unavailable as error:
            log.warning("breaker_not_told", breaker=name, code=error.code)

    def _find(self, name: str) -> _BreakerCache:
        if name not in self._known:
            while len(self._known) >= MOST_KNOWN:
                # The calls of the oldest that are lost here are few, and all are successes.
                del self._known[next(iter(self._known))]
            self._known[name] = _BreakerCache(reported_at=self._now())
        return self._known[name]


def _marked(recipient: str) -> str:
    """A mark for a recipient that is too short to tell from it who it is. If two have the same mark by chance, they
    count as one."""
    return blake2b(recipient.encode(), digest_size=2).hexdigest()
