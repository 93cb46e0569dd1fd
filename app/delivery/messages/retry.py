"""When to try again. Pure: it looks at what happened and at the clock it is given, and returns a decision."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.delivery.messages.values import Outcome

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
    overloaded_backoff_s: tuple[float, ...] | None = None
    """Where the provider itself is in trouble (5xx), if that is another."""
    repeatable: bool = True
    """Whether the receiver knows a message that comes again by its id. Where it does not, a message that may have
    been taken is not sent again: a person would read it twice."""


@dataclass(frozen=True)
class Result:
    """What a channel says of one try."""

    outcome: Outcome
    error_code: str | None = None
    provider_message_id: str | None = None
    retry_after_s: float | None = None
    """What the provider asked for."""
    overloaded: bool = False
    at_fault: bool = True
    """Whether a failure speaks against the provider. A full mailbox or a number that is blocked does not, nor does a
    provider that asks us to slow down."""
    disables: bool = False
    """The recipient wants no more: their entry in the directory is switched off."""

    @property
    def counts_against_provider(self) -> bool:
        return self.at_fault and self.outcome in RETRYABLE


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
    lost_track = result.outcome is Outcome.UNKNOWN and not policy.repeatable
    if result.outcome not in RETRYABLE or lost_track or attempt > policy.retries:
        return DeadLetter(code)
    at = now + timedelta(seconds=_wait_s(policy, result, attempt, rng))
    return TooLate(code) if expires_at is not None and at >= expires_at else RetryAt(at)


def _wait_s(policy: RetryPolicy, result: Result, attempt: int, rng: Rng) -> float:
    if result.retry_after_s is not None:
        # Jitter is only ever added: nobody may come back earlier than they were asked to.
        return min(result.retry_after_s, LONGEST_WAIT_S) + rng()
    overloaded = result.overloaded and policy.overloaded_backoff_s is not None
    steps = (policy.overloaded_backoff_s if overloaded else None) or policy.backoff_s
    base = steps[min(attempt, len(steps)) - 1]
    return base * (1.0 + rng() / 2.0)
