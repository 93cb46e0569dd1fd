"""What all parts of the store in memory share."""

from collections.abc import Callable
from datetime import datetime, timedelta

from app.matching.store.memory.tables import Tables

TICK = timedelta(microseconds=1)


class Part:
    def __init__(self, rows: Tables, now: Callable[[], datetime]) -> None:
        self.rows = rows
        self.now = now
