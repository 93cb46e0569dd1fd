"""One channel's way from the table of notifications to its provider: claim, wait in memory, carry, report.

Each channel has a lane of its own, with its own queue and its own threads, so that one that hangs delays no other.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from app.db.database import Database
from app.delivery.channels.base import Channel
from app.delivery.messages.claims import Claim, Claimed, claim, put_back
from app.delivery.messages.values import URGENT_FIRST, Follower, NotificationType
from app.delivery.sending.metrics import DeliveryMetrics
from app.delivery.sending.recorder import Recorder
from app.delivery.sending.sender import Sender
from app.foundation.buffer import Buffer, BufferClosed
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import LONGEST_PAUSE_S, DoublingPause

log = structlog.get_logger(__name__)

# How long a loop may be deaf to the order to stop.
_SLICE_S = 0.2
# How much work is taken in hand at once: so much that no thread waits for the next claim, so little that an urgent
# message does not stand behind a long queue of ours, nor a lease run out in it.
_HAND_S = 0.25
_FIRST_GUESS_S = 0.1
# When it is back: what workers, of this process and of others, sent meanwhile may have outlived its lease, and would be
# sent again if it were claimed before they have written it down.
_RECORDS_FIRST_S = 1.0
_RECORDS_AT_MOST_S = 5.0


@dataclass(frozen=True)
class ChannelWorkerOptions:
    capacity: int = 1000
    threads: int = 2
    poll_s: float = 1.0
    lease_s: float = 30.0
    """Longer than anything a channel does, or a message would be taken from a worker that is still sending it."""
    claim_limit: int = 200
    max_age_s: float = 86_400.0


class ChannelWorker:
    def __init__(
        self,
        db: Database,
        type_: NotificationType,
        channel: Channel,
        courier: Sender,
        recorder: Recorder,
        metrics: DeliveryMetrics,
        options: ChannelWorkerOptions,
        followers: Sequence[Follower],
    ) -> None:
        self.type = type_
        self._db = db
        self._channel = channel
        self._courier = courier
        self._recorder = recorder
        self._metrics = metrics
        self._options = options
        self._followers = followers
        self._buffer: Buffer[Claimed] = Buffer(
            options.capacity, URGENT_FIRST, lambda claimed: claimed.notification.priority
        )
        self._announced = threading.Event()
        self._room = threading.Condition()
        self._in_hand = 0
        self._pause = DoublingPause()
        self._was_away = False
        self._send_s = _FIRST_GUESS_S
        name = type_.channel_type
        self._claimer = threading.Thread(target=self._claim_on, name=f"claimer-{name}", daemon=True)
        self._consumers = [
            threading.Thread(target=self._consume, name=f"notification-consumer-{name}-{number}", daemon=True)
            for number in range(options.threads)
        ]
        self._stop = threading.Event()

    def run_once(self) -> int:
        """One claim, sent and recorded in the calling thread; says how many notifications were dealt with."""
        found = self._claim(self._options.claim_limit)
        size = self._channel.batch_size
        for start in range(0, len(found.taken), size):
            self._recorder.write(self._courier.deliver(found.taken[start : start + size]))
        return found.size

    def start(self) -> None:
        for thread in (self._claimer, *self._consumers):
            thread.start()

    def announce(self) -> None:
        """There may be something to claim."""
        self._announced.set()

    # ---- the producer --------------------------------------------------------------------------------------

    def _claim_on(self) -> None:
        while not self._stop.is_set():
            limit = self._wait_for_room()
            if limit:
                self._fill(limit)

    def _fill(self, limit: int) -> None:
        self._announced.clear()
        try:
            if self._was_away:
                self._let_records_go_first()
            found = self._claim(limit)
        except Unavailable:
            self._was_away = True
            pause_s = self._pause.next_s()
            log.warning("delivery_claim_waits", type=self.type, pause_s=pause_s)
            self._stop.wait(pause_s)
            return
        except Exception as error:
            log.error("delivery_claim_failed", type=self.type, **describe_error(error))
            self._stop.wait(LONGEST_PAUSE_S)
            return
        self._pause.reset()
        self._take_in(found.taken)
        if found.size < limit:
            self._announced.wait(self._options.poll_s)

    def _let_records_go_first(self) -> None:
        self._db.now()
        self._stop.wait(_RECORDS_FIRST_S)
        self._recorder.wait_until_written(_RECORDS_AT_MOST_S)
        self._was_away = False

    def _claim(self, limit: int) -> Claim:
        options = self._options
        with self._db.transaction() as conn:
            found = claim(
                conn, self.type, limit, options.lease_s, max_age_s=options.max_age_s, followers=self._followers
            )
        failpoint("delivery.claimed")
        if found.expired:
            self._metrics.count_expired(self.type, len(found.expired))
        return found

    def _take_in(self, taken: list[Claimed]) -> None:
        with self._room:
            self._in_hand += len(taken)
        for number, one in enumerate(taken):
            try:
                self._buffer.put(one)
            except BufferClosed:
                self._give_back(taken[number:])
                break
        self._metrics.count_produced(self.type, len(taken))
        self._show_depth()

    def _wait_for_room(self) -> int:
        """How many may be claimed; nothing for a handful, which would cost a transaction each."""
        capacity = self._capacity()
        worthwhile = max(1, min(capacity // 4, self._options.claim_limit))
        with self._room:
            self._room.wait_for(lambda: capacity - self._in_hand >= worthwhile, timeout=_SLICE_S)
            room = capacity - self._in_hand
        return min(room, self._options.claim_limit) if room >= worthwhile else 0

    def _capacity(self) -> int:
        """At least one batch for every thread and one waiting for it; more where sending goes fast."""
        hand = self._options.threads * self._channel.batch_size
        batches = max(2, int(_HAND_S / max(self._send_s, 1e-6)))
        return min(batches * hand, self._options.capacity)

    # ---- the consumers -------------------------------------------------------------------------------------

    def _consume(self) -> None:
        while taken := self._buffer.take(self._channel.batch_size):
            self._show_depth()
            self._carry(taken)

    def _carry(self, taken: list[Claimed]) -> None:
        began = time.monotonic()
        try:
            reports = self._courier.deliver(taken)
        except Exception as error:
            # Their leases run out, and they are tried again.
            log.error("delivery_batch_failed", type=self.type, count=len(taken), **describe_error(error))
            self._metrics.count_handler_error(self._channel.name)
            self._free(len(taken))
            return
        took_s = time.monotonic() - began
        # A moving average; that two threads may lose an update of each other does not matter to it.
        self._send_s += 0.1 * (took_s - self._send_s)
        self._metrics.observe_handler(self._channel.name, took_s, reports)
        self._recorder.put(reports, self._free)

    def _free(self, number: int) -> None:
        with self._room:
            self._in_hand -= number
            self._room.notify()

    def _show_depth(self) -> None:
        self._metrics.set_depth(self.type, len(self._buffer), self._buffer.capacity)

    # ---- the end -------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """No more is claimed, and what nobody has begun goes back for other workers."""
        self._stop.set()
        self._announced.set()
        self._give_back(self._buffer.close())

    def join(self, until: float) -> bool:
        """Waits, by the monotonic clock, for what is being sent; False where it is not over by then."""
        for thread in (self._claimer, *self._consumers):
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._consumers)

    def begin_nothing_more(self) -> None:
        """Of a batch that is being sent, the rest is left to other workers."""
        self._courier.begin_nothing_more()

    def _give_back(self, claimed: list[Claimed]) -> None:
        if not claimed:
            return
        self._free(len(claimed))
        try:
            with self._db.transaction() as conn:
                put_back(conn, claimed)
        except Unavailable:
            log.warning("delivery_put_back_failed", count=len(claimed), hint="their leases run out by themselves")
