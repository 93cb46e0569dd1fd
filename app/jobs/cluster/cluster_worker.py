"""A worker of the cluster: an embedded engine, and threads that wait for it on behalf of dask.

The scripts run in the engine's own processes, so whatever one does to its process, this one lives, and time limits,
retries, memory and output are those of a single machine.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from distributed import Reschedule, Worker, WorkerPlugin, get_worker
from distributed.worker import DEFAULT_METRICS
from tornado.ioloop import PeriodicCallback

from app.foundation.logs import describe_error
from app.jobs.cluster.cluster_wire import PROGRESS, pack_finished, unpack_task
from app.jobs.engine.embedded import EmbeddedEngine
from app.jobs.engine.engine import Finished
from app.jobs.engine.errors import EngineError
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.process_pool import PREFIXES
from app.jobs.engine.result import ResultStatus
from app.jobs.engine.task import Task

log = structlog.get_logger(__name__)

LEASE_S = 20.0
"""Scripts are stopped if the scheduler has not answered for so long, because it gives them to another worker then."""
_LOOK_EVERY_S = 1.0
_PLUGIN = "jobs"
_RUNNING = ("executing", "long-running")


@dataclass
class _ClusterRun:
    end: Future[Finished] = field(default_factory=Future[Finished])
    task_id: str | None = None
    """None until the engine has the task."""
    is_cancelled: bool = False
    is_let_go: bool = False
    """No client wants it any more."""


class EnginePlugin(WorkerPlugin):
    """Owns the embedded engine of a worker."""

    name = _PLUGIN

    def __init__(self, options: EngineOptions, lease_s: float) -> None:
        # Dask limits what is given to this worker, and holds the results.
        self._options = replace(options, input_capacity=100_000, results_kept=0)
        self._runs: dict[str, _ClusterRun] = {}
        self._of_task: dict[str, tuple[str, _ClusterRun]] = {}
        self._lease_s = lease_s

    def setup(self, worker: Worker) -> None:
        self._worker = worker
        self.engine = EmbeddedEngine(self._options, self)
        # Before the scheduler knows this worker. One that stands still in its first task has a lease, too.
        self.extend_lease(time.monotonic())

    def teardown(self, worker: Worker) -> None:
        self.engine.shutdown(0.0)

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Called by dask, in its own thread, before a task begins and when it is not wanted any more."""
        if finish == "executing":
            self._runs[key] = _ClusterRun()
        elif start in _RUNNING and finish == "released" and (run := self._runs.get(key)) is not None:
            run.is_let_go = True
            self._stop(run)

    def run(self, key: str, task: Task) -> Finished:
        run = self._runs[key]
        self._of_task[task.id] = (key, run)
        try:
            self.engine.submit_task(task)
            run.task_id = task.id
            if run.is_cancelled or run.is_let_go:
                self._stop(run)
            finished = self._wait(run, task.id)
        except EngineError:
            # This worker is closing.
            raise Reschedule from None
        finally:
            del self._of_task[task.id]
            if self._runs.get(key) is run:
                del self._runs[key]
        if run.is_let_go and finished.result.status is ResultStatus.CANCELLED:
            # If a client wants it again in the meantime, it runs again; otherwise dask ignores what is said here.
            raise Reschedule
        if not finished.result.is_success and self._is_lease_over():
            # This machine stood still, and its scripts were stopped. That is no failure of the task.
            raise Reschedule
        return finished

    def extend_lease(self, asked_at: float) -> None:
        self._lease_until = asked_at + self._lease_s
        self.engine.extend_lease(self._lease_until)

    def _is_lease_over(self) -> bool:
        return time.monotonic() >= self._lease_until

    def _wait(self, run: _ClusterRun, task_id: str) -> Finished:
        while True:
            try:
                return run.end.result(_LOOK_EVERY_S)
            except NotYet:
                if task_id not in self.engine.pending_tasks() and not run.end.done():
                    # The engine has stopped, or its lease has ended.
                    raise Reschedule from None

    def cancel(self, key: str) -> bool:
        run = self._runs.get(key)
        if run is None:
            return False
        run.is_cancelled = True
        self._stop(run)
        return True

    def _stop(self, run: _ClusterRun) -> None:
        if run.task_id is not None:
            self.engine.cancel(run.task_id)

    def begun(self) -> set[str]:
        return set(self._runs)

    def counts(self) -> dict[str, int]:
        metrics = self.engine.metrics()
        return {
            "retried": metrics.retried,
            "workers_started": metrics.workers_started,
            "workers_killed": metrics.workers_killed,
        }

    # What follows is called by the thread of the embedded engine.

    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None:
        if (known := self._of_task.get(task_id)) is not None:
            self._worker.log_event(PROGRESS, {"key": known[0], "done": done, "total": total, "note": note})

    def finished(self, finished: Finished) -> None:
        if (known := self._of_task.get(finished.result.task_id)) is not None:
            known[1].end.set_result(finished)


class JobsWorker(Worker):
    """Has a thread for each task that its engine can run at once, in an executor for each type of task."""

    def __init__(self, scheduler: str, options: EngineOptions, *, lease_s: float = LEASE_S, **dask: Any) -> None:
        slots = {prefix: options.workers(type_) * options.threads(type_) for type_, prefix in PREFIXES.items()}
        self.jobs = EnginePlugin(options, lease_s)
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            scheduler,
            nthreads=sum(slots.values()),
            resources=dict[str, float](slots),
            executor={name: ThreadPoolExecutor(number, name) for name, number in slots.items()},
            plugins=(self.jobs,),
            metrics={**DEFAULT_METRICS, _PLUGIN: lambda _worker: self.jobs.counts()},
            # The engine limits the memory of its processes; results stay here for milliseconds.
            memory_limit=0,
            **dask,
        )
        self.periodic_callbacks["lease"] = PeriodicCallback(self._extend_lease, lease_s / 4 * 1000)

    def start_http_server(self, *_arguments: Any, **_options: Any) -> None:
        """None: it would answer anybody, without TLS."""

    async def _extend_lease(self) -> None:
        asked_at = time.monotonic()
        try:
            is_known = await self.scheduler.has_worker(address=self.contact_address)  # pyright: ignore[reportUnknownMemberType]
        except OSError as error:
            log.warning("scheduler_does_not_answer", **describe_error(error))
        else:
            if is_known:
                self.jobs.extend_lease(asked_at)


# What follows is called by dask, by its name.


def run_task(values: dict[str, Any]) -> dict[str, Any]:
    """A task of dask: runs a script, and returns how it ended."""
    return pack_finished(_plugin(get_worker()).run(values["key"], unpack_task(values)))


def cancel_task(key: str, dask_worker: Worker) -> bool:
    """False if it has not begun here."""
    return _plugin(dask_worker).cancel(key) or key in dask_worker.data


def begun_tasks(dask_worker: Worker) -> set[str]:
    return _plugin(dask_worker).begun() | {str(key) for key in dask_worker.data}


def _plugin(worker: Worker) -> EnginePlugin:
    assert isinstance(worker, JobsWorker), "started by this program"
    return worker.jobs
