"""Runs the cascade: transactions first, then the hints that follow each commit.

Redis is read before a transaction and written after it, never inside. When it does not answer, PostgreSQL ranks anew,
and the reconciler repairs the keys later.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from uuid import UUID

import structlog

from app.foundation.clock import Clock
from app.foundation.failpoints import failpoint
from app.matching.cascade import Lists, settle
from app.matching.follow_up import FollowUp, combined
from app.matching.rules import MatchingRules
from app.matching.store.stores import Store, Stores
from app.redis_store.contract import Clockwork, RedisUnavailable

log = structlog.get_logger(__name__)
Seen = TypeVar("Seen")

ROUNDS = 20
"""A task whose choice is overtaken every time is left to the matcher after these. Its row says that it is due."""


class CascadeRunner:
    def __init__(self, stores: Stores, clockwork: Clockwork, clock: Clock, rules: MatchingRules) -> None:
        self.stores = stores
        self.clockwork = clockwork
        self.clock = clock
        self.rules = rules

    def lists(self, task_ids: Sequence[UUID]) -> Lists:
        """The candidate lists as Redis has them; none where it does not answer."""
        try:
            return Lists(self.clockwork.peek(task_ids, self.rules.cap))
        except RedisUnavailable:
            log.warning("candidate_lists_unreachable", tasks=len(task_ids))
            return Lists({})

    def advance(self, task_ids: Iterable[UUID], *, skip_locked: bool = False) -> FollowUp:
        """Settles these tasks and all that follows from it, until nothing is left to do now."""
        ids = sorted(set(task_ids))
        if not ids:
            return FollowUp()
        lists = self.lists(ids)
        failpoint("advance.listed")
        with self.stores.transaction() as store:
            follow_up = settle(store, ids, lists, self.rules, skip_locked=skip_locked)
            failpoint("advance.before_commit")
        failpoint("advance.committed")
        return self.follow_up(follow_up, skip_locked=skip_locked)

    def first_offer(self, task_id: UUID, candidates: Sequence[int], look: Callable[[Store], Seen]) -> Seen:
        """`look` reads what the offer's transaction has written, before its commit."""
        new = Lists({task_id: candidates}, are_new=True)
        with self.stores.transaction() as store:
            follow_up = settle(store, [task_id], new, self.rules)
            failpoint("first_offer.before_commit")
            seen = look(store)
        failpoint("first_offer.committed")
        self.follow_up(follow_up)
        return seen

    def follow_up(self, latest: FollowUp, *, skip_locked: bool = False) -> FollowUp:
        """After a commit: Redis is told, tasks that were overtaken are settled again, freed students are offered to
        tasks that wait, and tasks that waited for a student who is unavailable now look for another, or end.

        A task that begins to wait is settled once more after its row says so, and a freed student looks for waiting
        tasks after their row says so. So one of the two sees the other, and no task sleeps through.

        Returns the sum of what followed.
        """
        total = FollowUp()
        fruitless: frozenset[UUID] = frozenset()
        for _ in range(ROUNDS):
            self._tell_redis(latest)
            failpoint("follow_up.shown")
            began_to_wait = latest.began_to_wait - total.began_to_wait
            total = combined(total, latest)
            if latest.figures.offered:
                fruitless = frozenset()
            # All students who were freed so far, not only those of this round: another process may have given the task
            # that was meant for one of them to somebody else, and then there may be a next task.
            ids = latest.again | began_to_wait | (self._waiting_for(total) - fruitless)
            if not ids:
                return total
            fruitless |= ids
            latest = self._settle_again(sorted(ids), skip_locked)
        self._tell_redis(latest)
        log.warning("cascade_left_to_the_matcher", tasks=len(latest.again))
        return combined(total, latest)

    def _settle_again(self, ids: Sequence[UUID], skip_locked: bool) -> FollowUp:
        lists = self.lists(ids)
        with self.stores.transaction() as store:
            follow_up = settle(store, ids, lists, self.rules, skip_locked=skip_locked)
            failpoint("follow_up.before_commit")
        failpoint("follow_up.committed")
        return follow_up

    def _tell_redis(self, follow_up: FollowUp) -> None:
        try:
            self.clockwork.apply(list(follow_up.keys.values()), self.clock.now())
        except RedisUnavailable:
            log.warning("redis_not_told", tasks=len(follow_up.keys))

    def _waiting_for(self, total: FollowUp) -> frozenset[UUID]:
        """Tasks that wait for a student who was freed, or wait in vain for one who is unavailable."""
        if not total.freed and not total.unavailable:
            return frozenset()
        waiting: set[UUID] = set()
        with self.stores.reading() as store:
            if total.freed:
                waiting |= store.oldest_waiting_tasks(total.freed, self.rules.radius_m)
            if total.unavailable:
                waiting |= store.tasks_waiting_for(total.unavailable, self.rules.radius_m)
        return frozenset(waiting)
