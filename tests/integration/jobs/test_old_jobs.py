"""Jobs that have ended are forgotten after their time, with their files."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.foundation.ids import earliest_id
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.scripts import privacy_retention
from app.jobs.scripts.privacy_retention import PrivacyRetentionParams
from app.settings.settings import Settings

ADD = text(
    "INSERT INTO jobs (id, name, task_type, status, origin, max_retries, created_at, finished_at)"
    " VALUES (:id, 'act', 'io_bound', :status, 'CLI', 0, :created_at, :finished_at)"
)
ADD_FILE = text("INSERT INTO job_artifacts (id, job_id, name, size, content) VALUES (:id, :id, 'a.csv', 1, 'x')")


@pytest.fixture
def context(db: Database, settings: Settings) -> ExecutionContext:
    return ExecutionContext("t", "io-0", resources=lambda: JobResources(settings, db))


def add(db: Database, *, days: int, status: str = "SUCCEEDED") -> UUID:
    """A job that was asked for, and has ended if its status says so, this long ago."""
    then = db.now() - timedelta(days=days)
    id_ = earliest_id(then)
    ended = None if status == "QUEUED" else then
    with db.transaction() as conn:
        conn.execute(ADD, {"id": id_, "status": status, "created_at": then, "finished_at": ended})
        conn.execute(ADD_FILE, {"id": id_})
    return id_


def left(db: Database, table: str) -> set[UUID]:
    with db.reading() as conn:
        return set(conn.execute(text(f"SELECT id FROM {table}")).scalars())


def test_old_jobs_are_forgotten_with_their_files(db: Database, context: ExecutionContext) -> None:
    add(db, days=100)
    add(db, days=120, status="FAILED")
    kept = {add(db, days=80), add(db, days=140, status="QUEUED")}
    dry = privacy_retention.run(PrivacyRetentionParams(dry_run=True), context)["kinds"]["jobs"]
    assert (dry["days"], dry["rows"], left(db, "jobs") > kept) == (90, 4, True)
    done = privacy_retention.run(PrivacyRetentionParams(kinds=("jobs",)), context)["kinds"]
    assert (list(done), done["jobs"]["rows"]) == (["jobs"], 4)
    assert left(db, "jobs") == left(db, "job_artifacts") == kept


def test_job_whose_files_take_longer_than_a_bite_is_forgotten(db: Database, context: ExecutionContext) -> None:
    job_id = add(db, days=100)
    with db.transaction() as conn:
        conn.execute(
            text(
                "INSERT INTO job_artifacts (id, job_id, name, size, content)"
                " SELECT gen_random_uuid(), :id, n::text, 1, 'x' FROM generate_series(1, 4) AS n"
            ),
            {"id": job_id},
        )
        conn.execute(
            text(
                "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql"
                " AS 'BEGIN PERFORM pg_sleep(0.03); RETURN OLD; END'"
            )
        )
        conn.execute(text("CREATE TRIGGER slow BEFORE DELETE ON job_artifacts FOR EACH ROW EXECUTE FUNCTION slow()"))
    try:
        privacy_retention.run(PrivacyRetentionParams(kinds=("jobs",)), context)
    finally:
        with db.transaction() as conn:
            conn.execute(text("DROP FUNCTION slow() CASCADE"))
    assert left(db, "jobs") == left(db, "job_artifacts") == set()
