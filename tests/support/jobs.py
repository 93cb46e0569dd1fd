"""A double of the engine, and functions for tests of jobs."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.db.database import Database
from app.jobs.catalogue import Catalogue
from app.jobs.engine.engine import Artifact, EngineHealth, EngineListener, EngineMetrics, EngineStatus, Finished
from app.jobs.engine.result import Result
from app.jobs.engine.task import Task, TaskType
from app.jobs.held_jobs import HeldJobs
from app.jobs.job_runner import JobRunner, RunnerOptions
from app.jobs.job_store import NewJob, request_job
from app.jobs.metrics import JobMetrics
from app.jobs.models import JobOrigin

SCRIPTS = Path(__file__).parent / "job_scripts"
CATALOGUE = Catalogue(SCRIPTS)
SHIPPED = Catalogue(None, SCRIPTS)
"""Reads the same scripts in this process, which takes a second less for each."""
NOW = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)


@dataclass
class HandEngine:
    """An engine whose tasks end when the test says so, or at once. `listener` is told by the calling thread."""

    listener: EngineListener
    room: int = 4
    at_once: bool = False
    tasks: dict[str, Task] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    leases: list[float] = field(default_factory=list)
    on_shutdown: Any = None

    def submit_task(self, task: Task, *, wait_s: float = 0.0) -> str:
        self.tasks[task.id] = task
        if self.at_once:
            self.end(task.id, {"did": dict(task.params)})
        return task.id

    def end(self, task_id: str, data: Any = None, *, error: str | None = None, **more: Any) -> None:
        result = Result.failed(task_id, error, NOW, NOW) if error else Result.success(task_id, data, NOW, NOW)
        self.listener.finished(Finished(result, tries=1, **more))
        self.tasks.pop(task_id, None)

    def end_cancelled(self, task_id: str) -> None:
        self.listener.finished(Finished(Result.cancelled(task_id, NOW, NOW), tries=1))
        self.tasks.pop(task_id, None)

    def submit_batch(self, tasks: Sequence[Task], *, wait_s: float = 0.0) -> list[str]:
        return [self.submit_task(task) for task in tasks]

    def get_result(self, task_id: str, timeout: float | None = None) -> Result:
        raise NotImplementedError

    def as_completed(self, task_ids: Sequence[str], timeout: float | None = None) -> Iterator[Result]:
        raise NotImplementedError

    def pending_tasks(self) -> dict[str, Task]:
        return dict(self.tasks)

    def cancel(self, task_id: str) -> bool:
        self.cancelled.append(task_id)
        return task_id in self.tasks

    def extend_lease(self, until: float) -> None:
        self.leases.append(until)

    @property
    def free(self) -> Mapping[str, int]:
        taken = Counter(task.task_type for task in self.tasks.values())
        return {type_.value: max(self.room - taken[type_], 0) for type_ in TaskType}

    def is_whole(self) -> bool:
        return True

    def metrics(self) -> EngineMetrics:
        return EngineMetrics(0, 0, 0, 0, len(self.tasks), len(self.tasks), 0, 0, 0)

    def status(self) -> EngineStatus:
        return EngineStatus(EngineHealth.RUNNING, {"hand-0": "there"})

    def shutdown(self, drain_s: float) -> list[Task]:
        if self.on_shutdown is not None:
            self.on_shutdown()
        left = list(self.tasks.values())
        self.tasks.clear()
        return left


@dataclass
class TestRunner:
    __test__ = False

    runner: JobRunner
    engine: HandEngine
    held: HeldJobs

    @property
    def task_id(self) -> str:
        """Of the one task that the engine has."""
        (task_id,) = self.engine.tasks
        return task_id

    def wait_until_recorded(self) -> None:
        give_up = time.monotonic() + 10
        while len(self.held) > len(self.held.running()):
            assert time.monotonic() < give_up, "an end was not recorded"
            time.sleep(0.005)


def runner_on(db: Database, *, lease_s: float = 60, at_once: bool = False, room: int = 4, **more: Any) -> TestRunner:
    """Started; claims only when it is told to."""
    held = HeldJobs()
    engine = HandEngine(held, room, at_once)
    options = RunnerOptions(lease_s=lease_s, **{"most_claims": 5, **more})
    runner = JobRunner(db, engine, held, CATALOGUE.path_of, options, JobMetrics())
    runner.start()
    return TestRunner(runner, engine, held)


def ask_for(db: Database, name: str = "act", **more: Any) -> UUID:
    new = {"task_type": TaskType.IO_BOUND, "max_retries": 0, "timeout_s": 60.0, "origin": JobOrigin.CLI} | more
    with db.transaction() as conn:
        requested = request_job(conn, NewJob(name, **new))
    assert requested is not None
    return requested.id


def row_of(db: Database, job_id: UUID) -> Any:
    with db.reading() as conn:
        return conn.execute(text("SELECT * FROM jobs WHERE id = :id"), {"id": job_id}).one()


def status_of(db: Database, job_id: UUID) -> str:
    return row_of(db, job_id).status


def expire_leases(db: Database) -> None:
    with db.transaction() as conn:
        conn.execute(text("UPDATE jobs SET lease_until = clock_timestamp() WHERE status = 'RUNNING'"))


def at_once(*calls: Any) -> list[Any]:
    """Runs the calls at the same time, each in a thread; returns what they return."""
    start, results = threading.Barrier(len(calls)), [None] * len(calls)

    def one(number: int) -> None:
        start.wait()
        results[number] = calls[number]()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


__all__ = ["Artifact", "HandEngine", "ask_for", "at_once", "expire_leases", "row_of", "runner_on", "status_of"]
