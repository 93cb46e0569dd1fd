"""Circuit breakers, shared by all processes, so that no process calls a provider that is down. CLOSED allows all calls.
If calls for too many of the latest recipients failed, the breaker becomes OPEN: notifications wait, and no attempt is
counted. After `open_s` one single call, of any process, is allowed as a probe (HALF_OPEN); its result closes the
breaker or opens it again.

A recipient for whom every call fails says nothing about the others, so a recipient's failures count once in a window,
and recipients without a failure probe first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from app.foundation.state_machine import TransitionTable
from app.redis_store import keys, scripts
from app.redis_store.client import Reach


class Passage(StrEnum):
    GO = "go"
    PROBE = "probe"
    WAIT = "wait"


@dataclass(frozen=True)
class Permit:
    passage: Passage
    wait_s: float = 0.0
    chosen: int = 0
    """The place of the probe among the recipients that were asked for."""


GO = Permit(Passage.GO)


@dataclass(frozen=True)
class BreakerRules:
    window_s: float = 10.0
    failures: int = 10
    """The breaker never opens with fewer recipients in a window whose calls failed."""
    share: float = 0.5
    """The breaker opens only if this share of a window's successes and failed recipients failed."""
    open_s: float = 15.0

    @property
    def others_first_s(self) -> float:
        """The time in which only others may probe than the recipients that have failed; the one that failed last waits
        twice as long. Longer than the jitter with which the messages that wait come back."""
        return self.open_s / 3


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


# The script `TELL_BREAKER` opens and closes a breaker, and `ASK_BREAKER` makes it half open. A breaker without a key is
# closed. HALF_OPEN to OPEN: the probe failed, was not made, or did not end in its time. OPEN to CLOSED: the probe
# succeeded after its time.
BREAKER_TRANSITIONS: TransitionTable[BreakerState] = {
    None: frozenset({BreakerState.CLOSED}),
    BreakerState.CLOSED: frozenset({BreakerState.OPEN}),
    BreakerState.OPEN: frozenset({BreakerState.HALF_OPEN, BreakerState.CLOSED}),
    BreakerState.HALF_OPEN: frozenset({BreakerState.OPEN, BreakerState.CLOSED}),
}


class Breakers(Protocol):
    """The state of all breakers. Each method is atomic."""

    def ask(self, name: str, probe_s: float, recipients: Sequence[str]) -> Permit:
        """Whether calls may be made for these recipients, of which one may be the probe. After PROBE the caller has
        `probe_s` seconds to report its result."""
        ...

    def tell(self, name: str, *, succeeded: int, failed: Sequence[str] = (), probe: bool = False) -> None:
        """Reports the number of calls that succeeded, and the recipients of those that failed, the last one last."""
        ...

    def states(self) -> dict[str, BreakerState]: ...

    def close(self) -> None: ...


class RedisBreakers:
    """If Redis loses its data, all breakers are closed again."""

    def __init__(self, client: Any, rules: BreakerRules | None = None, now: Callable[[], float] | None = None) -> None:
        """`now` replaces Redis's own clock in tests."""
        rules = rules or BreakerRules()
        self._client = client
        self._reach = Reach()
        self._now = now
        self._ask = client.register_script(scripts.ASK_BREAKER)
        self._tell = client.register_script(scripts.TELL_BREAKER)
        self._others_first_ms = _ms(rules.others_first_s)
        self._rules = (_ms(rules.window_s), rules.failures, rules.share, _ms(rules.open_s), keys.BREAKER_TTL_S * 1000)

    def ask(self, name: str, probe_s: float, recipients: Sequence[str]) -> Permit:
        arguments = [_ms(probe_s), self._now_ms(), self._others_first_ms, *recipients]
        with self._reach:
            passage, wait_ms, chosen = self._ask(keys=[keys.breaker(name)], args=arguments)
        return Permit(Passage(passage), wait_ms / 1000, chosen)

    def tell(self, name: str, *, succeeded: int, failed: Sequence[str] = (), probe: bool = False) -> None:
        arguments = [succeeded, int(probe), self._now_ms(), *self._rules, *failed]
        with self._reach:
            self._tell(keys=[keys.breaker(name)], args=arguments)

    def states(self) -> dict[str, BreakerState]:
        with self._reach:
            found = list(self._client.scan_iter(match=f"{keys.BREAKER_PREFIX}*", count=500))
            pipe = self._client.pipeline(transaction=False)
            for key in found:
                pipe.hmget(key, "open_until", "probe_until")
            fields = pipe.execute()
            now_ms = self._now_ms() or self._redis_ms()
        return {
            key.removeprefix(keys.BREAKER_PREFIX): _state(open_until, probe_until, now_ms)
            for key, (open_until, probe_until) in zip(found, fields, strict=True)
        }

    def _now_ms(self) -> int | str:
        return _ms(self._now()) if self._now is not None else ""

    def _redis_ms(self) -> int:
        seconds, microseconds = self._client.time()
        return seconds * 1000 + microseconds // 1000

    def close(self) -> None:
        self._client.close()


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _state(open_until: str | None, probe_until: str | None, now_ms: int | str) -> BreakerState:
    if open_until is None:
        return BreakerState.CLOSED
    return BreakerState.HALF_OPEN if float(probe_until or 0) > float(now_ms) else BreakerState.OPEN
