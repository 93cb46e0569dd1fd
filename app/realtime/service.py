"""The interface of events: opens streams, and runs what fills them."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from app.db.database import Database
from app.db.wake import Announcer
from app.foundation.errors import InvalidValue
from app.realtime import event_log
from app.realtime.contract import CheckTokens, EventsGone, Wanted
from app.realtime.event_clock import EventClock
from app.realtime.event_days import EventDays
from app.realtime.event_history import EventHistory
from app.realtime.event_stream import Block, EventStream
from app.realtime.fan_out import FanOut, Place
from app.realtime.live_events import LiveEvents
from app.realtime.metrics import EventMetrics
from app.realtime.stream_checks import StreamChecks
from app.redis_store.contract import RedisUnavailable
from app.redis_store.event_heads import EventHeads
from app.users.models import Caller

log = structlog.get_logger(__name__)

CHANNEL = "events"
"""Of NOTIFY, from the triggers."""
HISTORY_THREADS = 2


@dataclass(frozen=True)
class RealtimeRules:
    kept_days: int
    most_streams: int
    most_per_person: int


class Realtime:
    """Its threads start with the process, or else with the first stream."""

    def __init__(
        self,
        db: Database,
        announcer: Announcer,
        heads: EventHeads,
        check: CheckTokens,
        rules: RealtimeRules,
        metrics: EventMetrics,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._announcer = announcer
        self._heads = heads
        self._metrics = metrics
        self._fan_out = FanOut(most_streams=rules.most_streams, most_per_person=rules.most_per_person)
        self._clock = EventClock()
        self._live = LiveEvents(db, self._fan_out, self._clock, self._publish, metrics)
        self._checks = StreamChecks(self._fan_out, check, self._close_stream, monotonic)
        self._days = EventDays(db, rules.kept_days)
        self._history = EventHistory(db)
        self._readers = ThreadPoolExecutor(HISTORY_THREADS, "event-history")
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._threads: list[threading.Thread] = []
        announcer.on("", self._live.look)
        announcer.listen_only_while(lambda: self._fan_out.place is not None)

    def start(self) -> None:
        with self._starting:
            if self._threads or self._stop.is_set():
                return
            runs: dict[str, Callable[[threading.Event], None]] = {
                "live-events": self._live.run,
                "stream-checks": self._checks.run,
                "event-days": self._days.run,
                "event-heads": lambda stop: self._heads.follow(self._live.look, stop),
            }
            for name, run in runs.items():
                thread = threading.Thread(target=run, args=(self._stop,), name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
            self._announcer.start()

    def open_stream(self, caller: Caller, token: str, wanted: Wanted, after: int | None) -> EventStream:
        """Raises `EventsGone`, `InvalidValue`, `TooManyStreams` and `NoRoomForStream`."""
        self.start()
        if self._fan_out.place is None:
            self._live.catch_up()
        with self._db.reading() as conn:
            known = event_log.bounds(conn)
        self._clock.set(known.now)
        if after is not None:
            _check_position(after, known)
        stream = EventStream(
            caller, token, wanted, after, read_page=self._read_page, now=self._clock.now, on_close=self._close_stream
        )
        self._fan_out.add(stream, Place(known.head, known.day))
        self._metrics.open_streams.set(self._fan_out.count)
        self._announcer.listen()
        self._live.bell.ring()
        return stream

    def close(self) -> None:
        with self._starting:
            self._stop.set()
            threads = list(self._threads)
        self._live.bell.ring()
        if threads:
            # Wakes the thread that follows the hints.
            self._publish(0)
        for thread in threads:
            thread.join(2)
        if threads:
            self._announcer.close()
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._heads.close()
        self._db.close()

    def _close_stream(self, stream: EventStream) -> None:
        self._fan_out.remove(stream)
        self._metrics.open_streams.set(self._fan_out.count)
        if stream.reason is not None:
            self._metrics.count_end(stream.reason)

    async def _read_page(self, stream: EventStream, after: int) -> tuple[Sequence[Block], int | None]:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._history.page, stream, after)

    def _publish(self, head: int) -> None:
        try:
            self._heads.publish(head)
        except RedisUnavailable:
            log.warning("event_head_not_published")


def oldest_draft_s(conn: Connection) -> float:
    """For how long an event waits for its position; 0 if none does."""
    return event_log.oldest_draft_s(conn)


def _check_position(after: int, known: event_log.Bounds) -> None:
    if after > known.head:
        raise InvalidValue("Last-Event-ID", "is newer than all events")
    if not known.is_kept(after):
        raise EventsGone("Events after this one are not kept any more.")
