"""Adds the partitions of the coming months. While none is missing, a turn is one short read."""

import threading

import structlog

from app.db.database import Database
from app.db.months import add_months
from app.delivery.messages.models import MONTHLY
from app.foundation.loop import run_loop

log = structlog.get_logger(__name__)

EVERY_S = 6 * 3600.0
AGAIN_S = 60.0


class MonthsAhead:
    def __init__(self, db: Database) -> None:
        self._db = db

    def run(self, stop: threading.Event) -> None:
        run_loop("months_ahead", self._turn, stop, first_pause_s=AGAIN_S, longest_pause_s=AGAIN_S)

    def _turn(self) -> float:
        added = add_months(self._db, MONTHLY)
        if added:
            log.info("months_added", partitions=added)
        return EVERY_S
