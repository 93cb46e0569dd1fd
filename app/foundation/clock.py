"""The database's time.

A machine with a wrong clock must not expire an offer early, so decisions are made in SQL by `clock_timestamp()`.
`DatabaseClock` gives Python the same time for sleeping and for display: it measures the offset between the machine's
monotonic clock and the database, and measures it again when it is older than `resync_s`.

This clock is never ahead of the database's. A matcher whose clock is ahead claims every deadline before it is due,
finds nothing to do, and claims it again until it is.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime: ...


SHORT_S = 0.001
"""An answer that took no longer than this is good enough."""
READINGS = 5


class DatabaseClock:
    def __init__(
        self,
        read_database_time: Callable[[], datetime],
        resync_s: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read_database_time
        self._resync_s = resync_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._anchor: tuple[float, datetime] | None = None

    def now(self) -> datetime:
        anchor = self._anchor
        if anchor is None or self._monotonic() - anchor[0] > self._resync_s:
            anchor = self._measure(anchor)
        return anchor[1] + timedelta(seconds=self._monotonic() - anchor[0])

    def _measure(self, stale: tuple[float, datetime] | None) -> tuple[float, datetime]:
        with self._lock:
            if self._anchor is not None and self._anchor is not stale:
                return self._anchor
            try:
                self._anchor = self._anchor_of_the_shortest_reading()
            except Exception:
                # The old offset is good enough: without the database no decision is made.
                if stale is None:
                    raise
                return stale
            return self._anchor

    def _anchor_of_the_shortest_reading(self) -> tuple[float, datetime]:
        """The first reading may open a connection, and any may be held up. The database's time was read before the
        answer came, so the clock is behind by less than the reading took."""
        readings: list[tuple[float, float, datetime]] = []
        while len(readings) < READINGS and not (readings and readings[-1][0] <= SHORT_S):
            sent = self._monotonic()
            database_time = self._read()
            received = self._monotonic()
            readings.append((received - sent, received, database_time))
        _, received, database_time = min(readings)
        return received, database_time


class FakeClock:
    """A clock that tests move by hand."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 3, 12, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def rfc3339(moment: datetime, precision: str = "auto") -> str:
    """In UTC, with `Z`. `precision` is a timespec of `isoformat`."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def utc_milliseconds(moment: datetime) -> str:
    """The format of times in messages for other services."""
    return rfc3339(moment, "milliseconds")
