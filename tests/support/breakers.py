"""Breakers of one test, in memory."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.delivery.sending.breaker_gate import BreakerGate
from app.redis_store.breakers import GO, BreakerRules, BreakerState, Passage, Permit


@dataclass
class _Breaker:
    began: float = 0.0
    succeeded: int = 0
    failed: set[str] = field(default_factory=set[str])
    last_failed: str | None = None
    open_until: float | None = None
    probe_until: float = 0.0


class MemoryBreakers:
    """Does the same as the scripts in `redis_store/scripts.py`; the contract suite compares them."""

    def __init__(self, rules: BreakerRules | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules or BreakerRules()
        self._now = now
        self._breakers: dict[str, _Breaker] = {}
        self._lock = threading.Lock()

    def ask(self, name: str, probe_s: float, recipients: Sequence[str]) -> Permit:
        with self._lock:
            now, breaker = self._now(), self._breakers.get(name)
            if breaker is None or breaker.open_until is None:
                return GO
            turns = [2 if one == breaker.last_failed else int(one in breaker.failed) for one in recipients]
            from_s = breaker.open_until
            if now >= from_s:
                from_s += min(turns) * self._rules.others_first_s
            wait_s = max(from_s, breaker.probe_until) - now
            if wait_s > 0:
                return Permit(Passage.WAIT, wait_s)
            breaker.probe_until = now + probe_s
            return Permit(Passage.PROBE, chosen=turns.index(min(turns)))

    def tell(self, name: str, *, succeeded: int, failed: Sequence[str] = (), probe: bool = False) -> None:
        rules = self._rules
        with self._lock:
            now, breaker = self._now(), self._breakers.setdefault(name, _Breaker())
            if probe:
                breaker.probe_until = 0.0
                if failed:
                    breaker.failed.update(failed)
                    breaker.last_failed, breaker.open_until = failed[-1], now + rules.open_s
                elif succeeded:
                    self._breakers[name] = _Breaker()
                return
            if breaker.open_until is not None:
                return
            if now - breaker.began > rules.window_s:
                breaker = self._breakers[name] = _Breaker(began=now)
            breaker.succeeded += succeeded
            breaker.failed.update(failed)
            breaker.last_failed = failed[-1] if failed else breaker.last_failed
            number = len(breaker.failed)
            if number >= rules.failures and number >= rules.share * (breaker.succeeded + number):
                breaker.open_until = now + rules.open_s

    def states(self) -> dict[str, BreakerState]:
        with self._lock:
            return {name: self._state(breaker) for name, breaker in self._breakers.items()}

    def close(self) -> None:
        """There is nothing to close."""

    def _state(self, breaker: _Breaker) -> BreakerState:
        if breaker.open_until is None:
            return BreakerState.CLOSED
        return BreakerState.HALF_OPEN if breaker.probe_until > self._now() else BreakerState.OPEN


def new_gate() -> BreakerGate:
    """A gate with breakers of its own."""
    return BreakerGate(MemoryBreakers())
