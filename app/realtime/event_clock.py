"""The database's time for the blocks of streams. Asking for it costs nothing, so the event loop may do it."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta


class EventClock:
    """Whoever reads events tells it the time that came with them, at least once a second."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._anchor: tuple[float, datetime] | None = None

    def set(self, now: datetime) -> None:
        self._anchor = (self._monotonic(), now)

    def now(self) -> datetime:
        assert self._anchor is not None, "a stream is opened after a first look at the database"
        at, then = self._anchor
        return then + timedelta(seconds=self._monotonic() - at)
