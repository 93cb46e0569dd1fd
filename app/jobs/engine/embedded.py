"""The engine on this machine: a queue, worker processes, and retries."""

import heapq
import random
import time
from collections import deque
from collections.abc import Callable
from itertools import count

import structlog

from app.foundation.backoff import Rng, backoff_pause_s
from app.foundation.logs import describe_error
from app.jobs.engine.engine import EngineHealth, EngineListener, EngineMetrics, EngineStatus, Finished
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.process_pool import ProcessPool
from app.jobs.engine.queued_engine import QueuedEngine
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task, TaskType
from app.jobs.engine.task_try import Ended, TaskTry

log = structlog.get_logger(__name__)

_DRAIN_CHECK_S = 0.02


class EmbeddedEngine(QueuedEngine):
    def __init__(
        self, options: EngineOptions | None = None, listener: EngineListener | None = None, *, rng: Rng = random.random
    ) -> None:
        self._options = options or EngineOptions()
        super().__init__(self._options.input_capacity, self._options.results_kept)
        self._listener = listener
        self._rng = rng
        self._pool = ProcessPool(self._options, self)
        self._health = EngineHealth.RUNNING
        self._retried = 0
        self._order = count()
        # All of these are touched by the thread of the pool only.
        self._ready: dict[TaskType, deque[TaskTry]] = {type_: deque() for type_ in TaskType}
        """Before the queue: tries that are repeated now, and the one that is looked at."""
        self._later: list[tuple[float, int, TaskTry]] = []
        self._pool.start()

    def _wake(self) -> None:
        self._pool.wake()

    def cancel(self, task_id: str) -> bool:
        if task_id not in self._output.pending():
            return False
        self._pool.call(lambda: self._cancel(task_id))
        return True

    def extend_lease(self, until: float) -> None:
        self._pool.call(lambda: self._pool.extend_lease(until))

    def _room(self, task_type: TaskType) -> int:
        threads = self._options.workers(task_type) * self._options.threads(task_type)
        return threads - self._pool.running(task_type) - self._input.waiting(task_type) - len(self._ready[task_type])

    def metrics(self) -> EngineMetrics:
        return EngineMetrics(
            input_put=self._input.total_put,
            input_dropped=self._input.total_dropped,
            output_put=self._output.total_put,
            output_got=self._output.total_got,
            active_threads=sum(self._pool.running(type_) for type_ in TaskType),
            pending=len(self._output.pending()),
            retried=self._retried,
            workers_started=self._pool.started,
            workers_killed=self._pool.killed,
        )

    def status(self) -> EngineStatus:
        workers = {
            worker.name: f"{worker.load} of {worker.threads} threads, pid {worker.pid}"
            for worker in self._pool.workers()
        }
        return EngineStatus(self._health, self._queues() | workers)

    def is_whole(self) -> bool:
        return not self._output.pending() or self._pool.is_turning()

    def shutdown(self, drain_s: float = 30.0) -> list[Task]:
        if self._health is EngineHealth.STOPPED:
            return []
        self._health = EngineHealth.DRAINING
        self._input.close()
        self._pool.pause()
        give_up = time.monotonic() + drain_s
        while any(self._pool.running(type_) for type_ in TaskType) and time.monotonic() < give_up:
            time.sleep(_DRAIN_CHECK_S)
        self._pool.stop()
        given_back = self._give_back()
        self._health = EngineHealth.STOPPED
        return given_back

    # What follows is called by the thread of the pool.

    def peek(self, task_type: TaskType) -> TaskTry | None:
        ready = self._ready[task_type]
        while self._later and self._later[0][0] <= time.monotonic():
            attempt = heapq.heappop(self._later)[2]
            self._ready[attempt.task.task_type].append(attempt)
        if not ready and (task := self._input.take(task_type)) is not None:
            ready.append(TaskTry(task))
        return ready[0] if ready else None

    def take(self, task_type: TaskType) -> TaskTry:
        return self._ready[task_type].popleft()

    def next_at(self) -> float | None:
        return self._later[0][0] if self._later else None

    def ended(self, ended: Ended) -> None:
        attempt, result = ended.attempt, ended.result
        if result is None:
            again = attempt.again(counts=False, is_suspect=ended.is_suspect, is_false_start=ended.is_false_start)
            self._ready[attempt.task.task_type].appendleft(again)
        elif self._may_retry(ended, result):
            self._retried += 1
            at = time.monotonic() + backoff_pause_s(self._options.backoff_s, attempt.number, self._rng)
            heapq.heappush(self._later, (at, next(self._order), attempt.again(counts=True)))
        else:
            self._finish(attempt, result)

    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None:
        if (listener := self._listener) is not None:
            self._tell(task_id, lambda: listener.progressed(task_id, done, total, note))

    def lease_ended(self) -> None:
        for ready in self._ready.values():
            ready.clear()
        self._later.clear()
        self._give_back()

    def _may_retry(self, ended: Ended, result: Result) -> bool:
        attempt = ended.attempt
        return (
            not result.is_success
            and ended.may_retry
            and attempt.cancelled_at is None
            and attempt.number <= attempt.task.max_retries
        )

    def _finish(self, attempt: TaskTry, result: Result) -> None:
        if (listener := self._listener) is not None:
            finished = Finished(result, attempt.number, attempt.output, tuple(attempt.artifacts))
            self._tell(result.task_id, lambda: listener.finished(finished))
        self._output.put(result)

    def _tell(self, task_id: str, news: Callable[[], None]) -> None:
        try:
            news()
        except Exception as error:
            log.error("listener_failed", task_id=task_id, **describe_error(error))

    def _cancel(self, task_id: str) -> None:
        task = self._input.remove(task_id)
        attempt = TaskTry(task) if task else self._take_waiting(task_id)
        if attempt is not None:
            self._finish(attempt, Result.cancelled(task_id))
        else:
            self._pool.cancel(task_id)

    def _take_waiting(self, task_id: str) -> TaskTry | None:
        for ready in self._ready.values():
            for attempt in ready:
                if attempt.task.id == task_id:
                    ready.remove(attempt)
                    return attempt
        for entry in self._later:
            if entry[2].task.id == task_id:
                self._later.remove(entry)
                heapq.heapify(self._later)
                return entry[2]
        return None
