"""Decides whether and when a notification is tried again. Pure.

The policy of each channel is in the module of the channel. The settings may change its time limit, its retries and its
pauses.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.delivery.messages.values import Outcome
from app.foundation.backoff import BACKOFF_S, Rng, backoff_pause_s
from app.settings.settings import Settings

RETRYABLE = frozenset({Outcome.TRANSIENT, Outcome.UNKNOWN})
# The provider's Retry-After replaces our own backoff, up to this limit.
LONGEST_WAIT_S = 3600.0


@dataclass(frozen=True)
class RetryPolicy:
    timeout_s: float
    retries: int
    backoff_s: tuple[float, ...] = BACKOFF_S
    overloaded_backoff_s: tuple[float, ...] | None = None
    """The pauses after the provider answered that it is overloaded or broken (5xx); None for those of `backoff_s`."""
    repeatable: bool = True
    """True if the receiver recognises a repeated message by its id. If False, a message that the provider may have
    taken is not sent again, because the person would read it twice."""


def names_of_settings(type_: str) -> tuple[str, str, str]:
    """The settings of the time limit, the retries and the pauses of a type."""
    return f"{type_.lower()}_timeout_s", f"{type_.lower()}_retries", f"{type_.lower()}_backoff_s"


def policy_of(settings: Settings, type_: str, declared: RetryPolicy) -> RetryPolicy:
    timeout_s, retries, backoff_s = (getattr(settings, name) for name in names_of_settings(type_))
    return replace(declared, timeout_s=timeout_s, retries=retries, backoff_s=backoff_s)


@dataclass(frozen=True)
class SendResult:
    """The result of a channel for one message."""

    outcome: Outcome
    error_code: str | None = None
    provider_message_id: str | None = None
    retry_after_s: float | None = None
    """The pause that the provider asked for."""
    overloaded: bool = False
    at_fault: bool = True
    """True if the failure is the provider's fault. False for a full mailbox, a blocked number, or a request to send
    more slowly."""
    disables: bool = False
    """The recipient wants no more messages, so their channel in the directory is disabled."""

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
    """The next attempt would come at or after `expires_at`."""

    error_code: str


RetryDecision = RetryAt | DeadLetter | TooLate


def decide_retry(
    policy: RetryPolicy, result: SendResult, attempt: int, now: datetime, rng: Rng, expires_at: datetime | None = None
) -> RetryDecision:
    """`attempt` is the number of failed attempts, including this one."""
    code = result.error_code or result.outcome.value
    may_be_sent = result.outcome is Outcome.UNKNOWN and not policy.repeatable
    if result.outcome not in RETRYABLE or may_be_sent or attempt > policy.retries:
        return DeadLetter(code)
    at = now + timedelta(seconds=_wait_s(policy, result, attempt, rng))
    return TooLate(code) if expires_at is not None and at >= expires_at else RetryAt(at)


def _wait_s(policy: RetryPolicy, result: SendResult, attempt: int, rng: Rng) -> float:
    if result.retry_after_s is not None:
        # The jitter is added, so that no attempt comes earlier than the provider asked for.
        return min(result.retry_after_s, LONGEST_WAIT_S) + rng()
    overloaded = result.overloaded and policy.overloaded_backoff_s is not None
    pauses_s = (policy.overloaded_backoff_s if overloaded else None) or policy.backoff_s
    return backoff_pause_s(pauses_s, attempt, rng)
