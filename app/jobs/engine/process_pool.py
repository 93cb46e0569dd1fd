"""The worker processes of an engine, and the one thread that talks with all of them.

Only this thread touches a worker. It gives each try to the least loaded worker of its group, and kills a worker whose
task runs too long, uses too much memory or ignores its cancellation. If a worker dies, every task in it has an end:

- the task that is known to be the cause fails with the reason;
- if it is not known, each of them is a suspect, and runs again without neighbours, where a second death proves it;
- the others are repeated, and the try does not count.
"""

import selectors
import socket
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from threading import Event, Thread
from typing import Any, Protocol
from uuid import uuid4

import structlog

from app.foundation.logs import describe_error
from app.foundation.loop import DoublingPause
from app.jobs.engine.engine import Artifact
from app.jobs.engine.frames import BrokenFrame
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.result import Result
from app.jobs.engine.task import TaskType
from app.jobs.engine.task_try import Ended, TaskTry
from app.jobs.engine.worker import WorkerOptions
from app.jobs.engine.worker_process import Killed, WorkerProcess

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 0.05
"""How often running tasks are compared with their limits."""
PREFIXES = {TaskType.IO_BOUND: "io", TaskType.CPU_BOUND: "cpu"}
STILL_S = 60.0
"""Longer than the pool ever rests while a task is pending: the longest pause before a retry is 22 seconds."""
MOST_FALSE_STARTS = 5
"""A task fails when so many of its workers have ended before they were ready."""
_SHARED_MODULES = ("app.jobs.engine.worker",)


class Source(Protocol):
    """Where the pool gets tries and leaves their ends. Called by the thread of the pool only."""

    def peek(self, task_type: TaskType) -> TaskTry | None: ...

    def take(self, task_type: TaskType) -> TaskTry: ...

    def ended(self, ended: Ended) -> None: ...

    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None: ...

    def lease_ended(self) -> None: ...

    def next_at(self) -> float | None:
        """When a try becomes due that is not due yet."""
        ...


