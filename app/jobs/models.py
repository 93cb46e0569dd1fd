"""The tables of jobs, and the values of their columns."""

from enum import StrEnum

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db.schema import metadata, one_of
from app.foundation.state_machine import new_state
from app.jobs.engine.task import TaskType
from app.jobs.states import ENDED, JOB_TRANSITIONS, JobStatus

S = JobStatus


class JobOrigin(StrEnum):
    HTTP = "HTTP"
    CLI = "CLI"
    SCHEDULE = "SCHEDULE"


# The table is the queue. `fence` is higher after each claim: a runner whose lease has passed to another runner cannot
# record the end of the job. `claims` does not count a claim that was given back. `exclusive_key` keeps jobs of one key
# from running at the same time. `result` is `json`, which keeps the order of its members and takes every string.
jobs = Table(
    "jobs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("params", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("task_type", Text, nullable=False),
    Column("status", Text, nullable=False, server_default=new_state(JOB_TRANSITIONS, S.QUEUED)),
    Column("origin", Text, nullable=False),
    Column("requested_by", BigInteger, ForeignKey("users.id")),
    Column("idempotency_key", Text),
    Column("digest", LargeBinary),
    Column("schedule_name", Text),
    Column("scheduled_for", DateTime(timezone=True)),
    Column("exclusive_key", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("due_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("started_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    Column("claims", Integer, nullable=False, server_default=text("0")),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("claimed_by", Text),
    Column("lease_until", DateTime(timezone=True)),
    Column("cancel_requested_at", DateTime(timezone=True)),
    Column("progress_done", BigInteger),
    Column("progress_total", BigInteger),
    Column("progress_note", Text),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("result", JSON),
    Column("error", Text),
    Column("output", Text, nullable=False, server_default=""),
    Column("max_retries", Integer, nullable=False),
    Column("timeout_s", Float),
    CheckConstraint(one_of("status", JobStatus), name="status"),
    CheckConstraint(one_of("origin", JobOrigin), name="origin"),
    CheckConstraint(one_of("task_type", TaskType), name="task_type"),
    CheckConstraint("(status = 'RUNNING') = (lease_until IS NOT NULL)", name="running_has_a_lease"),
    CheckConstraint(f"({one_of('status', ENDED)}) = (finished_at IS NOT NULL)", name="ended_is_finished"),
    CheckConstraint("(schedule_name IS NULL) = (scheduled_for IS NULL)", name="scheduled"),
    Index("jobs_due_idx", "task_type", "due_at", "id", postgresql_where=text("status = 'QUEUED'")),
    Index("jobs_lease_idx", "lease_until", postgresql_where=text("status = 'RUNNING'")),
    Index("jobs_name_idx", "name", "id"),
    Index("jobs_status_idx", "status", "id"),
    Index(
        "jobs_one_per_key",
        "requested_by",
        "idempotency_key",
        unique=True,
        postgresql_where=text("idempotency_key IS NOT NULL"),
    ),
    Index(
        "jobs_one_per_due_time",
        "schedule_name",
        "scheduled_for",
        unique=True,
        postgresql_where=text("schedule_name IS NOT NULL"),
    ),
    Index(
        "jobs_one_running_per_exclusive_key",
        "exclusive_key",
        unique=True,
        postgresql_where=text("status = 'RUNNING' AND exclusive_key IS NOT NULL"),
    ),
    Index(
        "jobs_exclusive_idx",
        "exclusive_key",
        "id",
        postgresql_where=text("status IN ('QUEUED', 'RUNNING') AND exclusive_key IS NOT NULL"),
    ),
)

job_artifacts = Table(
    "job_artifacts",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("job_id", Uuid, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Index("job_artifacts_one_per_name", "job_id", "name", unique=True),
)

# One row for each entry of the schedule; a scheduler locks it while it asks for the runs that are due.
job_schedules = Table(
    "job_schedules",
    metadata,
    Column("name", Text, primary_key=True),
    Column("last_due_at", DateTime(timezone=True), nullable=False),
)
