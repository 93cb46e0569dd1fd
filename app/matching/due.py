"""A queue of due tasks. Listener, ticker and reconciler add their ids, and one thread settles them in batches. The
ticker settles what it finds itself, if nothing else is to be done.

A batch is settled in one transaction, one batch after the other. An id that is queued or being settled is not added
again: when the ticker claims a deadline, Redis also fires the expiry event, and the listener adds the same task.
"""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

import structlog

from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.matching.follow_up import FollowUp
from app.matching.metrics import MatcherMetrics
from app.matching.runner import NO_LISTS, CascadeRunner

log = structlog.get_logger(__name__)

SOON = timedelta(seconds=2)
"""If Redis's clock is ahead, an event can come a moment before the deadline. A task that is due within this time stays
here until then."""
LOCKED_RETRY_S = 0.2
FAILED_RETRY_S = 0.5
LONGEST_RETRY_S = 60.0
SHORTEST_WAIT_S = 0.05


class DueTasks:
    def __init__(self, runner: CascadeRunner, metrics: MatcherMetrics, batch: int) -> None:
        self._runner = runner
        self._metrics = metrics
        self._batch = batch
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)
        self._idle = threading.Condition(self._lock)
        # In the order of insertion, with the candidate list that was read together with the deadline, if any.
        self._ready: dict[UUID, Sequence[int] | None] = {}
        self._running: set[UUID] = set()
        self._later: dict[UUID, float] = {}  # the monotonic time at which the task is ready again
        self._failures: dict[UUID, int] = {}
        self._stopping = False

    def add(
        self, task_ids: Iterable[UUID], room: int | None = None, lists: Mapping[UUID, Sequence[int]] = NO_LISTS
    ) -> int:
        """Returns the number of ids that were added. With `room`, ids are added only while fewer than `room` wait. The
        candidates of other tasks than those in `lists` are read from Redis when it is their turn."""
        with self._lock:
            new = [task_id for task_id in task_ids if task_id not in self._running and task_id not in self._ready]
            if room is not None:
                new = new[: max(room - len(self._ready), 0)]
            for task_id in new:
                self._ready[task_id] = lists.get(task_id)
                self._later.pop(task_id, None)
            if new:
                # Most events of Redis are of tasks that are being settled, and nobody has to wake for them.
                self._work.notify()
        return len(new)

    def settle_or_add(self, task_ids: Sequence[UUID], lists: Mapping[UUID, Sequence[int]]) -> None:
        """Settles the tasks in the calling thread, because to wake another one takes as long as a part of the batch. If
        others are ready or being settled, adds them."""
        with self._lock:
            if self._ready or self._running:
                self.add(task_ids, lists=lists)
                return
            for task_id in task_ids:
                self._later.pop(task_id, None)
            self._running = set(task_ids)
        self._settle_running(list(task_ids), lists)

    def unknown(self, task_ids: Iterable[UUID]) -> set[UUID]:
        """The ids that are not in this queue."""
        with self._lock:
            return set(task_ids) - self._ready.keys() - self._running - self._later.keys()

    def wait_until_idle(self, timeout_s: float) -> bool:
        """True once no task is ready or being settled; False after the timeout. The ticker waits here before it claims,
        because two busy threads would only compete for the interpreter; tasks that fall due meanwhile form the next
        batch."""
        with self._lock:
            return self._idle.wait_for(lambda: self._stopping or not (self._ready or self._running), timeout_s)

    def backlog(self) -> int:
        with self._lock:
            return len(self._ready) + len(self._running)

    def run(self) -> None:
        while True:
            taken = self._take()
            if taken is None:
                return
            self._settle_running(list(taken), {id_: listed for id_, listed in taken.items() if listed is not None})

    def _settle_running(self, ids: list[UUID], lists: Mapping[UUID, Sequence[int]]) -> None:
        try:
            self._settle_or_postpone(ids, lists)
        finally:
            with self._lock:
                self._running = set()
                self._idle.notify_all()
                if self._ready or self._later:
                    self._work.notify()

    def _settle_or_postpone(self, ids: list[UUID], lists: Mapping[UUID, Sequence[int]]) -> None:
        """After any error the tasks are still due and are tried again, here or by another matcher. A task that cannot
        be settled must not hold up the rest of its batch, so a failed batch is halved until that task is alone."""
        try:
            self._settle(ids, lists)
        except Unavailable as error:
            log.warning("due_tasks_put_off", tasks=len(ids), code=error.code)
            self._postpone(ids, FAILED_RETRY_S)
        except Exception as error:
            log.error("due_tasks_failed", tasks=len(ids), error_type=type(error).__name__, exc_info=len(ids) == 1)
            if len(ids) == 1:
                self._postpone(ids, self._next_delay_s(ids[0]))
            else:
                self._settle_or_postpone(ids[: len(ids) // 2], NO_LISTS)
                self._settle_or_postpone(ids[len(ids) // 2 :], NO_LISTS)

    def _next_delay_s(self, task_id: UUID) -> float:
        self._failures[task_id] = failures = self._failures.get(task_id, 0) + 1
        return min(FAILED_RETRY_S * 2**failures, LONGEST_RETRY_S)

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            self._idle.notify_all()
            self._work.notify()

    def _take(self) -> dict[UUID, Sequence[int] | None] | None:
        with self._lock:
            while True:
                self._move_later_to_ready()
                if self._stopping:
                    return None
                if self._ready and not self._running:
                    taken = {task_id: self._ready.pop(task_id) for task_id in list(self._ready)[: self._batch]}
                    self._running = set(taken)
                    return taken
                self._work.wait(None if self._running else self._wait_s())

    def _move_later_to_ready(self) -> None:
        now = time.monotonic()
        for task_id in [task_id for task_id, when in self._later.items() if when <= now]:
            del self._later[task_id]
            self._ready[task_id] = None

    def _wait_s(self) -> float | None:
        return max(min(self._later.values()) - time.monotonic(), 0) if self._later else None

    def _settle(self, ids: list[UUID], lists: Mapping[UUID, Sequence[int]]) -> None:
        failpoint("due.taken")
        follow_up = self._runner.advance(ids, lists, skip_locked=True)
        self._metrics.count(follow_up.figures)
        for task_id in ids:
            self._failures.pop(task_id, None)
        self._postpone([task_id for task_id in ids if task_id not in follow_up.keys], LOCKED_RETRY_S)
        self._keep_due_soon(ids, follow_up)

    def _keep_due_soon(self, ids: list[UUID], follow_up: FollowUp) -> None:
        now = self._runner.clock.now()
        with self._lock:
            for task_id in ids:
                keys = follow_up.keys.get(task_id)
                if keys is not None and keys.next_step_at is not None and keys.next_step_at - now < SOON:
                    wait_s = (keys.next_step_at - now).total_seconds()
                    self._later[task_id] = time.monotonic() + max(wait_s, SHORTEST_WAIT_S)

    def _postpone(self, ids: list[UUID], delay_s: float) -> None:
        with self._lock:
            for task_id in ids:
                self._later[task_id] = time.monotonic() + delay_s