class ProcessPool:
    def __init__(self, options: EngineOptions, source: Source) -> None:
        self._options = options
        self._source = source
        self._context = _context(options.preload)
        self._groups: dict[TaskType, dict[str, WorkerProcess]] = {type_: {} for type_ in TaskType}
        self._selector = selectors.DefaultSelector()
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self._selector.register(self._bell, selectors.EVENT_READ, self._answer_bell)
        self._is_rung = False
        self._requests: list[Callable[[], None]] = []
        self._start_again = DoublingPause()
        self._no_start_before = 0.0
        self._lease_until: float | None = None
        self._lease_ended = False
        self._look_at = 0.0
        self._paused = False
        self._turned_at = time.monotonic()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="process-pool", daemon=True)
        self.started = 0
        self.killed = 0

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        if not self._is_rung:
            self._is_rung = True
            self._ring.send(b"!")

    def call(self, request: Callable[[], None]) -> None:
        """Runs the request in the thread of the pool."""
        self._requests.append(request)
        self.wake()

    def pause(self) -> None:
        """No try begins any more; those that run go on."""
        self._paused = True

    def stop(self) -> None:
        self._stop.set()
        self.wake()
        self._thread.join()
        for worker in self.workers():
            worker.kill()
            worker.end()
        self._selector.close()
        self._bell.close()
        self._ring.close()

    def is_turning(self) -> bool:
        """False if the thread of the pool is held, such as by a fork server that does not answer."""
        return time.monotonic() - self._turned_at < STILL_S

    def workers(self) -> list[WorkerProcess]:
        return [worker for group in self._groups.values() for worker in list(group.values())]

    def running(self, task_type: TaskType) -> int:
        return sum(worker.load for worker in list(self._groups[task_type].values()))

    # What follows runs in the thread of the pool.

    def cancel(self, task_id: str) -> None:
        for worker in self.workers():
            attempt = worker.running.get(task_id)
            if attempt is not None and attempt.cancelled_at is None:
                attempt.cancelled_at = time.monotonic()
                worker.send({"cancel": task_id})
                self._watch(worker)

    def extend_lease(self, until: float) -> None:
        self._lease_until = until
        self._lease_ended = False
        for worker in self.workers():
            worker.extend_lease(until)
            self._watch(worker)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._turn()
            except Exception as error:
                # A turn that fails must not leave all tasks without an answer.
                log.error("process_pool_failed", **describe_error(error))
                time.sleep(LOOK_EVERY_S)

    def _turn(self) -> None:
        self._turned_at = time.monotonic()
        for key, events in self._selector.select(self._rest_s()):
            # One event may end the worker of the next.
            if key.fd in self._selector.get_map():
                key.data(events)
        requests, self._requests = self._requests, []
        for request in requests:
            request()
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_S
            self._look_at_limits(now)
        if self._lease_until is not None and now >= self._lease_until:
            self._end_lease()
        elif self._may_begin():
            self._dispatch(now)

    def _rest_s(self) -> float | None:
        if any(worker.running for worker in self.workers()):
            return max(self._look_at - time.monotonic(), 0.0)
        times = (self._source.next_at(), self._no_start_before if self._waits() else None, self._lease_until)
        next_at = min((at for at in times if at is not None), default=None)
        return None if next_at is None else max(next_at - time.monotonic(), 0.0)

    def _waits(self) -> bool:
        return self._may_begin() and any(self._source.peek(type_) for type_ in TaskType)

    def _may_begin(self) -> bool:
        """What is submitted after the end of a lease waits for the next one: nothing would stop it."""
        return not self._paused and not self._lease_ended

    def _answer_bell(self, _events: int) -> None:
        self._bell.recv(16)
        # Before the requests and the queue are looked at, so that whoever comes later rings again.
        self._is_rung = False

    def _dispatch(self, now: float) -> None:
        for type_ in TaskType:
            while (attempt := self._source.peek(type_)) is not None:
                worker = self._alone(type_, now) if attempt.is_suspect else self._least_loaded(type_, now)
                if worker is None:
                    break
                self._assign(worker, self._source.take(type_))

    def _assign(self, worker: WorkerProcess, attempt: TaskTry) -> None:
        try:
            worker.assign(attempt)
        except (TypeError, ValueError, RecursionError) as error:
            refused = Result.failed(attempt.task.id, f"its parameters are not JSON: {error}")
            self._source.ended(Ended(attempt, refused, may_retry=False))
        if worker.is_behind:
            self._watch(worker)

    def _least_loaded(self, task_type: TaskType, now: float) -> WorkerProcess | None:
        group = self._groups[task_type]
        free = [worker for worker in group.values() if worker.load < worker.threads and not worker.is_closed]
        best = min(free, key=lambda worker: (worker.is_tainted, worker.load), default=None)
        if (best is None or best.load) and self._may_start(task_type):
            return self._start_worker(task_type, now) or best
        return best

    def _may_start(self, task_type: TaskType) -> bool:
        """A worker in which a task failed has a successor already while its other tasks go on."""
        group, most = self._groups[task_type], self._options.workers(task_type)
        return sum(not worker.is_tainted for worker in group.values()) < most and len(group) < 2 * most

    def _alone(self, task_type: TaskType, now: float) -> WorkerProcess | None:
        """A worker for a suspect. If all are busy, one is kept free of others until its tasks have ended."""
        group = self._groups[task_type]
        closed = next((worker for worker in group.values() if worker.is_closed), None)
        if closed is None:
            closed = min(group.values(), key=lambda worker: worker.load, default=None)
            if (closed is None or closed.load) and self._may_start(task_type):
                closed = self._start_worker(task_type, now)
            if closed is not None:
                closed.is_closed = True
        return closed if closed is not None and not closed.load else None

    def _start_worker(self, task_type: TaskType, now: float) -> WorkerProcess | None:
        if now < self._no_start_before:
            return None
        group, prefix = self._groups[task_type], PREFIXES[task_type]
        name = next(name for n in range(len(group) + 1) if (name := f"{prefix}-{n}") not in group)
        threads = self._options.threads(task_type)
        options = WorkerOptions(
            name,
            threads,
            self._options.artifact_bytes,
            self._options.artifacts_bytes,
            f"yaninda-job-{uuid4().hex}-",
            self._options.resources,
        )
        try:
            worker = WorkerProcess(self._context, task_type, options)
        except (OSError, RuntimeError) as error:
            # Python raises a RuntimeError if a program makes an engine while it is imported: workers import it, too.
            self._no_start_before = now + self._start_again.next_s()
            log.error("worker_not_started", worker=name, error_type=type(error).__name__)
            return None
        group[name] = worker
        self.started += 1
        if self._lease_until is not None:
            worker.extend_lease(self._lease_until)
        self._selector.register(worker.socket, selectors.EVENT_READ, partial(self._talk, worker))
        self._selector.register(worker.printed, selectors.EVENT_READ, partial(self._read_output, worker))
        self._selector.register(worker.process.sentinel, selectors.EVENT_READ, partial(self._has_died, worker))
        log.info("worker_started", worker=name, pid=worker.pid)
        return worker

    def _watch(self, worker: WorkerProcess) -> None:
        """Asks to be told when a worker reads again that has not read everything."""
        if worker.socket in self._selector.get_map():
            events = selectors.EVENT_READ if worker.flush() else selectors.EVENT_READ | selectors.EVENT_WRITE
            key = self._selector.get_key(worker.socket)
            if key.events != events:
                self._selector.modify(worker.socket, events, key.data)

    def _talk(self, worker: WorkerProcess, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._watch(worker)
        try:
            for message, blob in worker.receive():
                self._hear(worker, message, blob)
        except EOFError:
            self._bury(worker)
        except Exception as error:
            # A script may write into the worker's socket. Whatever was in the rest of it, each task gets its end.
            log.error("worker_not_understood", worker=worker.name, **describe_error(error))
            worker.kill(Killed("its worker sent what the engine does not understand"))
            self._bury(worker)

    def _has_died(self, worker: WorkerProcess, _events: int) -> None:
        """Usually its socket says so. A copy that a C library has made of the worker may keep that open."""
        if not worker.has_said_more:
            self._bury(worker)

    def _hear(self, worker: WorkerProcess, message: Mapping[str, Any], blob: bytes) -> None:
        match message:
            case {"event": "ready"}:
                worker.became_ready()
                self._start_again.reset()
            case {"event": "end", "result": result, "may_retry": may_retry, "is_clean": is_clean, **news}:
                worker.is_tainted = worker.is_tainted or not is_clean
                self._end(worker, Result.from_dict(result), bool(may_retry), news)
            case {"event": "news", "task_id": id_, **news} if id_ in worker.running:
                self._note(worker.running[id_], news)
            case {"event": "artifact", "task_id": id_, "name": name} if id_ in worker.running:
                worker.running[id_].artifacts.append(Artifact(str(name), blob))
            case {"event": "news" | "artifact"}:
                # The task has ended in the meantime.
                return
            case _:
                raise BrokenFrame

    def _end(self, worker: WorkerProcess, result: Result, may_retry: bool, news: Mapping[str, Any]) -> None:
        # First what may raise: a task that is in no worker any more would have no end.
        self._note(worker.running[result.task_id], news)
        attempt = worker.running.pop(result.task_id)
        if not worker.running:
            self._read_output(worker)
            attempt.output += worker.output.text()
            worker.output.clear()
        worker.is_closed = worker.is_closed and not attempt.is_suspect
        worker.is_tainted = worker.is_tainted or not result.is_success
        self._source.ended(Ended(attempt, result, may_retry))
        if not worker.running and worker.is_tainted:
            self._replace(worker)

    def _replace(self, worker: WorkerProcess) -> None:
        """The next task gets a clean worker, with all of its memory."""
        worker.kill(Killed("it is replaced"))
        self._bury(worker)

    def _note(self, attempt: TaskTry, news: Mapping[str, Any]) -> None:
        if "output" in news:
            attempt.output = str(news["output"])
        if "progress" in news:
            done, total, note = news["progress"]
            self._source.progressed(attempt.task.id, int(done), None if total is None else int(total), str(note))

    def _read_output(self, worker: WorkerProcess, _events: int = 0) -> None:
        if not worker.read_output() and worker.printed in self._selector.get_map():
            self._selector.unregister(worker.printed)

    def _look_at_limits(self, now: float) -> None:
        for worker in self.workers():
            why = self._over_a_limit(worker, now)
            if not worker.running and worker.memory_bytes() > self._options.worker_memory_bytes // 2:
                self._replace(worker)
            elif why is not None:
                log.warning("worker_killed", worker=worker.name, pid=worker.pid, task_id=why.culprit)
                self.killed += 1
                worker.kill(why)
                self._bury(worker)

    def _over_a_limit(self, worker: WorkerProcess, now: float) -> Killed | None:
        for id_, attempt in worker.running.items():
            if attempt.cancelled_at is not None and now > attempt.cancelled_at + self._options.cancel_grace_s:
                return Killed("cancelled; its worker was killed, because it did not stop by itself", id_)
            limit_s = attempt.task.timeout_s
            if limit_s is not None and attempt.began is not None and now > attempt.began + limit_s:
                return Killed(f"ran longer than {limit_s:g} s, so its worker was killed", id_)
        most = self._options.worker_memory_bytes
        if worker.running and worker.memory_bytes() > most:
            return Killed(f"its worker used more than {most // 1024 // 1024:,} MB of memory and was killed")
        return None

    def _bury(self, worker: WorkerProcess) -> None:
        for file in (worker.socket, worker.printed, worker.process.sentinel):
            if file in self._selector.get_map():
                self._selector.unregister(file)
        del self._groups[worker.task_type][worker.name]
        reason = worker.end()
        if not worker.is_ready:
            # It is not known that a worker can live here at all.
            self._no_start_before = time.monotonic() + self._start_again.next_s()
        if worker.killed is None:
            log.warning("worker_died", worker=worker.name, pid=worker.pid, tasks=worker.load, reason=reason)
        for ended in judge(worker, reason):
            self._source.ended(ended)

    def _end_lease(self) -> None:
        """What runs here may run elsewhere now."""
        self._lease_until = None
        self._lease_ended = True
        log.error("lease_ended", tasks=sum(worker.load for worker in self.workers()))
        for worker in self.workers():
            worker.running.clear()
            worker.kill(Killed("the lease ended"))
            self._bury(worker)
        self._source.lease_ended()


def judge(worker: WorkerProcess, reason: str) -> list[Ended]:
    """What the death of a worker means for each of the tasks in it."""
    tries = list(worker.running.values())
    if worker.lease_is_over and worker.killed is None:
        # The kernel ended it. The lease is lost, or was extended too late for this worker. In the second case what was
        # let go of must not begin again: it runs elsewhere.
        return [Ended(attempt, None) if attempt.cancelled_at is None else _cancelled(attempt) for attempt in tries]
    culprit = worker.killed.culprit if worker.killed else None
    if culprit is None and worker.is_ready and len(tries) == 1:
        culprit = tries[0].task.id
    is_suspect = culprit is None and worker.is_ready
    return [_end_of(attempt, worker, reason, attempt.task.id == culprit, is_suspect) for attempt in tries]


def _end_of(attempt: TaskTry, worker: WorkerProcess, reason: str, is_culprit: bool, is_suspect: bool) -> Ended:
    id_ = attempt.task.id
    if attempt.cancelled_at is not None:
        return _cancelled(attempt)
    if is_culprit:
        attempt.output += worker.output.text()
        return Ended(attempt, Result.failed(id_, reason, attempt.sent_at, datetime.now(UTC)))
    if not worker.is_ready and attempt.false_starts == MOST_FALSE_STARTS:
        attempt.output += worker.output.text()
        return Ended(attempt, Result.failed(id_, f"no worker could be started: {reason}"), may_retry=False)
    return Ended(attempt, None, is_suspect=is_suspect, is_false_start=not worker.is_ready)


def _cancelled(attempt: TaskTry) -> Ended:
    return Ended(attempt, Result.cancelled(attempt.task.id, attempt.sent_at, datetime.now(UTC)))


def _context(preload: tuple[str, ...]) -> ForkServerContext:
    """A server process that stays small and single-threaded forks the workers: in milliseconds, and without a copy of
    the locks that the threads of this process hold."""
    context = get_context("forkserver")
    context.set_forkserver_preload([*_SHARED_MODULES, *preload])
    return context
