"""Finds missed deadlines: those that only the sweep can find.

Most due tasks that the sweep finds are not missed: they fell due this moment, another matcher is settling them, or the
ticker has a thousand others before them. A deadline is missed if no listener got its event and the ticker will not find
it, because Redis never got the deadline or has lost it. While all is well, no deadline is missed.
"""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from app.foundation.clock import Clock
from app.matching.due import DueTasks
from app.matching.store.stores import Stores
from app.redis_store.contract import Clockwork, RedisUnavailable

IN_REDIS_AFTER = timedelta(seconds=1)
"""Longer than the time from a commit until Redis has the new keys, and no longer than the shortest offer."""


class MissedDeadlines:
    def __init__(self, stores: Stores, clockwork: Clockwork | None, clock: Clock, due: DueTasks, batch: int) -> None:
        """The ticker claims from `clockwork`; None if no ticker runs."""
        self._stores = stores
        self._clockwork = clockwork
        self._clock = clock
        self._due = due
        self._batch = batch

    def find(self) -> set[UUID]:
        missed = self._due.unknown(self._overdue())
        missed -= self._scheduled_for_ticker(sorted(missed))
        # A task that was settled after the first read is not missed, so the due tasks are read again.
        return missed & set(self._overdue()) if missed else missed

    def _overdue(self) -> list[UUID]:
        with self._stores.reading() as store:
            return store.due_and_unchanged(self._batch, IN_REDIS_AFTER)

    def _scheduled_for_ticker(self, task_ids: Sequence[UUID]) -> set[UUID]:
        if self._clockwork is None:
            return set()
        try:
            return self._clockwork.scheduled(task_ids, self._clock.now())
        except RedisUnavailable:
            return set()
