"""Sends claimed notifications through a channel, and decides the status of each. Opens no transaction."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter

import structlog

from app.delivery.actions.error_codes import RECIPIENT_RETIRED
from app.delivery.channels.base import Channel, OutgoingMessage
from app.delivery.messages.claims import Claimed
from app.delivery.messages.outcomes import BREAKER_OPEN, NO_DEVICE, Report, Try, Verdict
from app.delivery.messages.retry import (
    RETRYABLE,
    DeadLetter,
    RetryAt,
    RetryPolicy,
    SendResult,
    TooLate,
    decide_retry,
)
from app.delivery.messages.values import URGENT_FIRST, Device, NotificationStatus, Outcome
from app.delivery.sending.breaker_gate import BreakerGate
from app.foundation.backoff import Rng
from app.foundation.clock import Clock
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.redis_store.breakers import Passage, Permit

log = structlog.get_logger(__name__)

S = NotificationStatus
SENT = Verdict(S.SENT)
# The pause after a failure of one of our own stores. Nothing was sent, so the attempt does not count as failed.
STORE_PAUSE_S = 1.0


@dataclass
class _Attempt:
    """An attempt of a notification, with one try for each of its addresses."""

    claimed: Claimed
    open: int = 0
    """The number of its messages that are not decided yet: neither tried nor left for later."""
    sendings: "list[_Sending]" = field(default_factory=list["_Sending"])
    wait_s: float | None = None
    """The pause that the breaker of its provider asks for; None if the breaker held no message of it."""

    @property
    def tries(self) -> list[Try]:
        return [
            Try(sending.message.device, sending.result, sending.took_s)
            for sending in self.sendings
            if sending.result is not None
        ]


@dataclass(eq=False)
class _Sending:
    """One message of an attempt, and its result."""

    attempt: _Attempt
    message: OutgoingMessage
    result: SendResult | None = None
    """None until the message has been tried."""
    took_s: float = 0.0

    def answered(self, result: SendResult | None, took_s: float) -> "_Sending":
        self.result, self.took_s = result, took_s
        return self


class Sender:
    def __init__(
        self,
        channel: Channel,
        clock: Clock,
        gate: BreakerGate,
        rng: Rng = random.random,
        *,
        holds: Callable[[Claimed], bool] = lambda claimed: True,
    ) -> None:
        """`holds` is false once others may have taken over the notification, because this worker has been still for too
        long."""
        self._channel = channel
        self._clock = clock
        self._gate = gate
        self._rng = rng
        self._holds = holds
        self._longest_call = timedelta(seconds=channel.longest_s)
        self._is_aborted = False

    def abort(self) -> None:
        """Begins no further message. Those that are being sent are finished; the rest of the batch is left to other
        workers."""
        self._is_aborted = True

    def send(self, claimed: Sequence[Claimed]) -> Iterator[Report]:
        """One report for each notification, as soon as its last address has answered."""
        attempts = [_Attempt(item) for item in claimed]
        sendings = self._sendings(attempts)
        yield from [self._report(attempt) for attempt in attempts if not attempt.open]
        size = self._channel.batch_size
        for start in range(0, len(sendings), size):
            batch = sendings[start : start + size]
            for sending in self._send_batch(batch):
                sending.attempt.open -= 1
                if not sending.attempt.open:
                    yield self._report(sending.attempt)

    def _sendings(self, attempts: Sequence[_Attempt]) -> list[_Sending]:
        found: list[_Sending] = []
        for attempt in attempts:
            claimed = attempt.claimed
            for device in self._destinations(claimed):
                message = OutgoingMessage(claimed.notification, device, claimed.recipient_channel)
                attempt.sendings.append(_Sending(attempt, message))
            attempt.open = len(attempt.sendings)
            found += attempt.sendings
        return _in_turns(found) if len(found) > 1 else found

    def _destinations(self, claimed: Claimed) -> list[Device | None]:
        if claimed.is_retired:
            return []
        if not claimed.devices and not self._channel.needs_device:
            return [] if None in claimed.settled else [None]
        return [device for device in claimed.devices if device.device_id not in claimed.settled]

    def _may_begin(self, claimed: Claimed, now: datetime) -> bool:
        expires_at = claimed.notification.expires_at
        is_late = expires_at is not None and now >= expires_at
        in_time = now + self._longest_call < claimed.lease_until
        return not self._is_aborted and not is_late and in_time and self._holds(claimed)

    def _send_batch(self, batch: list[_Sending]) -> Iterator[_Sending]:
        """Sends the messages that may be sent now; each provider has its own breaker. Yields every message of the batch
        once it is decided, the answered ones as their answers come."""
        now = self._clock.now()
        by_provider: dict[str, list[_Sending]] = {}
        for sending in batch:
            if self._may_begin(sending.attempt.claimed, now):
                by_provider.setdefault(self._channel.provider(sending.message), []).append(sending)
        permits = {name: self._ask_breaker(name, some) for name, some in by_provider.items()}
        permitted = [item for name, some in by_provider.items() for item in _permitted(some, permits[name])]
        if permitted:
            yield from self._hand_to_channel(permitted)
        for name, permit in permits.items():
            if permit.passage is not Passage.WAIT:
                self._tell_breaker(name, permit, by_provider[name])
        if len(permitted) < len(batch):
            handed = set(permitted)
            yield from [sending for sending in batch if sending not in handed]

    def _ask_breaker(self, name: str, sendings: list[_Sending]) -> Permit:
        recipients = (self._channel.recipient(sending.message) for sending in sendings)
        return self._gate.ask(name, self._channel.longest_s, recipients)

    def _tell_breaker(self, name: str, permit: Permit, sendings: list[_Sending]) -> None:
        answered = [(sending.message, sending.result) for sending in sendings if sending.result is not None]
        if permit.passage is Passage.PROBE:
            # An invalid message may be refused before the provider is asked, so its result proves nothing.
            answered = [one for one in answered if one[1].outcome is Outcome.SENT or one[1].counts_against_provider]
        failed = [self._channel.recipient(message) for message, result in answered if result.counts_against_provider]
        self._gate.tell(name, permit, succeeded=len(answered) - len(failed), failed=failed)

    def _hand_to_channel(self, sendings: list[_Sending]) -> Iterator[_Sending]:
        began, waiting = time.monotonic(), dict(enumerate(sendings))
        result_of_others: SendResult | None = None
        try:
            messages = [sending.message for sending in sendings]
            for place, result in self._channel.answers(messages, lambda: self._may_go_on(sendings[0])):
                yield waiting.pop(place).answered(result, time.monotonic() - began)
            failpoint("delivery.sent")
        except Unavailable:
            result_of_others = None
        except Exception as error:
            log.error("channel_failed", channel=self._channel.name, **describe_error(error))
            result_of_others = SendResult(Outcome.UNKNOWN, "CHANNEL_ERROR")
        took_s = time.monotonic() - began
        yield from (sending.answered(result_of_others, took_s) for sending in waiting.values())

    def _may_go_on(self, first: _Sending) -> bool:
        return not self._is_aborted and self._holds(first.attempt.claimed)

    def _report(self, attempt: _Attempt) -> Report:
        tries = attempt.tries
        report = Report(attempt.claimed, self._verdict(attempt, tries), tries)
        # They refer to each other. Otherwise only Python's search for garbage would free them, which took a tenth of
        # the worker's time.
        attempt.sendings.clear()
        return report

    def _verdict(self, attempt: _Attempt, tries: list[Try]) -> Verdict:
        if tries and len(tries) == len(attempt.sendings) and all(one.result.outcome is Outcome.SENT for one in tries):
            # As `judge` decides, without asking the clock for each of the many messages that arrive at once.
            return SENT
        now, claimed = self._clock.now(), attempt.claimed
        if not tries and attempt.wait_s is not None:
            pause_s = attempt.wait_s * (1 + self._rng() / 4)
            return _after_pause(claimed, _has_arrived(claimed), now, pause_s, BREAKER_OPEN)
        return judge(self._channel.policy, claimed, tries, len(attempt.sendings), now, self._rng)


def _in_turns(sendings: list[_Sending]) -> list[_Sending]:
    """Of one priority, the first message to every person comes before the second one to any, so that nobody waits for
    all messages to another person."""
    turns: dict[tuple[int, str], int] = {}
    found: list[tuple[int, int, _Sending]] = []
    for sending in sendings:
        notification = sending.message.notification
        person = (URGENT_FIRST.index(notification.priority), notification.recipient)
        turn = turns[person] = turns.get(person, -1) + 1
        found.append((person[0], turn, sending))
    return [sending for *_, sending in sorted(found, key=itemgetter(0, 1))]


def _permitted(sendings: list[_Sending], permit: Permit) -> list[_Sending]:
    """The messages that may be sent now: all, one as a probe, or none. The attempts of the others wait."""
    if permit.passage is Passage.GO:
        return sendings
    permitted = [sendings[permit.chosen]] if permit.passage is Passage.PROBE else []
    for sending in sendings:
        if sending not in permitted:
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
        return SENT
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
