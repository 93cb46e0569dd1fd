"""Takes claimed notifications to their devices and judges what came of it. Opens no transaction."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from app.clock import Clock
from app.delivery.channels.base import Channel, Device, Parcel
from app.delivery.faults import describe
from app.delivery.models import NotificationStatus, Outcome
from app.delivery.queue import Claimed, Report, Try, Verdict
from app.delivery.retry import RETRYABLE, DeadLetter, Result, RetryAt, RetryPolicy, Rng, TooLate, decide_retry
from app.errors import Unavailable
from app.failpoints import failpoint

log = structlog.get_logger(__name__)

S = NotificationStatus
NO_DEVICE = "NO_DEVICE"
RECIPIENT_RETIRED = "RECIPIENT_RETIRED"
# Where one of our own stores failed, nothing was tried, and the notification is not to blame.
STORE_PAUSE_S = 1.0


@dataclass(frozen=True)
class _Stop:
    claimed: Claimed
    parcel: Parcel


class Courier:
    def __init__(self, channel: Channel, clock: Clock, rng: Rng = random.random) -> None:
        self._channel = channel
        self._clock = clock
        self._rng = rng
        self._needs = timedelta(seconds=channel.longest_s)

    def deliver(self, claimed: Sequence[Claimed]) -> list[Report]:
        tries: dict[int, list[Try]] = {index: [] for index in range(len(claimed))}
        round_trip = [
            (index, _Stop(one, Parcel(one.event, device, one.entry)))
            for index, one in enumerate(claimed)
            for device in self._destinations(one)
        ]
        size = self._channel.batch_size
        for start in range(0, len(round_trip), size):
            now = self._clock.now()
            stops = [(index, stop) for index, stop in round_trip[start : start + size] if self._may_begin(stop, now)]
            for (index, stop), result in zip(stops, self._send([stop.parcel for _, stop in stops]), strict=True):
                if result is not None:
                    tries[index].append(Try(stop.parcel.device, result))
        return [Report(one, self._judge(one, tries[index]), tries[index]) for index, one in enumerate(claimed)]

    def _destinations(self, claimed: Claimed) -> list[Device | None]:
        if claimed.is_retired:
            return []
        if not claimed.devices and not self._channel.needs_device:
            return [] if None in claimed.settled else [None]
        return [device for device in claimed.devices if device.device_id not in claimed.settled]

    def _may_begin(self, stop: _Stop, now: datetime) -> bool:
        expires_at = stop.claimed.event.expires_at
        return (expires_at is None or now < expires_at) and now + self._needs < stop.claimed.lease_until

    def _send(self, parcels: list[Parcel]) -> Sequence[Result | None]:
        """None for what was not tried."""
        if not parcels:
            return []
        try:
            results = self._channel.handle(parcels)
            failpoint("delivery.sent")
            return results
        except Unavailable:
            return [None] * len(parcels)
        except Exception as error:
            log.error("channel_failed", channel=self._channel.name, **describe(error))
            return [Result(Outcome.UNKNOWN, "CHANNEL_ERROR")] * len(parcels)

    def _judge(self, claimed: Claimed, tries: list[Try]) -> Verdict:
        now = self._clock.now()
        return judge(self._channel.policy, claimed, tries, len(self._destinations(claimed)), now, self._rng)


def judge(policy: RetryPolicy, claimed: Claimed, tries: Sequence[Try], wanted: int, now: datetime, rng: Rng) -> Verdict:
    """`wanted` is how many devices were to be tried. One that took it is enough; one that still may is tried again."""
    results = [one.result for one in tries]
    arrived = Outcome.SENT in claimed.settled.values() or any(one.outcome is Outcome.SENT for one in results)
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
    decisions = [decide_retry(policy, one, claimed.failures + 1, now, rng, claimed.event.expires_at) for one in again]
    waits = [decision.at for decision in decisions if isinstance(decision, RetryAt)]
    code = again[0].error_code
    if waits:
        # All are tried again together, when the most patient of them may be.
        return Verdict(S.RETRYING, due_at=max(waits), error_code=code, failed=True)
    if arrived:
        return Verdict(S.SENT, failed=True)
    given_up = next(decision for decision in decisions if isinstance(decision, DeadLetter | TooLate))
    status = S.EXPIRED if isinstance(given_up, TooLate) else S.DEAD
    return Verdict(status, error_code=given_up.error_code, failed=True, retryable=True)


def _after_pause(claimed: Claimed, arrived: bool, now: datetime) -> Verdict:
    """Something was left untried: because it is too late, the lease too short, or a store away."""
    if claimed.event.expires_at is not None and now >= claimed.event.expires_at:
        return Verdict(S.SENT) if arrived else Verdict(S.EXPIRED, error_code="TOO_LATE")
    status = S.RETRYING if claimed.failures else S.ACCEPTED
    return Verdict(status, due_at=now + timedelta(seconds=STORE_PAUSE_S))
