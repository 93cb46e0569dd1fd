"""Figures of months, kept for a minute. Many who look at the same month cost one reading, and one reading runs at a
time: each is work for the database, and holds one of the few connections of the process."""

import threading
import time
from collections.abc import Callable

from app.db.database import Database
from app.jobs.reports.month_figures import LIMIT_S, FiguresTooSlow, MonthAtAGlance, MonthFigures
from app.jobs.reports.report_month import Month

KEPT_S = 60.0
MOST = 50
"""Months and institutions."""
MOST_WAITING = 2
"""Each holds a thread that presses need."""

Key = tuple[Month, int | None]
Read = Callable[[Month, int | None], MonthFigures]


class FiguresAtHand:
    def __init__(self, read: Read, clock: Callable[[], float] = time.monotonic, wait_s: float = LIMIT_S) -> None:
        self._read = read
        self._clock = clock
        self._wait_s = wait_s
        self._kept: dict[Key, tuple[float, MonthFigures | FiguresTooSlow]] = {}
        self._reading = threading.Lock()
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)

    def of(self, month: Month, institution: int | None) -> MonthFigures:
        found = self._find((month, institution))
        if found is None:
            if not self._take_turn():
                raise FiguresTooSlow("Others are counting; try again in a minute.")
            try:
                # Whoever was counting meanwhile may have counted the same.
                found = self._find((month, institution)) or self._count(month, institution)
            finally:
                self._reading.release()
        if isinstance(found, FiguresTooSlow):
            raise FiguresTooSlow(found.message)
        return found

    def _take_turn(self) -> bool:
        if self._reading.acquire(blocking=False):
            return True
        if not self._waiting.acquire(blocking=False):
            return False
        try:
            return self._reading.acquire(timeout=self._wait_s)
        finally:
            self._waiting.release()

    def _find(self, key: Key) -> MonthFigures | FiguresTooSlow | None:
        read_at, found = self._kept.get(key, (0.0, None))
        return None if found is None or self._clock() - read_at > KEPT_S else found

    def _count(self, month: Month, institution: int | None) -> MonthFigures | FiguresTooSlow:
        """That it takes too long is kept as well, so that nobody tries again at once."""
        found: MonthFigures | FiguresTooSlow
        try:
            found = self._read(month, institution)
        except FiguresTooSlow as error:
            found = error
        self._kept.pop((month, institution), None)
        while len(self._kept) >= MOST:
            del self._kept[next(iter(self._kept))]
        self._kept[month, institution] = self._clock(), found
        return found


def figures_of(db: Database) -> FiguresAtHand:
    def read(month: Month, institution: int | None) -> MonthFigures:
        with db.transaction() as conn:
            return MonthAtAGlance(conn, month, institution).read()

    return FiguresAtHand(read)
