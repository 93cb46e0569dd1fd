"""Limits the number of notifications that wait, because a longer queue could not be sent in time."""

import threading
import time
from collections.abc import Callable

from sqlalchemy import Connection, text

from app.db.database import Database
from app.db.schema import one_of
from app.delivery.messages.states import LIVE
from app.foundation.errors import Unavailable

COUNT_EVERY_S = 1.0


class BacklogFull(Unavailable):
    """Too many notifications wait to be sent; try again later."""

    code = "backlog_full"
    retry_after_s = 5


NEAR = 10_000
"""More than all processes together accept between two counts of one of them."""


class Backlog:
    """Counts the live notifications at most once a second, and adds those that this process accepts in between. Those
    of other processes are seen at the next count. Near the limit `hold_place` counts again, one request after the
    other in all processes, so that they never accept more than the limit together."""

    def __init__(
        self, count_live: Callable[[], int], limit: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._count_live = count_live
        self._limit = limit
        self._monotonic = monotonic
        self._live = 0
        self._next_count_at = float("-inf")
        self._counting = threading.Lock()
        self._adding = threading.Lock()

    def admit(self) -> None:
        if self._monotonic() >= self._next_count_at:
            self._count()
        if self._live >= self._limit:
            raise BacklogFull(FULL)

    def hold_place(self, conn: Connection) -> None:
        """Nobody else gets the place until the caller's transaction ends. Far from the limit it does nothing."""
        if self._live + NEAR < self._limit:
            return
        conn.execute(_ONE_AFTER_THE_OTHER)
        if conn.execute(_COUNT, {"limit": self._limit}).scalar_one() >= self._limit:
            raise BacklogFull(FULL)

    def note_added(self) -> None:
        with self._adding:
            self._live += 1

    def _count(self) -> None:
        # Only one thread counts. The others use the last count meanwhile.
        if not self._counting.acquire(blocking=False):
            return
        try:
            live = self._count_live()
            with self._adding:
                self._live = live
            self._next_count_at = self._monotonic() + COUNT_EVERY_S
        finally:
            self._counting.release()


FULL = "Too many notifications are waiting to be sent."
_ONE_AFTER_THE_OTHER = text("SELECT pg_advisory_xact_lock(hashtextextended('notification backlog', 0))")
_COUNT = text(f"SELECT count(*) FROM (SELECT FROM notifications WHERE {one_of('status', LIVE)} LIMIT :limit) AS live")


_COUNT_BY_TYPE = text(f"""
    SELECT notification_type, count(*) AS number FROM notifications WHERE {one_of("status", LIVE)} GROUP BY 1
""")


def count_live_notifications(conn: Connection) -> dict[str, int]:
    """The notifications that are not ended, by type. Types without one are left out."""
    return {row.notification_type: row.number for row in conn.execute(_COUNT_BY_TYPE)}


_LONGEST_WAIT = text(f"""
    SELECT CAST(coalesce(extract(epoch FROM statement_timestamp() - min(due_at)), 0) AS float8) FROM notifications
     WHERE {one_of("status", LIVE)} AND due_at <= statement_timestamp()
""")


def longest_wait_s(conn: Connection) -> float:
    """How long ago the oldest notification was due that nobody has sent; 0 if none is due. A service level is about
    those that ended, so it says nothing while none ends."""
    return conn.execute(_LONGEST_WAIT).scalar_one()


def watch_backlog(db: Database, limit: int) -> Backlog:
    def count_live() -> int:
        with db.reading() as conn:
            return conn.execute(_COUNT, {"limit": limit}).scalar_one()

    return Backlog(count_live, limit)
