"""Runs the cascade: transactions first, then the hints that follow each commit.

Redis is asked before a transaction and told after it, never inside. When it does not answer, PostgreSQL ranks
anew, and the reconciler repairs the keys later.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import structlog

from app.foundation.clock import Clock
from app.foundation.failpoints import failpoint
from app.matching.cascade import Settled, settle
from app.matching.rules import MatchingRules
from app.matching.store.stores import Store, Stores
from app.redis_store.contract import Clockwork, ListChange, RedisUnavailable

log = structlog.get_logger(__name__)
Seen = TypeVar("Seen")

ROUNDS = 20
"""A task whose choice is overtaken every time is left to the matcher after so many tries; its row says it is due."""


class CascadeRunner:
    def __init__(self, stores: Stores, clockwork: Clockwork, clock: Clock, rules: MatchingRules) -> None:
        self.stores = stores
        self.clockwork = clockwork
        self.clock = clock
        self.rules = rules

    def lists(self, task_ids: Sequence[UUID]) -> dict[UUID, list[int]]:
        """The candidate lists; none where Redis does not answer."""
        try:
            return self.clockwork.peek(task_ids, self.rules.cap)
        except RedisUnavailable:
            log.warning("candidate_lists_unreachable", tasks=len(task_ids))
            return {}

    def advance(
        self, task_ids: Iterable[UUID], *, skip_locked: bool = False, lists: Mapping[UUID, Sequence[int]] | None = None
    ) -> Settled:
        """Settles these tasks, and whatever that sets free, until there is nothing left to do now."""
        ids = sorted(set(task_ids))
        if not ids:
            return Settled()
        if lists is None:
            lists = self.lists(ids)
        failpoint("advance.listed")
        with self.stores.transaction() as store:
            settled = settle(store, ids, lists, self.rules, skip_locked=skip_locked)
            failpoint("advance.before_commit")
        failpoint("advance.committed")
        return self.follow_up(settled, skip_locked=skip_locked)

    def follow_up(self, settled: Settled, *, skip_locked: bool = False) -> Settled:
        """After a commit: Redis is told, overtaken tasks try again, freed students are offered to who waits, and
        who waits for a student that is lost looks for another, or ends.

        A task that begins to wait looks once more after it has said so. Whoever is freed looks for waiting tasks
        after saying so; so one of the two sees the other, and nobody sleeps through.
        """
        total = Settled()
        fruitless: set[UUID] = set()
        for _ in range(ROUNDS):
            self.show(settled)
            failpoint("follow_up.shown")
            began_to_wait = settled.waiting - total.waiting
            total.merge(settled)
            if settled.offered:
                fruitless.clear()
            # All who were freed so far, not only those of this round: another process may have given the task that
            # was meant for one of them to somebody else, and then there may be a next task.
            ids = settled.again | began_to_wait | (self._waiting_for(total) - fruitless)
            if not ids:
                break
            fruitless |= ids
            lists = self.lists(sorted(ids))
            with self.stores.transaction() as store:
                settled = settle(store, sorted(ids), lists, self.rules, skip_locked=skip_locked)
                failpoint("follow_up.before_commit")
            failpoint("follow_up.committed")
        else:
            self.show(settled)
            total.merge(settled)
            log.warning("cascade_left_to_the_matcher", tasks=len(settled.again))
        return total

    def show(self, settled: Settled) -> None:
        try:
            self.clockwork.apply(list(settled.keys.values()), self.clock.now())
        except RedisUnavailable:
            log.warning("redis_not_told", tasks=len(settled.keys))

    def _waiting_for(self, settled: Settled) -> set[UUID]:
        waiting: set[UUID] = set()
        if settled.freed or settled.lost:
            with self.stores.reading() as store:
                if settled.freed:
                    waiting |= store.oldest_waiting_tasks(settled.freed, self.rules.radius_m)
                if settled.lost:
                    waiting |= store.tasks_waiting_for(settled.lost, self.rules.radius_m)
        return waiting

    def first_offer(self, task_id: UUID, candidates: Sequence[int], look: Callable[[Store], Seen]) -> Seen:
        """The list has just been made and is not in Redis yet, so what remains of it is written there whole.
        `look` reads what the offer's transaction left."""
        with self.stores.transaction() as store:
            settled = settle(store, [task_id], {task_id: candidates}, self.rules)
            failpoint("first_offer.before_commit")
            seen = look(store)
        keys = settled.keys.get(task_id)
        if keys is not None and keys.list_change is ListChange.KEEP:
            left = [item for item in candidates if item not in keys.ids and item != keys.student_id]
            settled.keys[task_id] = replace(keys, list_change=ListChange.REPLACE, ids=left)
        failpoint("first_offer.committed")
        self.follow_up(settled)
        return seen
