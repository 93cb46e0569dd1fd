"""The parts of the role `jobs`, and of the commands that run a job."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from uuid import UUID
from zoneinfo import ZoneInfo

from prometheus_client import CollectorRegistry
from sqlalchemy import Connection

from app.bootstrap.job_catalogue import job_catalogue
from app.db.database import Database
from app.db.wake import Announcer
from app.jobs.engine.embedded import EmbeddedEngine
from app.jobs.engine.engine import Engine, EngineListener
from app.jobs.engine.execution_context import JobResources
from app.jobs.engine.options import MEGABYTE, EngineOptions
from app.jobs.held_jobs import HeldJobs
from app.jobs.job_runner import JobRunner, RunnerOptions
from app.jobs.job_store import JOBS_CHANNEL
from app.jobs.metrics import JobMetrics
from app.jobs.role import JobsRole
from app.jobs.scheduler import Scheduler, problems_with_schedule
from app.ops.submission_counter import SubmissionCounter
from app.redis_store.store import connect
from app.settings.engine_address import ClusterMisconfigured, parse_engine
from app.settings.settings import Settings

_POOL = 6
"""Claims, leases, ends, the schedule, and room for a slow one."""
_LONGEST_CALL_S = 7 * 86_400.0
_RESULTS_KEPT = 100
"""Nobody fetches results here: the listener records them."""


def open_jobs_database(settings: Settings) -> Database:
    # Statements that write artifacts take longer than others.
    return Database(
        settings.database_url, pool_size=_POOL, statement_timeout_ms=30_000, application_name="yaninda-jobs"
    )


def open_job_resources(settings: Settings) -> JobResources:
    """For the scripts, in each worker process. Only they know how long their statements may take."""
    db = Database(
        settings.database_url,
        pool_size=max(settings.jobs_io_threads, settings.jobs_cpu_threads) + 2,
        pool_timeout_s=30,
        statement_timeout_ms=0,
        lock_timeout_ms=0,
        call_limit_s=_LONGEST_CALL_S,
        application_name="yaninda-job",
    )
    # Nobody scrapes this process, but `serve` adds up the files of all.
    SubmissionCounter(CollectorRegistry()).watch(db)
    return JobResources(settings, db, connect(settings.redis_url, pool_size=1))


def engine_options(settings: Settings) -> EngineOptions:
    return EngineOptions(
        io_workers=settings.jobs_io_workers,
        io_threads=settings.jobs_io_threads,
        cpu_workers=settings.jobs_cpu_workers or os.cpu_count() or 1,
        cpu_threads=settings.jobs_cpu_threads,
        worker_memory_bytes=settings.jobs_worker_memory_mb * MEGABYTE,
        input_capacity=settings.jobs_input_capacity,
        results_kept=_RESULTS_KEPT,
        cancel_grace_s=settings.jobs_cancel_grace_s,
        artifact_bytes=settings.jobs_artifact_bytes,
        artifacts_bytes=settings.jobs_artifacts_bytes_per_job,
        # Workers share what the fork server has imported, and start in milliseconds.
        preload=(__name__,),
        resources=partial(open_job_resources, settings),
    )


def open_embedded_engine(settings: Settings, listener: EngineListener) -> Engine:
    return EmbeddedEngine(engine_options(settings), listener)


def open_engine(settings: Settings, listener: EngineListener) -> Engine:
    """Raises `ClusterMisconfigured`."""
    if parse_engine(settings.jobs_engine) is None:
        return open_embedded_engine(settings, listener)
    try:
        # Here, because the packages of the cluster are installed only where one is used.
        from app.bootstrap.jobs_cluster import open_dask_engine
    except ModuleNotFoundError as error:
        problem = f"JOBS_ENGINE: the package {error.name} is missing: install requirements-cluster.lock"
        raise ClusterMisconfigured(problem) from None
    return open_dask_engine(settings, listener, engine_options(settings), _job_of)


def _job_of(task_id: str) -> str:
    """Without the fence: a runner that claims a job while an earlier runner of it stands still shares its run."""
    return task_id.partition(".")[0]


def build_runner(
    settings: Settings, db: Database, open_: Callable[[Settings, EngineListener], Engine] = open_engine
) -> JobRunner:
    held = HeldJobs()
    options = RunnerOptions(settings.jobs_lease_s, settings.jobs_most_claims)
    find_script, metrics = job_catalogue(settings).path_of, JobMetrics()
    SubmissionCounter(metrics.registry).watch(db)
    return JobRunner(db, open_(settings, held), held, find_script, options, metrics)


def build_scheduler(settings: Settings, db: Database) -> Scheduler:
    zone = ZoneInfo(settings.time_zone)
    return Scheduler(db, job_catalogue(settings), settings.job_schedule, zone, settings.jobs_timeout_s)


@contextmanager
def running_here(settings: Settings) -> Generator[Callable[[Callable[[Connection], UUID]], UUID]]:
    """For a command that runs one job on this machine, also if the role has a cluster: a function that asks for the job
    and begins it."""
    db = open_jobs_database(settings)
    runner = build_runner(settings, db, open_embedded_engine)
    runner.start()
    try:
        yield runner.run_here
    finally:
        runner.drain(0.0)
        db.close()


def schedule_problems(settings: Settings) -> list[str]:
    """What the settings alone cannot find: an unknown script, wrong parameters."""
    return problems_with_schedule(job_catalogue(settings), settings.job_schedule)


def build_jobs(settings: Settings, db: Database) -> JobsRole:
    announcer = Announcer(settings.database_url, JOBS_CHANNEL)
    return JobsRole(build_runner(settings, db), build_scheduler(settings, db), announcer, settings.drain_s)
