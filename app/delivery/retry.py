"""When to try again. Pure: it looks at what happened and at the clock it is given, and returns a decision."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.delivery.models import Outcome

Rng = Callable[[], float]
"""A number from 0 to 1, as `random.random` gives it."""

RETRYABLE = frozenset({Outcome.TRANSIENT, Outcome.UNKNOWN})
# A provider's wish wins over our own backoff, but a nonsensical one must not bury a message.
LONGEST_WAIT_S = 3600.0


@dataclass(frozen=True)
class RetryPolicy:
    timeout_s: float
    retries: int
    backoff_s: tuple[float, ...] = (1.0, 5.0, 15.0)
    overloaded_backoff_s: tuple[float, ...] = (10.0, 30.0, 60.0)
    """Where the provider itself is in trouble (5xx), haste makes it worse."""


# A read timeout is tried again although the phone may have it already: the message carries its id, and the same
# id replaces what is shown instead of showing it twice.
PUSH_POLICY = RetryPolicy(timeout_s=3.0, retries=2)


@dataclass(frozen=True)
class Result:
    """What a channel says of one try."""

    outcome: Outcome
    error_code: str | None = None
    provider_message_id: str | None = None
    retry_after_s: float | None = None
    """What the provider asked for."""
    overloaded: bool = False


@dataclass(frozen=True)
class RetryAt:
    at: datetime


@dataclass(frozen=True)
class DeadLetter:
    error_code: str


@dataclass(frozen=True)
class TooLate:
    """The next try would come after the notification has lost its meaning."""

    error_code: str


RetryDecision = RetryAt | DeadLetter | TooLate


def decide_retry(
    policy: RetryPolicy, result: Result, attempt: int, now: datetime, rng: Rng, expires_at: datetime | None = None
) -> RetryDecision:
    """`attempt` counts failed tries, this one included."""
    code = result.error_code or result.outcome.value
    if result.outcome not in RETRYABLE or attempt > policy.retries:
        return DeadLetter(code)
    at = now + timedelta(seconds=_wait_s(policy, result, attempt, rng))
    return TooLate(code) if expires_at is not None and at >= expires_at else RetryAt(at)


def _wait_s(policy: RetryPolicy, result: Result, attempt: int, rng: Rng) -> float:
    if result.retry_after_s is not None:
        # Jitter is only ever added: nobody may come back earlier than they were asked to.
        return min(result.retry_after_s, LONGEST_WAIT_S) + rng()
    steps = policy.overloaded_backoff_s if result.overloaded else policy.backoff_s
    base = steps[min(attempt, len(steps)) - 1]
    return base * (1.0 + rng() / 2.0)
