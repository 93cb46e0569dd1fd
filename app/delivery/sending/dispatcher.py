"""The dispatcher: a channel worker for every type of notification, one recorder for all of them, and the announcer."""

import threading
import time
from collections.abc import Sequence

import structlog

from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.channels.base import Channel
from app.delivery.channels.registry import Channels, NoChannel
from app.delivery.channels.unserved import UnservedChannel
from app.delivery.messages.values import Follower, NotificationType
from app.delivery.sending.breaker_gate import BreakerGate
from app.delivery.sending.channel_worker import ChannelWorker, ChannelWorkerOptions
from app.delivery.sending.heartbeat import Heartbeat
from app.delivery.sending.metrics import DeliveryMetrics
from app.delivery.sending.recorder import GROUP_S, Recorder
from app.delivery.sending.sender import Sender
from app.foundation.clock import Clock
from app.redis_store.breakers import Breakers

log = structlog.get_logger(__name__)

# The time limits of the phases of draining: finish the batches, then stop inside batches, then record the last results.
DRAIN_S = 30.0
ABORT_S = 10.0
RECORD_S = 3.0


class Dispatcher:
    """Any number of dispatchers may run at the same time, in one process or in several."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        channels: Channels,
        *,
        announcer: Announcer,
        options: ChannelWorkerOptions | None = None,
        types: Sequence[NotificationType] = tuple(NotificationType),
        breakers: Breakers,
        metrics: DeliveryMetrics | None = None,
        followers: Sequence[Follower],
        group_s: float = GROUP_S,
        drain_s: float = DRAIN_S,
        abort_s: float = ABORT_S,
    ) -> None:
        self._drain_s = drain_s
        self._abort_s = abort_s
        self.metrics = metrics or DeliveryMetrics()
        gate = BreakerGate(breakers)
        self._followers = followers
        self._heartbeat = Heartbeat(db)
        self._recorder = Recorder(db, self.metrics, followers, group_s)
        self._workers = [
            self._worker(db, clock, _channel_for(type_, channels), type_, gate, options or ChannelWorkerOptions())
            for type_ in types
        ]
        self._announcer = announcer
        for worker in self._workers:
            announcer.on(worker.type, worker.announce)

    def _worker(
        self,
        db: Database,
        clock: Clock,
        channel: Channel,
        type_: NotificationType,
        gate: BreakerGate,
        options: ChannelWorkerOptions,
    ) -> ChannelWorker:
        sender = Sender(channel, clock, gate, holds=self._heartbeat.holds)
        return ChannelWorker(
            db, type_, channel, sender, self._recorder, self.metrics, options, self._followers, self._heartbeat
        )

    def run_once(self) -> int:
        """Makes one claim for each worker, sends and records it in the calling thread. Returns the number claimed."""
        self._heartbeat.beat()
        return sum(worker.run_once() for worker in self._workers)

    def run(self, stop: threading.Event) -> None:
        self._recorder.start()
        self._heartbeat.start()
        self._announcer.start()
        for worker in self._workers:
            worker.start()
        stop.wait()
        self._drain()

    def _drain(self) -> None:
        """Finishes the batches that are being sent. After `drain_s`, a channel finishes only the messages that it has
        begun, and the rest of each batch is left to other workers. If a call hangs even after `abort_s`, its
        notifications are claimed again when their leases end."""
        for worker in self._workers:
            worker.stop()
        hanging = _join(self._workers, self._drain_s)
        for worker in hanging:
            worker.abort()
            log.warning("delivery_leaves_off", type=worker.type.value)
        hanging = _join(hanging, self._abort_s)
        if hanging:
            log.warning("delivery_drain_incomplete", types=[worker.type.value for worker in hanging])
        self._recorder.close(RECORD_S)
        self._heartbeat.close()
        self._announcer.close()
        log.info("delivery_drained")


def _join(workers: Sequence[ChannelWorker], within_s: float) -> list[ChannelWorker]:
    """The workers that did not end in time."""
    until = time.monotonic() + within_s
    return [worker for worker in workers if not worker.join(until)]


def _channel_for(type_: NotificationType, channels: Channels) -> Channel:
    try:
        return channels.find(type_)
    except NoChannel as error:
        log.warning("delivery_type_unserved", type=type_.value, reason=str(error))
        return UnservedChannel(type_)
