"""Claims the notifications of one type, keeps them in a queue in memory, sends them, and gives the reports to the
recorder.

Each type has a worker with its own queue and threads, so that a channel that hangs does not delay the others.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from app.db.database import Database
from app.delivery.channels.base import Channel
from app.delivery.messages.claims import NO_CROWD, Claim, Claimed, Crowd, claim, put_back
from app.delivery.messages.outcomes import Report
from app.delivery.messages.values import URGENT_FIRST, Follower, NotificationType
from app.delivery.sending.heartbeat import Heartbeat
from app.delivery.sending.held_messages import KEPT_SHARE, HeldMessages
from app.delivery.sending.metrics import DeliveryMetrics
from app.delivery.sending.recorder import Recorder
from app.delivery.sending.sender import Sender
from app.foundation.buffer import Buffer, BufferClosed
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import LONGEST_PAUSE_S, DoublingPause

log = structlog.get_logger(__name__)

# The longest time that a loop may take to notice that it should stop.
_STOP_CHECK_S = 0.2
# The amount of work that a worker claims ahead: enough that no thread waits for the next claim, but so little that an
# urgent notification does not wait behind a long queue in memory, and that no lease runs out there.
_CLAIMED_AHEAD_S = 0.25
_FIRST_ESTIMATE_S = 0.1
_TAKEN_AT_ONCE_S = 0.001
"""A thread takes several messages from the queue in memory if sending them takes no longer than this."""
LOOK_EVERY_S = 0.1
"""How often a worker looks for messages behind those of a crowd, which takes up to 10 ms of the database."""
# While the database could not be reached, the leases of notifications that were sent may have run out. A claim would
# send them again, so it waits until the recorders of this process and of others have recorded them.
_OTHER_RECORDERS_S = 1.0
_OWN_RECORDER_S = 5.0


@dataclass(frozen=True)
class ChannelWorkerOptions:
    capacity: int = 1000
    threads: int = 2
    poll_s: float = 1.0
    lease_s: float = 30.0
    """Longer than any call of a channel; otherwise another worker would claim a notification that is being sent."""
    claim_limit: int = 200
    max_age_s: float = 86_400.0
    most_devices: int = 10


@dataclass(frozen=True)
class _Wanted:
    """The sizes of a claim. Of those who are not in the crowd, `others` come first."""

    limit: int
    others: int = 0
    crowd: Crowd = NO_CROWD


class ChannelWorker:
    def __init__(
        self,
        db: Database,
        type_: NotificationType,
        channel: Channel,
        sender: Sender,
        recorder: Recorder,
        metrics: DeliveryMetrics,
        options: ChannelWorkerOptions,
        followers: Sequence[Follower],
        heartbeat: Heartbeat,
    ) -> None:
        self.type = type_
        self._db = db
        self._channel = channel
        self._sender = sender
        self._recorder = recorder
        self._metrics = metrics
        self._options = options
        self._followers = followers
        self._heartbeat = heartbeat
        self._buffer: Buffer[Claimed] = Buffer(
            options.capacity,
            URGENT_FIRST,
            lambda claimed: claimed.notification.priority,
            lambda claimed: claimed.notification.recipient,
            # A push is a request for each phone.
            lambda claimed: max(1, len(claimed.devices)),
        )
        self._announced = threading.Event()
        self._held = HeldMessages()
        self._looked_at = float("-inf")
        self._pause = DoublingPause()
        self._database_was_down = False
        self._send_s = _FIRST_ESTIMATE_S
        name = type_.channel_type
        self._claimer = threading.Thread(target=self._run_claims, name=f"claimer-{name}", daemon=True)
        self._consumers = [
            threading.Thread(target=self._consume, name=f"notification-consumer-{name}-{number}", daemon=True)
            for number in range(options.threads)
        ]
        self._stop = threading.Event()

    def run_once(self) -> int:
        """Claims once, sends and records in the calling thread. Returns the number of notifications claimed."""
        found = self._claim(_Wanted(self._options.claim_limit))
        size = self._channel.batch_size
        for start in range(0, len(found.taken), size):
            reports = list(self._sender.send(found.taken[start : start + size]))
            self._recorder.write(reports)
            self._metrics.observe_tries(self._channel.handler, reports)
        return found.size

    def start(self) -> None:
        for thread in (self._claimer, *self._consumers):
            thread.start()

    def announce(self) -> None:
        """Wakes the claiming thread, because there may be a notification to claim."""
        self._announced.set()

    # ---- claiming ------------------------------------------------------------------------------------------

    def _run_claims(self) -> None:
        while not self._stop.is_set():
            wanted = self._wait_for_room()
            self._show_depth()
            if wanted.limit or wanted.others:
                self._claim_and_queue(wanted)

    def _claim_and_queue(self, wanted: _Wanted) -> None:
        self._announced.clear()
        try:
            if self._database_was_down:
                self._wait_for_recorders()
            found = self._claim(wanted)
        except Unavailable:
            self._database_was_down = True
            pause_s = self._pause.next_s()
            log.warning("delivery_claim_waits", type=self.type, pause_s=pause_s)
            self._stop.wait(pause_s)
            return
        except Exception as error:
            log.error("delivery_claim_failed", type=self.type, **describe_error(error))
            self._stop.wait(LONGEST_PAUSE_S)
            return
        self._pause.reset()
        self._queue(found.taken)
        if found.size < wanted.limit:
            self._announced.wait(self._options.poll_s)

    def _wait_for_recorders(self) -> None:
        self._db.now()
        self._stop.wait(_OTHER_RECORDERS_S)
        self._recorder.wait_until_written(_OWN_RECORDER_S)
        self._database_was_down = False

    def _claim(self, wanted: _Wanted) -> Claim:
        options = self._options
        worker_id = self._heartbeat.worker_id()
        with self._db.transaction() as conn:
            found = claim(
                conn,
                self.type,
                wanted.limit,
                options.lease_s,
                crowd=wanted.crowd,
                others=wanted.others,
                max_age_s=options.max_age_s,
                most_devices=options.most_devices,
                followers=self._followers,
                worker_id=worker_id,
            )
        failpoint("delivery.claimed")
        if found.expired:
            self._metrics.count_expired(self.type, len(found.expired))
        return found

    def _queue(self, taken: list[Claimed]) -> None:
        self._held.add(taken)
        try:
            self._buffer.put(*taken)
        except BufferClosed as error:
            self._put_back(taken[len(taken) - error.refused :])
        self._metrics.count_claimed(self.type, sum(not claimed.is_redriven for claimed in taken))
        self._show_depth()

    def _wait_for_room(self) -> _Wanted:
        """Waits until so many may be claimed that it is worth a transaction. While there is a crowd, it returns sooner
        and looks for messages to others, who may use all of the room."""
        capacity, most = self._capacity(), self._options.claim_limit
        worthwhile = max(1, min(capacity // 4, most))
        crowd = self._held.crowd(capacity)
        for_all = capacity - int(capacity * KEPT_SHARE) if crowd else capacity
        self._held.wait_for_room(for_all, worthwhile, LOOK_EVERY_S if crowd else _STOP_CHECK_S)
        room = self._held.room(for_all)
        limit = min(room, most) if room >= worthwhile else 0
        others = limit or min(self._held.room(capacity), most)
        if not crowd or others < 1 or time.monotonic() - self._looked_at < LOOK_EVERY_S:
            return _Wanted(limit)
        self._looked_at = time.monotonic()
        return _Wanted(limit, others, crowd)

    def _capacity(self) -> int:
        """The number of notifications to hold: at least two batches for every thread, one of them waiting, and more if
        sending is fast."""
        at_once = self._options.threads * self._channel.batch_size
        batches = max(2, int(_CLAIMED_AHEAD_S / max(self._send_s, 1e-6)))
        return min(batches * at_once, self._options.capacity)

    # ---- sending -------------------------------------------------------------------------------------------

    def _consume(self) -> None:
        while taken := self._buffer.take(self._number_at_once()):
            self._send(taken)

    def _number_at_once(self) -> int:
        return self._channel.batch_size * max(1, int(_TAKEN_AT_ONCE_S / max(self._send_s, 1e-6)))

    def _send(self, taken: list[Claimed]) -> None:
        began = time.monotonic()
        reports: list[Report] = []
        try:
            for report in self._sender.send(taken):
                reports.append(report)
                self._recorder.put([report], self._recorded)
        except Exception as error:
            # These notifications are claimed again when their leases run out.
            log.error("delivery_batch_failed", type=self.type, count=len(taken), **describe_error(error))
            self._metrics.count_failed_batch(self._channel.name)
            reported = {report.claimed.id for report in reports}
            self._held.remove([claimed for claimed in taken if claimed.id not in reported])
            return
        batches = max(1.0, len(taken) / self._channel.batch_size)
        # A moving average. Two threads may overwrite each other's update, which does not matter for an average.
        self._send_s += 0.1 * ((time.monotonic() - began) / batches - self._send_s)

    def _recorded(self, reports: list[Report]) -> None:
        self._held.remove([report.claimed for report in reports])
        self._metrics.observe_tries(self._channel.handler, reports)

    def _show_depth(self) -> None:
        self._metrics.set_depth(self.type, len(self._buffer), self._buffer.capacity)

    # ---- stopping ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stops claiming, and puts back the notifications that no thread has begun to send."""
        self._stop.set()
        self._announced.set()
        self._put_back(self._buffer.close())

    def join(self, until: float) -> bool:
        """Waits until a monotonic time for the sending threads. False if a thread is still sending then."""
        for thread in (self._claimer, *self._consumers):
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._consumers)

    def abort(self) -> None:
        """Stops inside the batches that are being sent. Their other notifications are left to other workers."""
        self._sender.abort()

    def _put_back(self, claimed: list[Claimed]) -> None:
        if not claimed:
            return
        self._held.remove(claimed)
        try:
            with self._db.transaction() as conn:
                put_back(conn, claimed)
        except Unavailable:
            log.warning("delivery_put_back_failed", count=len(claimed), hint="their leases run out by themselves")
