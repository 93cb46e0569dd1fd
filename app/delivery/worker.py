"""The dispatcher: a lane for every type of notification, one recorder for all, and somebody who listens for news."""

import threading
import time
from collections.abc import Iterable, Sequence

import structlog

from app.clock import Clock
from app.db import Database
from app.delivery.breaker import Gate
from app.delivery.channels.base import Channel
from app.delivery.channels.registry import Channels, NoChannel
from app.delivery.channels.unserved import UnservedChannel
from app.delivery.courier import Courier
from app.delivery.lane import Lane, LaneOptions
from app.delivery.metrics import DeliveryMetrics
from app.delivery.models import NotificationType
from app.delivery.recorder import GROUP_S, Recorder
from app.delivery.wake import Announcer, Listener
from app.redis_store.breakers import Breakers, MemoryBreakers

log = structlog.get_logger(__name__)

# To finish what is being sent; then, for what may end early; then, to write down the last results.
DRAIN_S = 30.0
ABORT_S = 10.0
RECORD_S = 3.0


class Dispatcher:
    """Several may run side by side, in any number of processes."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        channels: Channels,
        *,
        database_url: str,
        options: LaneOptions | None = None,
        types: Sequence[NotificationType] = tuple(NotificationType),
        breakers: Breakers | None = None,
        metrics: DeliveryMetrics | None = None,
        listeners: Iterable[Listener] = (),
        group_s: float = GROUP_S,
        drain_s: float = DRAIN_S,
        abort_s: float = ABORT_S,
    ) -> None:
        self._drain_s = drain_s
        self._abort_s = abort_s
        self.metrics = metrics or DeliveryMetrics()
        gate = Gate(breakers or MemoryBreakers())
        self._recorder = Recorder(db, self.metrics, group_s)
        self._lanes = [
            self._lane(db, clock, _channel_for(type_, channels), type_, gate, options or LaneOptions())
            for type_ in types
        ]
        heard = [Listener(lane.type, lane.announce) for lane in self._lanes]
        self._announcer = Announcer(database_url, [*heard, *listeners])

    def _lane(
        self, db: Database, clock: Clock, channel: Channel, type_: NotificationType, gate: Gate, options: LaneOptions
    ) -> Lane:
        return Lane(db, type_, channel, Courier(channel, clock, gate), self._recorder, self.metrics, options)

    def run_once(self) -> int:
        """One claim of each lane, sent and recorded in the calling thread."""
        return sum(lane.run_once() for lane in self._lanes)

    def run(self, stop: threading.Event) -> None:
        self._recorder.start()
        self._announcer.start()
        for lane in self._lanes:
            lane.start()
        stop.wait()
        self._drain()

    def _drain(self) -> None:
        """Finishes what is being sent, then only what cannot be left off, writes it down, and gives the rest back to
        other workers. The leases of what hangs all the same run out by themselves."""
        for lane in self._lanes:
            lane.stop()
        hanging = _join(self._lanes, self._drain_s)
        for lane in hanging:
            lane.begin_nothing_more()
            log.warning("delivery_leaves_off", type=lane.type.value)
        hanging = _join(hanging, self._abort_s)
        if hanging:
            log.warning("delivery_drain_incomplete", types=[lane.type.value for lane in hanging])
        self._recorder.close(RECORD_S)
        self._announcer.close()
        log.info("delivery_drained")


def _join(lanes: Sequence[Lane], within_s: float) -> list[Lane]:
    """Those that did not end in time."""
    until = time.monotonic() + within_s
    return [lane for lane in lanes if not lane.join(until)]


def _channel_for(type_: NotificationType, channels: Channels) -> Channel:
    try:
        return channels.find(type_)
    except NoChannel as nobody:
        log.warning("delivery_type_unserved", type=type_.value, told=str(nobody))
        return UnservedChannel(type_)
