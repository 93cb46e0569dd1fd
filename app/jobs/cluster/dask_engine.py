"""The engine that runs tasks on many machines, by dask.distributed."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread

import structlog
from distributed import Security

from app.foundation.logs import describe_error
from app.jobs.cluster.cluster_link import ClusterLink
from app.jobs.cluster.cluster_worker import LEASE_S
from app.jobs.cluster.quiet_dask import quiet_dask
from app.jobs.engine.engine import EngineHealth, EngineListener, EngineMetrics, EngineStatus, Finished
from app.jobs.engine.process_pool import PREFIXES
from app.jobs.engine.queued_engine import QueuedEngine
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task, TaskType

log = structlog.get_logger(__name__)

_LEASE_CHECK_S = 0.05


@dataclass(frozen=True)
class DaskOptions:
    address: str
    """Of the scheduler, as `tls://host:8786`."""
    security: Security
    input_capacity: int = 1000
    results_kept: int = 10_000
    key_of: Callable[[str], str] = str
    """What a task is called in the cluster, by its id. Engines that use one name for the same work share one run of
    it: if a process was stopped for so long that another has claimed its job, the script does not run twice."""
    worker_lease_s: float = LEASE_S
    """Of the workers: how long their scripts may run when the scheduler is gone."""


class DaskEngine(QueuedEngine):
    """Retries, time limits and memory limits are those of the embedded engine that each worker of the cluster has."""

    def __init__(self, options: DaskOptions, listener: EngineListener | None = None) -> None:
        super().__init__(options.input_capacity, options.results_kept)
        quiet_dask()
        self._options = options
        self._listener = listener
        self._news: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._health: EngineHealth | None = None
        """None while that depends on the cluster."""
        self._lease_until: float | None = None
        self._loop = asyncio.new_event_loop()
        self._link = ClusterLink(
            options.address,
            options.security,
            options.key_of,
            self._input.take,
            self._ended,
            self._progressed,
            options.worker_lease_s,
        )
        self._closed = Event()
        self._telling = Thread(target=self._tell, name="dask-ends", daemon=True)
        self._linking = Thread(target=self._run_loop, name="dask-engine", daemon=True)
        self._telling.start()
        self._linking.start()

    def _wake(self) -> None:
        self._call(self._link.ring)

    def cancel(self, task_id: str) -> bool:
        if self._is_lease_over():
            # Another engine may have the work now.
            self._drop_all()
        if task_id not in self._output.pending():
            return False
        self._call(lambda: self._cancel(task_id))
        return True

    def extend_lease(self, until: float) -> None:
        """The scripts are not stopped when the lease ends: this process lets go of them when it notices, and a process
        that has claimed the same work in the meantime shares the run (see `key_of`)."""
        if self._is_lease_over():
            self._drop_all()
        self._lease_until = until

    def _room(self, task_type: TaskType) -> int:
        link, prefix = self._link, PREFIXES[task_type]
        taken = link.taken_by_others[prefix] + link.in_flight[prefix]
        return link.slots[prefix] - taken - self._input.waiting(task_type)

    def metrics(self) -> EngineMetrics:
        link = self._link
        counts = link.counts
        return EngineMetrics(
            input_put=self._input.total_put,
            input_dropped=self._input.total_dropped,
            output_put=self._output.total_put,
            output_got=self._output.total_got,
            active_threads=sum(min(link.in_flight[prefix], link.slots[prefix]) for prefix in PREFIXES.values()),
            pending=len(self._output.pending()),
            retried=counts["retried"],
            workers_started=counts["workers_started"],
            workers_killed=counts["workers_killed"],
        )

    def status(self) -> EngineStatus:
        workers = {
            address: ", ".join(
                f"{name} {worker['taken'][name]} of {number}" for name, number in worker["slots"].items()
            )
            for address, worker in self._link.workers.items()
        }
        link = f"{'connected to' if self._link.is_connected else 'no answer from'} {self._options.address}"
        components = self._queues() | {"scheduler": link} | workers
        return EngineStatus(self._health or self._health_of_cluster(), components)

    def _health_of_cluster(self) -> EngineHealth:
        return EngineHealth.RUNNING if self._link.is_connected else EngineHealth.LOST

    def is_whole(self) -> bool:
        return self._telling.is_alive() and self._linking.is_alive()

    def shutdown(self, drain_s: float = 30.0) -> list[Task]:
        if self._health is EngineHealth.STOPPED:
            return []
        self._health = EngineHealth.DRAINING
        self._input.close()
        if drain_s > 0:
            self._drain(drain_s)
        self._loop.call_soon_threadsafe(self._running.cancel)
        self._linking.join()
        self._news.put(None)
        self._telling.join()
        given_back = self._give_back()
        self._health = EngineHealth.STOPPED
        return given_back

    def _drain(self, drain_s: float) -> None:
        drained = asyncio.run_coroutine_threadsafe(asyncio.wait_for(self._link.drain(), drain_s), self._loop)
        try:
            drained.result()
        except Exception as error:
            # What has not ended is given back.
            log.warning("cluster_not_drained", **describe_error(error))

    def _is_lease_over(self) -> bool:
        return self._lease_until is not None and time.monotonic() >= self._lease_until

    def _drop_all(self) -> None:
        """What runs for this engine may run for another now."""
        self._lease_until = None
        log.error("lease_ended", tasks=len(self._give_back()))
        self._call(self._link.let_all_go)

    # What follows runs in the thread of the event loop.

    def _call(self, request: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(request)
        except RuntimeError:
            # The engine has stopped in the meantime.
            log.warning("engine_has_stopped")

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        self._running = asyncio.gather(self._link.run(), self._watch_lease(), return_exceptions=True)
        try:
            await self._running
        except asyncio.CancelledError:
            log.info("dask_engine_stopped")

    async def _watch_lease(self) -> None:
        while True:
            if self._is_lease_over():
                self._drop_all()
            await asyncio.sleep(_LEASE_CHECK_S)

    def _cancel(self, task_id: str) -> None:
        if self._input.remove(task_id) is not None:
            self._ended(Finished(Result.cancelled(task_id), 1))
        else:
            self._cancelling = self._loop.create_task(self._link.cancel(task_id))

    def _ended(self, finished: Finished) -> None:
        self._news.put(lambda: self._finish(finished))

    def _progressed(self, task_id: str, done: int, total: int | None, note: str) -> None:
        if (listener := self._listener) is not None:
            self._news.put(lambda: listener.progressed(task_id, done, total, note))

    # What follows runs in a thread of its own, because a listener may take its time.

    def _tell(self) -> None:
        while (news := self._news.get()) is not None:
            try:
                news()
            except Exception as error:
                log.error("listener_failed", **describe_error(error))

    def _finish(self, finished: Finished) -> None:
        if self._is_lease_over() or finished.result.task_id not in self._output.pending():
            # It was given back.
            return
        try:
            if self._listener is not None:
                self._listener.finished(finished)
        finally:
            self._output.put(finished.result)
