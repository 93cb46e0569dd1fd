"""A thread that gives positions to new events and hands them to the open streams of this process.

It is woken by NOTIFY from the transactions that write events, and by a hint from another process that gave positions.
Both may be lost: it looks once a second by itself.
"""

import threading
import time
from collections.abc import Callable
from datetime import date, timedelta

import structlog

from app.db.database import Database
from app.foundation.failpoints import failpoint
from app.foundation.loop import Bell, run_loop
from app.realtime.event_clock import EventClock
from app.realtime.event_log import Sequenced, read_new, sequence
from app.realtime.fan_out import FanOut, Place
from app.realtime.metrics import EventMetrics

log = structlog.get_logger(__name__)

POLL_S = 1.0
IDLE_S = 10.0
"""While nobody reads, only so that drafts do not pile up."""
GATHER_S = 0.015
"""Between two looks, so that a busy service reads many events at once."""
BUSY_S = 0.02
"""Until the next look if another process gives positions at this moment. Its hint may come sooner."""
CATCH_UP_S = 3.0
"""A first stream may begin earlier than at the newest event rather than wait for longer."""
MOST_AT_ONCE = 500

Publish = Callable[[int], None]
"""Tells the other processes the newest position."""


class LiveEvents:
    def __init__(
        self, db: Database, fan_out: FanOut, clock: EventClock, publish: Publish, metrics: EventMetrics
    ) -> None:
        self._db = db
        self._fan_out = fan_out
        self._clock = clock
        self._publish = publish
        self._metrics = metrics
        self._looked_at = 0.0
        self.bell = Bell()

    def run(self, stop: threading.Event) -> None:
        run_loop("live_events", lambda: self._turn(stop), stop, sleep=self.bell.wait)

    def look(self) -> None:
        """After an announcement. While nobody reads, events can wait."""
        if self._fan_out.place is not None:
            self.bell.ring()

    def _turn(self, stop: threading.Event) -> float:
        stop.wait(max(0.0, self._looked_at + GATHER_S - time.monotonic()))
        self._looked_at = time.monotonic()
        place = self._fan_out.place
        done = self._sequence()
        if place is None:
            return 0 if done.moved == MOST_AT_ONCE else IDLE_S
        if done.head is not None and done.head < place.position:
            # It would otherwise say nothing until as many events have happened again.
            log.warning("events_restored", head=done.head, was=place.position)
            self._fan_out.begin_anew(Place(done.head, self._first_day(place)))
            return 0
        is_last = self._read(place)
        if done.moved and done.head is not None:
            self._publish(done.head)
        if not is_last or done.moved == MOST_AT_ONCE:
            return 0
        return BUSY_S if done.head is None else POLL_S

    def catch_up(self) -> None:
        """Gives positions to everything that is committed, so that a first stream begins after it."""
        give_up_at = time.monotonic() + CATCH_UP_S
        while time.monotonic() < give_up_at:
            done = self._sequence()
            if done.head is None:
                # Another process may have begun before the newest commit, and will not see it.
                time.sleep(BUSY_S)
            elif done.moved < MOST_AT_ONCE:
                return

    def _sequence(self) -> Sequenced:
        with self._db.autocommit() as conn:
            failpoint("events.before_sequence")
            done = sequence(conn, MOST_AT_ONCE)
        failpoint("events.sequenced")
        self._clock.set(done.now)
        return done

    def _first_day(self, place: Place) -> date:
        """A clock that was ahead, and is set back, gives new events an earlier day than the last one had."""
        return min(place.day, self._clock.now().date() - timedelta(days=1))

    def _read(self, place: Place) -> bool:
        with self._db.reading() as conn:
            page = read_new(conn, place.position, self._first_day(place), MOST_AT_ONCE)
        if page.until is not None and page.day is not None:
            delivered = self._fan_out.deliver(page.rows, Place(page.until, page.day))
            now = self._clock.now()
            self._metrics.count_written(delivered, [(now - row.at).total_seconds() for row in page.rows])
        return page.is_last
