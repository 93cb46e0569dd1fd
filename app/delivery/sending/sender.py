"""Takes claimed notifications to where they go and judges what came of it. Opens no transaction."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from app.delivery.channels.base import Channel, OutgoingMessage
from app.delivery.messages.claims import Claimed
from app.delivery.messages.outcomes import Report, Try, Verdict
from app.delivery.messages.retry import RETRYABLE, DeadLetter, Result, RetryAt, RetryPolicy, Rng, TooLate, decide_retry
from app.delivery.messages.values import Device, NotificationStatus, Outcome
from app.delivery.sending.breaker_gate import BreakerGate
from app.foundation.clock import Clock
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.redis_store.breakers import GO, MemoryBreakers, Passage, Permit

log = structlog.get_logger(__name__)

S = NotificationStatus
NO_DEVICE = "NO_DEVICE"
RECIPIENT_RETIRED = "RECIPIENT_RETIRED"
BREAKER_OPEN = "BREAKER_OPEN"
# Where one of our own stores failed, nothing was tried, and the notification is not to blame.
STORE_PAUSE_S = 1.0


@dataclass
class _Round:
    """What becomes of one notification in one round."""

    claimed: Claimed
    tries: list[Try] = field(default_factory=list[Try])
    held_s: float | None = None
    """How long the breaker of its provider wants it to wait."""


@dataclass
class _Stop:
    round: _Round
    message: OutgoingMessage
    result: Result | None = None
    """None as long as it was not tried."""


class Sender:
    def __init__(
        self, channel: Channel, clock: Clock, gate: BreakerGate | None = None, rng: Rng = random.random
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._gate = gate or BreakerGate(MemoryBreakers())
        self._rng = rng
        self._needs = timedelta(seconds=channel.longest_s)
        self._leaving = False

    def begin_nothing_more(self) -> None:
        """What is under way ends; the rest of it is left to other workers."""
        self._leaving = True

    def deliver(self, claimed: Sequence[Claimed]) -> list[Report]:
        rounds = [_Round(one) for one in claimed]
        stops = [
            _Stop(one, OutgoingMessage(one.claimed.notification, device, one.claimed.recipient_channel))
            for one in rounds
            for device in self._destinations(one.claimed)
        ]
        size = self._channel.batch_size
        for start in range(0, len(stops), size):
            now = self._clock.now()
            self._visit([stop for stop in stops[start : start + size] if self._may_begin(stop.round.claimed, now)])
        return [Report(one.claimed, self._judge(one), one.tries) for one in rounds]

    def _destinations(self, claimed: Claimed) -> list[Device | None]:
        if claimed.is_retired:
            return []
        if not claimed.devices and not self._channel.needs_device:
            return [] if None in claimed.settled else [None]
        return [device for device in claimed.devices if device.device_id not in claimed.settled]

    def _may_begin(self, claimed: Claimed, now: datetime) -> bool:
        if self._leaving:
            return False
        expires_at = claimed.notification.expires_at
        return (expires_at is None or now < expires_at) and now + self._needs < claimed.lease_until

    def _visit(self, stops: list[_Stop]) -> None:
        """Whatever goes to one provider stands behind one breaker."""
        by_provider: dict[str, list[_Stop]] = {}
        for stop in stops:
            by_provider.setdefault(self._channel.provider(stop.message), []).append(stop)
        permits = {name: self._gate.ask(name, self._channel.longest_s) for name in by_provider}
        going = [stop for name, some in by_provider.items() for stop in _let_through(some, permits[name])]
        self._send(going)
        for name, permit in permits.items():
            if permit.passage is not Passage.WAIT:
                self._tell(name, permit, by_provider[name])

    def _tell(self, name: str, permit: Permit, stops: list[_Stop]) -> None:
        made = [stop.result for stop in stops if stop.result is not None]
        if permit.passage is Passage.PROBE:
            # A message that is wrong in itself may have been refused before anybody asked the provider.
            made = [result for result in made if result.outcome is Outcome.SENT or result.counts_against_provider]
        failures = sum(result.counts_against_provider for result in made)
        self._gate.tell(name, permit, calls=len(made), failures=failures)

    def _send(self, stops: list[_Stop]) -> None:
        if not stops:
            return
        for stop, result in zip(stops, self._results([stop.message for stop in stops]), strict=True):
            stop.result = result
            if result is not None:
                stop.round.tries.append(Try(stop.message.device, result))

    def _results(self, messages: list[OutgoingMessage]) -> Sequence[Result | None]:
        try:
            results = self._channel.handle(messages)
            failpoint("delivery.sent")
            return results
        except Unavailable:
            return [None] * len(messages)
        except Exception as error:
            log.error("channel_failed", channel=self._channel.name, **describe_error(error))
            return [Result(Outcome.UNKNOWN, "CHANNEL_ERROR")] * len(messages)

    def _judge(self, one: _Round) -> Verdict:
        now = self._clock.now()
        if not one.tries and one.held_s is not None:
            return _after_pause(
                one.claimed, _has_arrived(one.claimed), now, one.held_s * (1 + self._rng() / 4), BREAKER_OPEN
            )
        wanted = len(self._destinations(one.claimed))
        return judge(self._channel.policy, one.claimed, one.tries, wanted, now, self._rng)


def _let_through(stops: list[_Stop], permit: Permit) -> list[_Stop]:
    """All, one as the probe, or none; the others are held."""
    if permit == GO:
        return stops
    going = stops[:1] if permit.passage is Passage.PROBE else []
    for stop in stops[len(going) :]:
        stop.round.held_s = permit.wait_s or STORE_PAUSE_S
    return going


def _has_arrived(claimed: Claimed) -> bool:
    return Outcome.SENT in claimed.settled.values()


def judge(policy: RetryPolicy, claimed: Claimed, tries: Sequence[Try], wanted: int, now: datetime, rng: Rng) -> Verdict:
    """`wanted` is how many devices were to be tried. One that took it is enough; one that still may is tried again."""
    results = [one.result for one in tries]
    arrived = _has_arrived(claimed) or any(one.outcome is Outcome.SENT for one in results)
    again = [one for one in results if one.outcome in RETRYABLE]
    if again:
        return _after_failure(policy, claimed, again, arrived, now, rng)
    if len(results) < wanted:
        return _after_pause(claimed, arrived, now)
    if arrived:
        return Verdict(S.SENT)
    refused = next((one.error_code or one.outcome.value for one in results), None)
    nowhere = RECIPIENT_RETIRED if claimed.is_retired else NO_DEVICE
    return Verdict(S.DEAD, error_code=refused or nowhere, failed=bool(results))


def _after_failure(
    policy: RetryPolicy, claimed: Claimed, again: list[Result], arrived: bool, now: datetime, rng: Rng
) -> Verdict:
    decisions = [
        decide_retry(policy, one, claimed.failures + 1, now, rng, claimed.notification.expires_at) for one in again
    ]
    waits = [decision.at for decision in decisions if isinstance(decision, RetryAt)]
    code = again[0].error_code
    if waits:
        # All are tried again together, when the most patient of them may be.
        return Verdict(S.RETRYING, due_at=max(waits), error_code=code, failed=True)
    if arrived:
        return Verdict(S.SENT, failed=True)
    given_up = next(decision for decision in decisions if isinstance(decision, DeadLetter | TooLate))
    status = S.EXPIRED if isinstance(given_up, TooLate) else S.DEAD
    return Verdict(status, error_code=given_up.error_code, failed=True, retryable=status is S.DEAD)


def _after_pause(
    claimed: Claimed, arrived: bool, now: datetime, pause_s: float = STORE_PAUSE_S, code: str | None = None
) -> Verdict:
    """Something was left untried: because it is too late, the lease too short, or a store or a provider away."""
    expires_at, due_at = claimed.notification.expires_at, now + timedelta(seconds=pause_s)
    if expires_at is not None and arrived and due_at >= expires_at:
        return Verdict(S.SENT)
    if expires_at is not None and now >= expires_at:
        return Verdict(S.EXPIRED, error_code="TOO_LATE")
    status = S.RETRYING if claimed.failures else S.ACCEPTED
    return Verdict(status, due_at=due_at, error_code=code)
