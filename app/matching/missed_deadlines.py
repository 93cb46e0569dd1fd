"""Deadlines that only the sweep finds.

Most of what the sweep finds is on its way: it fell due this moment, another matcher is settling it, or a ticker has a
thousand others before it. A deadline is missed if neither event nor ticker will bring it: no listener heard the event,
and Redis was never told of the deadline or has forgotten it. In a healthy copy there are none.
"""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from app.foundation.clock import Clock
from app.matching.due import DueTasks
from app.matching.store.stores import Stores
from app.redis_store.contract import Clockwork, RedisUnavailable

TOLD_AFTER = timedelta(seconds=1)
"""Longer than the time from a commit until Redis is told of it, and no longer than the shortest offer."""


class MissedDeadlines:
    def __init__(self, stores: Stores, clockwork: Clockwork | None, clock: Clock, due: DueTasks, batch: int) -> None:
        """`clockwork` is the one that the ticker claims from; None where there is no ticker."""
        self._stores = stores
        self._clockwork = clockwork
        self._clock = clock
        self._due = due
        self._batch = batch

    def find(self) -> set[UUID]:
        missed = self._due.unknown(self._overdue())
        missed -= self._brought_by_ticker(sorted(missed))
        # A task that was settled since the first look is not missed, so there is a second look.
        return missed & set(self._overdue()) if missed else missed

    def _overdue(self) -> list[UUID]:
        with self._stores.reading() as store:
            return store.due_and_unchanged(self._batch, TOLD_AFTER)

    def _brought_by_ticker(self, task_ids: Sequence[UUID]) -> set[UUID]:
        if self._clockwork is None:
            return set()
        try:
            return self._clockwork.scheduled(task_ids, self._clock.now())
        except RedisUnavailable:
            return set()
