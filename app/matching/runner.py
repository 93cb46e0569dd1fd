"""Runs the cascade: one transaction after the other, and the hints after each commit.

Redis is read before a transaction and written after it, never inside. If Redis does not answer, PostgreSQL ranks the
candidates anew, and the reconciler repairs the keys later.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from uuid import UUID

import structlog

from app.foundation.clock import Clock
from app.foundation.failpoints import failpoint
from app.matching.cascade import Lists, settle
from app.matching.follow_up import FollowUp, combined
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.stores import Stores
from app.redis_store.contract import Clockwork, RedisUnavailable

log = structlog.get_logger(__name__)

NO_LISTS: Mapping[UUID, Sequence[int]] = {}
ROUNDS = 20
"""A task that loses its chosen student to another transaction in this many rounds is left to the matcher. It is due."""


class CascadeRunner:
    def __init__(self, stores: Stores, clockwork: Clockwork, clock: Clock, rules: MatchingRules) -> None:
        self.stores = stores
        self.clockwork = clockwork
        self.clock = clock
        self.rules = rules

    def lists(self, task_ids: Sequence[UUID], known: Mapping[UUID, Sequence[int]] = NO_LISTS) -> Lists:
        """The candidate lists that Redis holds; no lists if it does not answer."""
        unknown = [task_id for task_id in task_ids if task_id not in known]
        if not unknown:
            return Lists(known)
        try:
            return Lists({**known, **self.clockwork.peek(unknown, self.rules.cap)})
        except RedisUnavailable:
            log.warning("candidate_lists_unreachable", tasks=len(unknown))
            return Lists(known)

    def advance(
        self, task_ids: Iterable[UUID], known: Mapping[UUID, Sequence[int]] = NO_LISTS, *, skip_locked: bool = False
    ) -> FollowUp:
        """Settles these tasks, and then all tasks that can go on because of it. `known` are lists that were read a
        moment ago."""
        ids = sorted(set(task_ids))
        if not ids:
            return FollowUp()
        lists = self.lists(ids, known)
        failpoint("advance.listed")
        settled, waiting = self._settle("advance", ids, lists, skip_locked)
        return self.follow_up(settled, waiting, skip_locked=skip_locked)

    def follow_up(
        self, latest: FollowUp, waiting: AbstractSet[UUID] | None = None, *, skip_locked: bool = False
    ) -> FollowUp:
        """Runs after a commit. Writes to Redis, and settles these tasks again, in rounds: tasks that lost their chosen
        student to another transaction, tasks that began to wait, and tasks that wait for a student who was freed or is
        unavailable now.

        A task that begins to wait is settled once more after that is committed, and the search for tasks that wait for
        a freed student runs after the student's row is committed. So one of the two sees the other's commit, and no
        task misses a free student. `waiting` are those tasks, if they were read together with the commit.

        Returns the sum of all follow-ups.
        """
        total = FollowUp()
        # Settling these tasks again before another offer is made would change nothing.
        settled_again: frozenset[UUID] = frozenset()
        for _ in range(ROUNDS):
            self._write_to_redis(latest)
            failpoint("follow_up.shown")
            began_to_wait = latest.began_to_wait - total.began_to_wait
            total = combined(total, latest)
            if latest.figures.offered:
                settled_again = frozenset()
            # All students who were freed so far, not only those of this round: another process may have found a student
            # for the task that waited for one of them, and then the next waiting task can have the freed student.
            found = self._waiting_for(total) if waiting is None else waiting
            ids = latest.again | began_to_wait | (found - settled_again)
            if not ids:
                return total
            settled_again |= ids
            again = sorted(ids)
            latest, _ = self._settle("follow_up", again, self.lists(again), skip_locked)
            waiting = None
        self._write_to_redis(latest)
        log.warning("cascade_left_to_the_matcher", tasks=len(latest.again))
        return combined(total, latest)

    def _settle(
        self, reason: str, ids: Sequence[UUID], lists: Lists, skip_locked: bool
    ) -> tuple[FollowUp, AbstractSet[UUID] | None]:
        """One transaction. With its follow-up, the tasks that wait for a student whom it freed; None if they could not
        be read together with the commit."""
        with self.stores.transaction() as store:
            settled = settle(store, ids, lists, self.rules, skip_locked=skip_locked)
            waiting = store.oldest_waiting_tasks_after_commit(settled.freed, self.rules)
            failpoint(f"{reason}.before_commit")
        failpoint(f"{reason}.committed")
        return settled.follow_up(), waiting()

    def _write_to_redis(self, follow_up: FollowUp) -> None:
        try:
            self.clockwork.apply(list(follow_up.keys.values()), self.clock.now())
        except RedisUnavailable:
            log.warning("redis_not_told", tasks=len(follow_up.keys))

    def _waiting_for(self, total: FollowUp) -> frozenset[UUID]:
        """The tasks that wait for a student who was freed, or for one who is unavailable now."""
        if not total.freed and not total.unavailable:
            return frozenset()
        waiting: set[UUID] = set()
        with self.stores.reading() as store:
            if total.freed:
                waiting |= store.oldest_waiting_tasks(total.freed, self.rules)
            if total.unavailable:
                waiting |= store.tasks_waiting_for(total.unavailable, self.rules)
        return frozenset(waiting)
