"""The lives of the two processes of a cluster."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

import structlog
from distributed import Security
from distributed.core import Status

from app.foundation.loop import DoublingPause
from app.jobs.cluster.cluster_link import LONGEST_PAUSE_S
from app.jobs.cluster.cluster_scheduler import WORKER_LOST_S, JobsScheduler
from app.jobs.cluster.cluster_worker import LEASE_S, JobsWorker
from app.jobs.cluster.knock import knock
from app.jobs.cluster.quiet_dask import quiet_dask
from app.jobs.cluster.set_clock import start_again_when_clock_is_set_back
from app.jobs.engine.options import EngineOptions

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 0.1


async def serve_scheduler(
    host: str, port: int, security: Security, stop: asyncio.Event, *, worker_lost_s: float = WORKER_LOST_S
) -> None:
    quiet_dask()
    scheduler = JobsScheduler(host=host, port=port, protocol="tls", security=security, worker_lost_s=worker_lost_s)
    async with scheduler:
        log.info("cluster_scheduler_started", address=scheduler.address)
        async with _in_background(start_again_when_clock_is_set_back(scheduler)):
            await stop.wait()


async def serve_worker(
    address: str,
    options: EngineOptions,
    security: Security,
    stop: asyncio.Event,
    *,
    host: str | None = None,
    drain_s: float = 0.0,
    lease_s: float = LEASE_S,
) -> None:
    """Dask ends a worker that has lost its scheduler. Another one waits here for the scheduler to come back."""
    quiet_dask()
    pause = DoublingPause(longest_s=LONGEST_PAUSE_S)
    problem = ""
    while not stop.is_set():
        try:
            await knock(address)
            worker = JobsWorker(address, options, security=security, protocol="tls", host=host, lease_s=lease_s)
            if not await _unless(stop, _start(worker)):
                break
        except Exception as error:
            # Also what TLS or another version of dask cause: an operator may put it right.
            if problem != type(error).__name__:
                problem = type(error).__name__
                log.warning("cluster_worker_waits_for_its_scheduler", address=address, error_type=problem)
            await _unless(stop, asyncio.sleep(pause.next_s()))
            continue
        pause.reset()
        problem = ""
        log.info("cluster_worker_started", address=worker.address)
        async with _in_background(start_again_when_clock_is_set_back(worker)):
            await _unless(stop, worker.finished())
        if stop.is_set():
            await _drain(worker, drain_s)
        else:
            log.warning("cluster_worker_lost_its_scheduler", address=worker.address)
        await worker.close(timeout=1, reason="stopped")


@contextlib.asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


async def _start(worker: JobsWorker) -> None:
    await worker


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, Any]) -> bool:
    """False if the process is asked to stop first."""
    stopping, working = asyncio.create_task(stop.wait()), asyncio.create_task(work)
    try:
        await asyncio.wait((stopping, working), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        for task in (stopping, working):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


async def _drain(worker: JobsWorker, drain_s: float) -> None:
    """The scheduler gives it nothing more, and gives other workers what has not begun here. Between the end of a script
    and its result in `data`, only dask's own state knows the task; a worker that left then would have it run again."""
    worker.status = Status.paused
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(drain_s):
            while worker.status is Status.paused and (worker.jobs.begun() or worker.state.executing or worker.data):
                await asyncio.sleep(_LOOK_EVERY_S)
