"""The dispatcher: claims what is due, has it sent on a few threads, and has it recorded."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import structlog

from app.clock import Clock
from app.db import Database
from app.delivery.channels.base import Channel
from app.delivery.courier import Courier
from app.delivery.faults import describe
from app.delivery.metrics import DeliveryMetrics
from app.delivery.models import NotificationType
from app.delivery.queue import Claimed, claim, put_back
from app.delivery.recorder import Recorder
from app.delivery.service import WAKE_CHANNEL
from app.delivery.wake import Waker
from app.errors import Unavailable
from app.failpoints import failpoint

log = structlog.get_logger(__name__)

# How long the loop may be deaf to the order to stop.
_SLICE_S = 0.2
# How much work is taken in hand at once: so much that no thread waits for the next claim, so little that an urgent
# message does not stand behind a long queue of ours, nor a lease run out in it.
_HAND_S = 0.25
_FIRST_GUESS_S = 0.1
_MOST_IN_HAND = 1000
# Between two tries to claim while the database is away.
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True)
class DispatcherOptions:
    threads: int = 8
    poll_s: float = 1.0
    lease_s: float = 30.0
    """Longer than anything a channel does, or a message would be taken from a worker that is still sending it."""
    claim_limit: int = 200
    drain_s: float = 30.0
    record_s: float = 5.0
    """Time left, after draining, to write down the last results."""


class Dispatcher:
    """Serves one type of notification with one channel. Several may run side by side, in any number of processes."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        channel: Channel,
        *,
        database_url: str,
        options: DispatcherOptions | None = None,
        type_: NotificationType = NotificationType.PUSH,
        metrics: DeliveryMetrics | None = None,
    ) -> None:
        self._db = db
        self._type = type_
        self._channel = channel
        self._options = options or DispatcherOptions()
        self._courier = Courier(channel, clock)
        self.metrics = metrics or DeliveryMetrics()
        self._waker = Waker(database_url, WAKE_CHANNEL)
        self._recorder = Recorder(db, type_, self.metrics, self._free)
        self._room = threading.Condition()
        self._in_hand = 0
        self._pause_s = _FIRST_PAUSE_S
        self._send_s = _FIRST_GUESS_S
        self._given: dict[Future[None], list[Claimed]] = {}

    def run_once(self) -> int:
        """One claim, sent and recorded in the calling thread; says how many notifications were dealt with."""
        claimed, seen = self._claim(self._options.claim_limit)
        for batch in self._batches(claimed):
            self._recorder.write(self._courier.deliver(batch))
        return seen

    def run(self, stop: threading.Event) -> None:
        self._recorder.start()
        pool = ThreadPoolExecutor(self._options.threads, thread_name_prefix="delivery")
        try:
            while not stop.is_set():
                self._step(pool, stop)
        finally:
            self._drain(pool)

    def _step(self, pool: ThreadPoolExecutor, stop: threading.Event) -> None:
        limit = self._wait_for_room()
        if limit == 0:
            return
        try:
            claimed, seen = self._claim(limit)
        except Unavailable:
            log.warning("delivery_claim_waits", pause_s=self._pause_s)
            stop.wait(self._pause_s)
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            return
        self._pause_s = _FIRST_PAUSE_S
        for batch in self._batches(claimed):
            self._hand_over(pool, batch)
        if seen < limit:
            self._sleep(stop)
        else:
            # There is more, but announcements nobody reads would pile up in the server.
            self._waker.wait(0)

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
        batches = max(2, int(_HAND_S / max(self._send_s, 1e-6)))
        least = 2 * self._options.threads * self._channel.batch_size
        return max(least, min(batches * self._options.threads * self._channel.batch_size, _MOST_IN_HAND))

    def _claim(self, limit: int) -> tuple[list[Claimed], int]:
        with self._db.transaction() as conn:
            found = claim(conn, self._type, limit, self._options.lease_s)
        failpoint("delivery.claimed")
        if found.expired:
            self.metrics.count_expired(self._type, found.expired)
        return found.taken, found.size

    def _batches(self, claimed: list[Claimed]) -> list[list[Claimed]]:
        size = self._channel.batch_size
        return [claimed[start : start + size] for start in range(0, len(claimed), size)]

    def _hand_over(self, pool: ThreadPoolExecutor, batch: list[Claimed]) -> None:
        with self._room:
            self._in_hand += len(batch)
            self.metrics.set_in_hand(self._in_hand)
        future = pool.submit(self._send, batch)
        self._given[future] = batch
        future.add_done_callback(lambda done: self._given.pop(done, None) if not done.cancelled() else None)

    def _send(self, batch: list[Claimed]) -> None:
        began = time.monotonic()
        try:
            self._recorder.put(self._courier.deliver(batch))
            # A moving average; that two threads may lose an update of each other does not matter to it.
            self._send_s += 0.1 * (time.monotonic() - began - self._send_s)
        except Exception as error:
            # Their leases run out, and they are tried again.
            log.error("delivery_batch_failed", count=len(batch), **describe(error))
            self._free(len(batch))

    def _free(self, number: int) -> None:
        with self._room:
            self._in_hand -= number
            self.metrics.set_in_hand(self._in_hand)
            self._room.notify()

    def _sleep(self, stop: threading.Event) -> None:
        until = time.monotonic() + self._options.poll_s
        while not stop.is_set():
            left_s = until - time.monotonic()
            if left_s <= 0 or self._waker.wait(min(left_s, _SLICE_S)):
                return

    def _drain(self, pool: ThreadPoolExecutor) -> None:
        """Finishes what is being sent, writes it down, and gives the rest back to other workers."""
        given = dict(self._given)
        unbegun = [one for future, batch in given.items() if future.cancel() for one in batch]
        self._put_back(unbegun)
        unfinished = wait(given, timeout=self._options.drain_s).not_done
        if unfinished:
            log.warning("delivery_drain_incomplete", batches=len(unfinished))
        pool.shutdown(wait=False, cancel_futures=True)
        self._recorder.close(self._options.record_s)
        self._waker.close()
        log.info("delivery_drained", put_back=len(unbegun))

    def _put_back(self, claimed: list[Claimed]) -> None:
        if not claimed:
            return
        try:
            with self._db.transaction() as conn:
                put_back(conn, claimed)
        except Unavailable:
            log.warning("delivery_put_back_failed", count=len(claimed), hint="their leases run out by themselves")
