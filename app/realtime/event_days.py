"""Adds the partitions of the coming days, and drops those of days that are over."""

import threading

import structlog

from app.db.database import Database
from app.db.days import add_days, drop_days
from app.foundation.loop import run_loop
from app.realtime import event_log
from app.realtime.models import DAILY

log = structlog.get_logger(__name__)

EVERY_S = 3600.0
AGAIN_S = 60.0


class EventDays:
    def __init__(self, db: Database, kept_days: int) -> None:
        self._db = db
        self._kept_days = kept_days

    def run(self, stop: threading.Event) -> None:
        run_loop("event_days", self.turn, stop, first_pause_s=AGAIN_S, longest_pause_s=AGAIN_S)

    def turn(self) -> float:
        added = add_days(self._db, DAILY)
        with self._db.transaction() as conn:
            event_log.keep_head(conn)
        dropped = drop_days(self._db, DAILY, self._kept_days)
        if added or dropped:
            log.info("event_days_changed", added=added, dropped=dropped)
        return EVERY_S
