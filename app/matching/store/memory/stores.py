"""The store in memory, for tests: the same answers and the same refusals, one transaction at a time.

What PostgreSQL decides by its clock is decided by the clock given here, which stands still during a statement and
moves on by a microsecond with each look at it, as the real one never tells the same time twice.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime

from app.foundation.clock import Clock
from app.matching.store.memory.offers import MemoryOffers
from app.matching.store.memory.part import TICK
from app.matching.store.memory.people import MemoryPeople
from app.matching.store.memory.sweep import MemorySweep
from app.matching.store.memory.tables import StudentRow, Tables, UserRow
from app.matching.store.memory.tasks import MemoryTasks
from app.matching.store.memory.views import MemoryViews


class MemoryStore(MemoryTasks, MemoryOffers, MemoryPeople, MemorySweep, MemoryViews):
    """All of it, within one transaction."""


class MemoryStores:
    def __init__(self, clock: Clock) -> None:
        self.tables = Tables()
        self._clock = clock
        self._last = clock.now()
        self._lock = threading.RLock()

    @contextmanager
    def transaction(self) -> Generator[MemoryStore]:
        with self._lock:
            before = self.tables.copy()
            try:
                yield MemoryStore(self.tables, self.now)
            except BaseException:
                self.tables = before
                raise

    @contextmanager
    def reading(self) -> Generator[MemoryStore]:
        with self._lock:
            yield MemoryStore(self.tables, self.now)

    def now(self) -> datetime:
        self._last = max(self._clock.now(), self._last + TICK)
        return self._last

    def add_user(self, user: UserRow, student: StudentRow | None = None) -> None:
        self.tables.users[user.id] = user
        if student is not None:
            self.tables.students[student.id] = student
