"""Sends claimed notifications through a channel, and decides the status of each. Opens no transaction."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from app.delivery.actions.error_codes import RECIPIENT_RETIRED
from app.delivery.channels.base import Channel, OutgoingMessage
from app.delivery.messages.claims import Claimed
from app.delivery.messages.outcomes import NO_DEVICE, Report, Try, Verdict
from app.delivery.messages.retry import (
    RETRYABLE,
    DeadLetter,
    RetryAt,
    RetryPolicy,
    SendResult,
    TooLate,
    decide_retry,
)
from app.delivery.messages.values import Device, NotificationStatus, Outcome
from app.delivery.sending.breaker_gate import BreakerGate
from app.foundation.backoff import Rng
from app.foundation.clock import Clock
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.redis_store.breakers import GO, Passage, Permit

log = structlog.get_logger(__name__)

S = NotificationStatus
BREAKER_OPEN = "BREAKER_OPEN"
# The pause after a failure of one of our own stores. Nothing was sent, so the attempt does not count as failed.
STORE_PAUSE_S = 1.0


@dataclass
class _Attempt:
    """An attempt of a notification, with one try for each of its addresses."""

    claimed: Claimed
    tries: list[Try] = field(default_factory=list[Try])
    wait_s: float | None = None
    """The pause that the breaker of its provider asks for; None if the breaker held no message of it."""


@dataclass
class _Sending:
    """One message of an attempt, and its result."""

    attempt: _Attempt
    message: OutgoingMessage
    result: SendResult | None = None
    """None until the message has been tried."""


class Sender:
    def __init__(self, channel: Channel, clock: Clock, gate: BreakerGate, rng: Rng = random.random) -> None:
        self._channel = channel
        self._clock = clock
        self._gate = gate
        self._rng = rng
        self._longest_call = timedelta(seconds=channel.longest_s)
        self._is_aborted = False

    def abort(self) -> None:
        """Begins no further message. Those that are being sent are finished; the rest of the batch is left to other
        workers."""
        self._is_aborted = True

    def send(self, claimed: Sequence[Claimed]) -> list[Report]:
        """One report for each notification, in the same order."""
        attempts = [_Attempt(item) for item in claimed]
        sendings = [
            _Sending(attempt, OutgoingMessage(attempt.claimed.notification, device, attempt.claimed.recipient_channel))
            for attempt in attempts
            for device in self._destinations(attempt.claimed)
        ]
        size = self._channel.batch_size
        for start in range(0, len(sendings), size):
            now = self._clock.now()
            batch = sendings[start : start + size]
            self._send_behind_breakers([item for item in batch if self._may_begin(item.attempt.claimed, now)])
        return [Report(attempt.claimed, self._verdict(attempt), attempt.tries) for attempt in attempts]

    def _destinations(self, claimed: Claimed) -> list[Device | None]:
        if claimed.is_retired:
            return []
        if not claimed.devices and not self._channel.needs_device:
            return [] if None in claimed.settled else [None]
        return [device for device in claimed.devices if device.device_id not in claimed.settled]

    def _may_begin(self, claimed: Claimed, now: datetime) -> bool:
        expires_at = claimed.notification.expires_at
        is_late = expires_at is not None and now >= expires_at
        return not self._is_aborted and not is_late and now + self._longest_call < claimed.lease_until

    def _send_behind_breakers(self, sendings: list[_Sending]) -> None:
        """Sends the messages that the breakers permit. Each provider has its own breaker."""
        by_provider: dict[str, list[_Sending]] = {}
        for sending in sendings:
            by_provider.setdefault(self._channel.provider(sending.message), []).append(sending)
        permits = {name: self._gate.ask(name, self._channel.longest_s) for name in by_provider}
        self._hand_to_channel([item for name, some in by_provider.items() for item in _permitted(some, permits[name])])
        for name, permit in permits.items():
            if permit.passage is not Passage.WAIT:
                self._tell_breaker(name, permit, by_provider[name])

    def _tell_breaker(self, name: str, permit: Permit, sendings: list[_Sending]) -> None:
        results = [sending.result for sending in sendings if sending.result is not None]
        if permit.passage is Passage.PROBE:
            # An invalid message may be refused before the provider is asked, so its result proves nothing.
            results = [item for item in results if item.outcome is Outcome.SENT or item.counts_against_provider]
        failures = sum(result.counts_against_provider for result in results)
        self._gate.tell(name, permit, calls=len(results), failures=failures)

    def _hand_to_channel(self, sendings: list[_Sending]) -> None:
        if not sendings:
            return
        results = self._results([sending.message for sending in sendings])
        for sending, result in zip(sendings, results, strict=True):
            sending.result = result
            if result is not None:
                sending.attempt.tries.append(Try(sending.message.device, result))

    def _results(self, messages: list[OutgoingMessage]) -> Sequence[SendResult | None]:
        try:
            results = self._channel.handle(messages)
            failpoint("delivery.sent")
            return results
        except Unavailable:
            return [None] * len(messages)
        except Exception as error:
            log.error("channel_failed", channel=self._channel.name, **describe_error(error))
            return [SendResult(Outcome.UNKNOWN, "CHANNEL_ERROR")] * len(messages)

    def _verdict(self, attempt: _Attempt) -> Verdict:
        now, claimed = self._clock.now(), attempt.claimed
        if not attempt.tries and attempt.wait_s is not None:
            pause_s = attempt.wait_s * (1 + self._rng() / 4)
            return _after_pause(claimed, _has_arrived(claimed), now, pause_s, BREAKER_OPEN)
        wanted = len(self._destinations(claimed))
        return judge(self._channel.policy, claimed, attempt.tries, wanted, now, self._rng)


def _permitted(sendings: list[_Sending], permit: Permit) -> list[_Sending]:
    """The messages that may be sent now: all, one as a probe, or none. The attempts of the others wait."""
    if permit == GO:
        return sendings
    permitted = sendings[:1] if permit.passage is Passage.PROBE else []
    for sending in sendings[len(permitted) :]:
        sending.attempt.wait_s = permit.wait_s or STORE_PAUSE_S
    return permitted


def _has_arrived(claimed: Claimed) -> bool:
    return Outcome.SENT in claimed.settled.values()


def judge(policy: RetryPolicy, claimed: Claimed, tries: Sequence[Try], wanted: int, now: datetime, rng: Rng) -> Verdict:
    """`wanted` is the number of addresses to try. The notification is SENT if at least one address took it and no other
    address has to be tried again."""
    results = [try_.result for try_ in tries]
    arrived = _has_arrived(claimed) or any(result.outcome is Outcome.SENT for result in results)
    retryable = [result for result in results if result.outcome in RETRYABLE]
    if retryable:
        return _after_failure(policy, claimed, retryable, arrived, now, rng)
    if len(results) < wanted:
        return _after_pause(claimed, arrived, now)
    if arrived:
        return Verdict(S.SENT)
    refused = next((result.error_code or result.outcome.value for result in results), None)
    no_address = RECIPIENT_RETIRED if claimed.is_retired else NO_DEVICE
    return Verdict(S.DEAD, error_code=refused or no_address, failed=bool(results))


def _after_failure(
    policy: RetryPolicy, claimed: Claimed, failed: list[SendResult], arrived: bool, now: datetime, rng: Rng
) -> Verdict:
    attempt, expires_at = claimed.failures + 1, claimed.notification.expires_at
    decisions = [decide_retry(policy, result, attempt, now, rng, expires_at) for result in failed]
    retries = [decision.at for decision in decisions if isinstance(decision, RetryAt)]
    code = failed[0].error_code
    if retries:
        # All addresses are tried again together, at the latest of the times.
        return Verdict(S.RETRYING, due_at=max(retries), error_code=code, failed=True)
    if arrived:
        return Verdict(S.SENT, failed=True)
    given_up = next(decision for decision in decisions if isinstance(decision, DeadLetter | TooLate))
    status = S.EXPIRED if isinstance(given_up, TooLate) else S.DEAD
    return Verdict(status, error_code=given_up.error_code, failed=True, retryable=status is S.DEAD)


def _after_pause(
    claimed: Claimed, arrived: bool, now: datetime, pause_s: float = STORE_PAUSE_S, code: str | None = None
) -> Verdict:
    """The verdict if some addresses were not tried: it was too late, the lease was too short, the dispatcher is
    stopping, a store could not be reached, or a breaker was open."""
    expires_at, due_at = claimed.notification.expires_at, now + timedelta(seconds=pause_s)
    if expires_at is not None and arrived and due_at >= expires_at:
        return Verdict(S.SENT)
    if expires_at is not None and now >= expires_at:
        return Verdict(S.EXPIRED, error_code="TOO_LATE")
    status = S.RETRYING if claimed.failures else S.ACCEPTED
    return Verdict(status, due_at=due_at, error_code=code)
