"""Steps that are due and that nobody would ever have brought, were it not for the sweep.

Found by the sweep is much that is on its way: it fell due this moment, another matcher has it in hand, or a ticker has
a thousand others before it. Lost is what event and ticker let slip: an event nobody heard, a deadline Redis was never
told of or has forgotten. In a healthy copy there are none.
"""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from app.foundation.clock import Clock
from app.matching.due import DueTasks
from app.matching.store.stores import Stores
from app.redis_store.contract import Clockwork, RedisUnavailable

TOLD_AFTER = timedelta(seconds=1)
"""Longer than it takes from a commit until Redis has been told of it, and no longer than the shortest offer."""


class MissedDeadlines:
    def __init__(self, stores: Stores, clockwork: Clockwork | None, clock: Clock, due: DueTasks, batch: int) -> None:
        """The clockwork is the ticker's; None where there is no ticker."""
        self._stores = stores
        self._clockwork = clockwork
        self._clock = clock
        self._due = due
        self._batch = batch

    def find(self) -> set[UUID]:
        lost = self._due.strangers(self._overdue())
        lost -= self._will_come(sorted(lost))
        # What was handled while we looked is not lost, so there is a second look at what seems to be.
        return lost & set(self._overdue()) if lost else lost

    def _overdue(self) -> list[UUID]:
        with self._stores.reading() as store:
            return store.due_and_unchanged(self._batch, TOLD_AFTER)

    def _will_come(self, task_ids: Sequence[UUID]) -> set[UUID]:
        if self._clockwork is None:
            return set()
        try:
            return self._clockwork.scheduled(task_ids, self._clock.now())
        except RedisUnavailable:
            return set()
