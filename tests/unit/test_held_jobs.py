"""What the engine reports about the jobs of this process, and the metrics of both."""

import time
from uuid import uuid4

import pytest
from prometheus_client import generate_latest

from app.jobs.engine.engine import EngineHealth, EngineMetrics, EngineStatus, Finished
from app.jobs.engine.result import Result
from app.jobs.engine.task import TaskType
from app.jobs.held_jobs import HeldJobs
from app.jobs.job_claims import ClaimedJob
from app.jobs.metrics import JobMetrics
from tests.support.jobs import NOW


@pytest.fixture
def job() -> ClaimedJob:
    return ClaimedJob(uuid4(), 1, "greet", {}, TaskType.IO_BOUND, 0, None)


def holding(job: ClaimedJob, lease_s: float) -> HeldJobs:
    held = HeldJobs()
    held.engine_lease_until = time.monotonic() + lease_s
    held.add(job, held.engine_lease_until)
    return held


def test_failure_after_the_end_of_the_lease_is_not_recorded(job: ClaimedJob) -> None:
    """The engine has killed the worker because of the lease, so the job runs again."""
    held = holding(job, -1)
    held.finished(Finished(Result.failed(job.task_id, "its worker was killed"), 1))
    assert (held.next_ends(0, 9), len(held)) == ([], 0)


def test_success_after_the_end_of_the_lease_is_offered_to_the_database(job: ClaimedJob) -> None:
    held = holding(job, -1)
    held.finished(Finished(Result.success(job.task_id, 1, NOW, NOW), 1))
    assert len(held.next_ends(0, 9)) == 1


def test_end_is_recorded_once_with_the_last_progress(job: ClaimedJob) -> None:
    held = holding(job, 60)
    held.progressed(job.task_id, -5, 2**70, "a")
    finished = Finished(Result.failed(job.task_id, "no"), 1)
    held.finished(finished)
    held.finished(finished)
    (end,) = held.next_ends(0, 9)
    assert end is not None and end.progress is not None
    assert (end.progress["done"], end.progress["total"]) == (0, 2**63 - 1)
    assert held.next_ends(0, 9) == []
    assert (held.running(), len(held), held.first_lease_end()) == (set(), 1, None)


def test_counters_grow_by_what_the_engine_has_counted_since_the_last_look() -> None:
    metrics = JobMetrics()

    def show(put: int, threads: int, *components: str) -> str:
        counted = EngineMetrics(put, 1, 0, 0, threads, 0, 0, 0, 0)
        metrics.show_engine(counted, EngineStatus(EngineHealth.RUNNING, dict.fromkeys(components, "1 of 8 threads")))
        return generate_latest(metrics.registry).decode()

    show(3, 1, "io-0", "cpu-0")
    shown = show(5, 2, "io-0")
    for line in (
        "yaninda_jobs_input_put_total 5.0",
        "yaninda_jobs_input_dropped_total 1.0",
        "yaninda_jobs_active_threads 2.0",
        'yaninda_jobs_component{component="io-0"} 1.0',
        'yaninda_jobs_component{component="cpu-0"} 0.0',
        'yaninda_jobs_engine{health="RUNNING"} 1.0',
        'yaninda_jobs_engine{health="LOST"} 0.0',
    ):
        assert line in shown
