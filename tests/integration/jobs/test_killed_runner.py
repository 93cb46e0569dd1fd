"""A runner is killed between any two of its statements. The next one ends the job, once."""

from uuid import UUID

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.users import service as users
from app.users.models import Caller, Role
from tests.support import mishaps
from tests.support.depth import passages
from tests.support.jobs import ask_for, expire_leases, row_of
from tests.support.matching import eventually

PLACES = ("sql.statement", "sql.commit", "sql.committed", "jobs.claimed", "jobs.finished", "jobs.recorded")
MOST = 40
WHAT = ("run_jobs", Caller(0, Role.ADMIN, "", "tr", None), None, "")


def end_job(services: Services, job_id: UUID) -> None:
    """PostgreSQL notices a killed runner a moment late. Until then its row is locked, and others pass it by."""

    def is_ended() -> bool:
        mishaps.do(services, *WHAT)
        return row_of(services.db, job_id).finished_at is not None

    eventually(is_ended, "the next runner ends the job")


@pytest.mark.parametrize("place", PLACES)
def test_killed_runner_loses_no_job_and_records_none_twice(services: Services, place: str) -> None:
    db = services.db
    for passage in passages(MOST):
        job_id = ask_for(db)
        died = mishaps.Step(services.settings, f"{place}=kill@{passage}", *WHAT).end().died
        ended = row_of(db, job_id).finished_at
        expire_leases(db)
        end_job(services, job_id)
        row = row_of(db, job_id)
        assert (row.status, row.result) == ("SUCCEEDED", {"did": {}})
        assert ended in (None, row.finished_at), "a recorded end was recorded again"
        if not died:
            assert passage > 1, f"a runner never passes {place}"
            return
    raise AssertionError(f"{MOST} passages did not reach the end of a run")


def test_failure_and_its_alarm_are_committed_together(services: Services) -> None:
    db = services.db
    with db.transaction() as conn:
        users.create_user(conn, users.NewUser(Role.ADMIN, "Yönetici"))
    job_id = ask_for(db, name="removed")
    assert mishaps.Step(services.settings, "jobs.finished=kill@1", *WHAT).end().died
    expire_leases(db)
    end_job(services, job_id)
    with db.reading() as conn:
        told = conn.execute(text("SELECT count(*) FROM notifications")).scalar_one()
        assert (told, conn.execute(text("SELECT status FROM jobs")).scalar_one()) == (1, "FAILED")
