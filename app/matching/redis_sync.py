"""Makes Redis agree with PostgreSQL: fills it after it was emptied, and finds changes that never reached it."""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from app.foundation.clock import Clock
from app.foundation.failpoints import failpoint
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import TaskStatus
from app.matching.store.records import HelpTask, Standing
from app.matching.store.stores import Store, Stores
from app.redis_store.contract import Clockwork, ListChange, TaskKeys

log = structlog.get_logger(__name__)

CHUNK = 500
COMPARED_AT_ONCE = 50
PAUSE_S = 0.005
"""The pause between small reads. A thread that reads many rows at once would slow down the interpreter and the stores
for the thread that settles due tasks."""
LISTS_AT_ONCE = 100
CHECK_AFTER = timedelta(seconds=2)
"""A change is compared with Redis once, this long after it was made. By then the process that made it has written it to
Redis, or has died. It is longer than any transaction waits for a lock."""
LOOK_BACK = timedelta(seconds=10)
"""The first comparison of a process begins with changes of this age."""


class RedisSync:
    def __init__(self, stores: Stores, clockwork: Clockwork, clock: Clock, rules: MatchingRules) -> None:
        self._stores = stores
        self._clockwork = clockwork
        self._clock = clock
        self._rules = rules
        self._compared_until: datetime | None = None
        self._lists_after: UUID | None = None
        """The last task whose list was looked for after Redis was emptied. None if all were."""

    def refresh(self) -> None:
        if not self._clockwork.is_complete():
            self.restore()
        self.compare()
        self.restore_lists(LISTS_AT_ONCE)

    def restore(self) -> None:
        """Writes deadlines and offers again, after Redis was emptied or missed a change. Candidate lists follow in
        portions; if a task needs its list earlier, PostgreSQL ranks the candidates."""
        log.info("redis_is_being_rebuilt")
        token = self._clockwork.begin_rebuild()
        failpoint("rebuild.begun")
        count, last = 0, UUID(int=0)
        while chunk := self._open_after(last):
            self._write(chunk)
            count += len(chunk)
            last = chunk[-1].task_id
        self._lists_after = UUID(int=0)
        failpoint("rebuild.unfinished")
        self._clockwork.finish_rebuild(token)
        log.info("redis_was_rebuilt", tasks=count)

    def restore_lists(self, most: int) -> None:
        if self._lists_after is None:
            return
        chunk = self._open_after(self._lists_after, most)
        asking = [item.task_id for item in chunk if item.student_id is not None]
        missing = [task_id for task_id, listed in self._clockwork.peek(asking, 1).items() if not listed]
        if missing:
            with self._stores.reading() as store:
                for task in store.read_tasks(missing):
                    self._fill(store, task)
        self._lists_after = chunk[-1].task_id if chunk else None

    def compare(self) -> None:
        """Compares every change once, in the order of time, and writes to Redis those that it does not have."""
        until = self._clock.now() - CHECK_AFTER
        since = self._compared_until or until - LOOK_BACK
        while changed := self._changed(since, until):
            known = self._clockwork.versions(list(changed))
            missed = [task_id for task_id, version in changed.items() if known[task_id] < version]
            if missed:
                log.warning("redis_was_not_told", tasks=len(missed))
                failpoint("compare.missed")
                self._write(self._standings(missed))
            since = max(changed.values())
            time.sleep(PAUSE_S)
        self._compared_until = until

    def _open_after(self, last: UUID, most: int = CHUNK) -> Sequence[Standing]:
        with self._stores.reading() as store:
            return store.open_standings(last, most)

    def _changed(self, since: datetime, until: datetime) -> dict[UUID, datetime]:
        with self._stores.reading() as store:
            return store.changed_tasks(since, until, COMPARED_AT_ONCE)

    def _standings(self, task_ids: Sequence[UUID]) -> Sequence[Standing]:
        with self._stores.reading() as store:
            return store.standings(task_ids)

    def _fill(self, store: Store, task: HelpTask) -> None:
        ranking = store.rank_for(task, self._rules)
        ids = [item.student_id for item in ranking.candidates]
        if ids and task.status is TaskStatus.PENDING:
            self._clockwork.fill_list(task.id, ids, task.updated_at)

    def _write(self, standings: Sequence[Standing]) -> None:
        self._clockwork.apply([_keys(standing) for standing in standings], self._clock.now())


def _keys(standing: Standing) -> TaskKeys:
    return TaskKeys(
        standing.task_id,
        standing.student_id,
        standing.deadline,
        standing.next_step_at,
        ListChange.KEEP if standing.status is TaskStatus.PENDING else ListChange.DROP,
        standing.seen,
        version=standing.updated_at,
    )
