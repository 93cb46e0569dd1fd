"""Jobs as rows: claimed once, kept by a lease, recorded by whoever holds them."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.foundation.pages import Page
from app.jobs import service as jobs
from app.jobs.contract import ArtifactNotFound, JobEnded, JobNotFound, JobStatus
from app.jobs.end_recorder import EndRecorder
from app.jobs.engine.engine import Artifact, Finished
from app.jobs.engine.result import Result
from app.jobs.engine.task import TaskType
from app.jobs.held_jobs import HeldJobs
from app.jobs.job_claims import claim
from app.jobs.job_runner import MOST_UNRECORDED
from app.jobs.metrics import JobMetrics
from app.users import service as users
from app.users.models import Role
from tests.support.jobs import NOW, TestRunner, ask_for, at_once, expire_leases, row_of, runner_on, status_of

Make = Callable[..., TestRunner]


@pytest.fixture
def make(db: Database) -> Iterator[Make]:
    """Makes runners, and stops them at the end."""
    made: list[TestRunner] = []

    def make(**options: Any) -> TestRunner:
        made.append(runner_on(db, **options))
        return made[-1]

    yield make
    for one in made:
        one.runner.drain(0)


def cancel(db: Database, job_id: Any) -> None:
    with db.transaction() as conn:
        jobs.cancel_job(conn, job_id)


def test_job_is_run_and_all_that_it_leaves_is_kept(db: Database, make: Make) -> None:
    job_id = ask_for(db, params={"diary": "ğ"})
    one = make()
    assert one.runner.claim_once() == 1
    assert one.engine.tasks[one.task_id].params == {"diary": "ğ"}
    assert status_of(db, job_id) == "RUNNING"
    one.engine.end(one.task_id, {"son": "ş\0\ud800"}, output="a\0b", artifacts=(Artifact("a.csv", b"\0\xff"),))
    one.wait_until_recorded()
    with db.reading() as conn:
        job = jobs.get_job(conn, job_id)
        content = jobs.read_artifact(conn, job_id, "a.csv")
        with pytest.raises(ArtifactNotFound):
            jobs.read_artifact(conn, job_id, "b.csv")
    assert (job.status, job.result, job.output, job.claims) == ("SUCCEEDED", {"son": "ş\0\ud800"}, "ab", 1)
    assert [(artifact.name, artifact.size) for artifact in job.artifacts] == [("a.csv", 2)]
    assert content == b"\0\xff"
    assert job.started_at and job.finished_at


def test_only_as_many_are_claimed_as_can_begin_and_the_oldest_first(db: Database, make: Make) -> None:
    ids = [ask_for(db) for _ in range(5)]
    one = make(room=2)
    assert one.runner.claim_once() == 2
    assert [status_of(db, id_) for id_ in ids] == ["RUNNING"] * 2 + ["QUEUED"] * 3
    assert one.runner.claim_once() == 0


def test_types_are_claimed_separately(db: Database, make: Make) -> None:
    for _ in range(2):
        ask_for(db, task_type=TaskType.CPU_BOUND)
    one = make(room=1)
    assert one.runner.claim_once() == 1
    ask_for(db, task_type=TaskType.IO_BOUND)
    assert one.runner.claim_once() == 1
    assert {task.task_type for task in one.engine.tasks.values()} == set(TaskType)


def test_of_many_runners_one_gets_the_job(db: Database, make: Make) -> None:
    runners = [make() for _ in range(6)]
    for _ in range(5):
        ask_for(db)
        assert sum(at_once(*(one.runner.claim_once for one in runners))) == 1
    assert sum(len(one.engine.tasks) for one in runners) == 5


def test_end_of_a_runner_that_lost_its_lease_is_refused(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    first, second = make(), make()
    first.runner.claim_once()
    late = first.task_id
    expire_leases(db)
    assert second.runner.claim_once() == 1
    first.engine.end(late, "from the first")
    first.wait_until_recorded()
    assert status_of(db, job_id) == "RUNNING"
    second.engine.end(second.task_id, "from the second")
    second.wait_until_recorded()
    row = row_of(db, job_id)
    assert (row.status, row.result, row.claims, row.fence) == ("SUCCEEDED", "from the second", 2, 2)


def test_runner_stops_what_another_runner_has_claimed(db: Database, make: Make) -> None:
    ask_for(db)
    first, second = make(), make()
    first.runner.claim_once()
    task_id = first.task_id
    expire_leases(db)
    second.runner.claim_once()
    first.runner.beat()
    assert first.engine.cancelled == [task_id]
    assert len(first.held) == 0
    second.runner.beat()
    assert second.engine.cancelled == []


def test_beat_prolongs_the_lease_of_the_rows_and_of_the_engine(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    one = make()
    one.runner.claim_once()
    with db.transaction() as conn:
        conn.execute(text("UPDATE jobs SET lease_until = lease_until - interval '50 s'"))
    before, leases = row_of(db, job_id).lease_until, len(one.engine.leases)
    one.runner.beat()
    assert (row_of(db, job_id).lease_until - before).total_seconds() > 40
    assert len(one.engine.leases) == leases + 1
    assert one.engine.leases == sorted(one.engine.leases)


def test_nothing_begins_on_a_lease_that_is_over(db: Database, make: Make) -> None:
    """The margin for clocks is longer than this lease, as if the process had been stopped after the claim."""
    job_id = ask_for(db)
    one = make(lease_s=1.0)
    one.runner.claim_once()
    assert one.engine.tasks == {}
    row = row_of(db, job_id)
    assert (row.status, row.claims) == ("QUEUED", 0)


def test_job_that_the_engine_has_let_go_runs_again(db: Database, make: Make) -> None:
    """As it does if its lease ends."""
    job_id = ask_for(db)
    one = make()
    one.runner.claim_once()
    one.engine.tasks.clear()
    one.runner.beat()
    assert len(one.held) == 0
    expire_leases(db)
    assert one.runner.claim_once() == 1
    assert row_of(db, job_id).fence == 2


def test_draining_runner_lets_jobs_end_and_gives_back_the_others(db: Database, make: Make) -> None:
    ends, stays = ask_for(db, name="act"), ask_for(db, name="greet")
    one = make()
    one.runner.claim_once()
    by_name = {task.script_path.rpartition("/")[2]: id_ for id_, task in one.engine.tasks.items()}
    one.engine.on_shutdown = lambda: one.engine.end(by_name["act.py"], "done")
    one.runner.drain(1)
    assert status_of(db, ends) == "SUCCEEDED"
    row = row_of(db, stays)
    assert (row.status, row.claims, row.claimed_by, row.started_at) == ("QUEUED", 0, None, None)
    assert make().runner.claim_once() == 1


def test_job_whose_runners_always_die_fails(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    for _ in range(3):
        assert make(most_claims=2).runner.claim_once() == 1
        expire_leases(db)
    assert make(most_claims=2).runner.claim_once() == 0
    row = row_of(db, job_id)
    assert (row.status, row.error) == ("FAILED", "Its runner ended 3 times while it ran.")


def test_waiting_job_is_cancelled_at_once(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    cancel(db, job_id)
    cancel(db, job_id)
    assert status_of(db, job_id) == "CANCELLED"
    assert make().runner.claim_once() == 0


def test_running_job_is_cancelled_by_its_runner(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    one = make()
    one.runner.claim_once()
    cancel(db, job_id)
    assert status_of(db, job_id) == "RUNNING"
    one.runner.beat()
    assert one.engine.cancelled == [one.task_id]
    one.engine.end_cancelled(one.task_id)
    one.wait_until_recorded()
    assert status_of(db, job_id) == "CANCELLED"
    cancel(db, job_id)


def test_cancelled_job_whose_runner_died_does_not_run_again(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    make().runner.claim_once()
    cancel(db, job_id)
    expire_leases(db)
    assert make().runner.claim_once() == 0
    assert status_of(db, job_id) == "CANCELLED"


def test_cancelled_job_that_a_draining_runner_gives_back_ends(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    one = make()
    one.runner.claim_once()
    cancel(db, job_id)
    one.runner.drain(0)
    assert status_of(db, job_id) == "CANCELLED"


def test_job_that_has_ended_cannot_be_cancelled(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    one = make(at_once=True)
    one.runner.claim_once()
    one.wait_until_recorded()
    with pytest.raises(JobEnded):
        cancel(db, job_id)
    with pytest.raises(JobNotFound):
        cancel(db, "01932c07-4b00-7000-8000-000000000001")


def test_progress_is_written(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    one = make()
    one.runner.claim_once()
    one.held.progressed(one.task_id, 3, 10, "Kadıköy\0" + "x" * 1000)
    one.held.progressed("another.1", 1, 1, "")
    one.engine.end(one.task_id, None)
    one.wait_until_recorded()
    row = row_of(db, job_id)
    assert (row.progress_done, row.progress_total, row.progress_note[:8]) == (3, 10, "Kadıköyx")


def test_script_that_was_removed_fails_the_job(db: Database, make: Make) -> None:
    job_id = ask_for(db, name="removed")
    one = make()
    one.runner.claim_once()
    one.wait_until_recorded()
    row = row_of(db, job_id)
    assert (row.status, row.error) == ("FAILED", "There is no script with this name.")


def test_end_that_cannot_be_stored_fails_the_job(db: Database, make: Make) -> None:
    job_id = ask_for(db)
    one = make()
    one.runner.claim_once()
    twice = Artifact("a.csv", b"1")
    one.engine.end(one.task_id, "done", artifacts=(twice, twice))
    one.wait_until_recorded()
    row = row_of(db, job_id)
    assert row.status == "FAILED"
    assert "could not be stored" in row.error


def test_jobs_with_one_exclusive_key_run_one_after_the_other(db: Database, make: Make) -> None:
    ids = [ask_for(db, exclusive_key="k") for _ in range(3)]
    runners = [make() for _ in range(4)]
    for turn in range(3):
        assert sum(at_once(*(one.runner.claim_once for one in runners))) == 1
        assert [status_of(db, id_) for id_ in ids].count("RUNNING") == 1
        (owner,) = [one for one in runners if one.engine.tasks]
        owner.engine.end(owner.task_id, turn)
        owner.wait_until_recorded()
    assert [row_of(db, id_).result for id_ in ids] == [0, 1, 2]


def test_administrators_are_told_of_a_failed_job_once_an_hour(db: Database, make: Make) -> None:
    with db.transaction() as conn:
        for role in (Role.ADMIN, Role.ADMIN, Role.COORDINATOR):
            users.create_user(conn, users.NewUser(role, "Yönetici"))
    one = make()
    for name, error in (("act", "no"), ("act", "no again"), ("greet", "no")):
        ask_for(db, name=name)
        one.runner.claim_once()
        one.engine.end(one.task_id, error=error)
        one.wait_until_recorded()
    with db.reading() as conn:
        bodies = conn.execute(text("SELECT body FROM notifications ORDER BY body")).scalars().all()
    assert bodies == sorted(
        f"{name} işi başarısız oldu. Lütfen işin kaydındaki hataya bakın." for name in ("act", "greet") for _ in "12"
    )


def test_list_is_filtered_and_paged(db: Database) -> None:
    ids = [ask_for(db, name=name) for name in ("act", "greet", "act", "act")]
    cancel(db, ids[0])

    def listed(**filters: Any) -> Page[Any]:
        with db.reading() as conn:
            return jobs.list_jobs(conn, **{"cursor": None, "limit": 2} | filters)

    first = listed(name="act")
    assert [job.id for job in first.items] == [ids[3], ids[2]]
    assert [job.id for job in listed(name="act", cursor=first.next_cursor).items] == [ids[0]]
    assert [job.id for job in listed(status=JobStatus.CANCELLED).items] == [ids[0]]


def test_ends_that_come_together_are_recorded_together_or_else_one_by_one(db: Database, make: Make) -> None:
    ids = [ask_for(db) for _ in range(4)]
    held, metrics = HeldJobs(), JobMetrics()
    with db.transaction() as conn:
        claimed = claim(conn, TaskType.IO_BOUND, 4, "a runner", 60)
    for job in claimed:
        held.add(job, time.monotonic() + 60)
    held.engine_lease_until = time.monotonic() + 60
    twice = (Artifact("a.csv", b"1"), Artifact("a.csv", b"2"))
    for number, job in enumerate(claimed):
        finished = Finished(Result.success(job.task_id, number, NOW, NOW), 1, artifacts=twice if number == 2 else ())
        held.finished(finished)
    recorder = EndRecorder(db, held, metrics)
    recorder.start()
    assert recorder.close(30)
    assert [status_of(db, id_) for id_ in ids] == ["SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert len(held) == 0


def test_nothing_is_claimed_while_too_many_ends_wait(db: Database, make: Make) -> None:
    """The engine may be faster than the database, and ends hold results and artifacts."""
    for _ in range(MOST_UNRECORDED + 1):
        ask_for(db)
    one = make(room=MOST_UNRECORDED)
    assert one.runner.claim_once() == MOST_UNRECORDED
    with db.transaction() as conn:
        # Keeps the recorder waiting.
        conn.execute(text("SELECT FROM jobs FOR UPDATE"))
        for task_id in list(one.engine.tasks):
            one.engine.end(task_id)
        assert one.runner.claim_once() == 0
    one.wait_until_recorded()
    assert one.runner.claim_once() == 1


def test_free_thread_of_the_engine_is_used_at_once(db: Database, make: Make) -> None:
    """Not at the next look at the table."""
    one = make(room=1)
    one.runner.bell.wait(0)
    ask_for(db)
    one.runner.claim_once()
    one.engine.end(one.task_id)
    began = time.monotonic()
    one.runner.bell.wait(60)
    assert time.monotonic() - began < 30
