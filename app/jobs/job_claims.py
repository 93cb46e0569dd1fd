"""Claims jobs, keeps their leases, and gives them back. SQL only; the caller owns the transaction.

A claim is valid until `lease_until`, or until another runner claims the job with a higher fence. The jobs are claimed
oldest first.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.jobs.engine.task import TaskType
from app.jobs.states import GIVEN_BACK_FROM, RECORDED_FROM, JobStatus

QUEUED = one_of("status", frozenset({JobStatus.QUEUED}))
RUNNING = one_of("status", frozenset({JobStatus.RUNNING}))


@dataclass(frozen=True)
class ClaimedJob:
    id: UUID
    fence: int
    name: str
    params: Mapping[str, Any] = field(repr=False)
    task_type: TaskType
    max_retries: int
    timeout_s: float | None

    @property
    def task_id(self) -> str:
        """With the fence, because one runner may claim a job twice, after its lease ran out."""
        return f"{self.id}.{self.fence}"


@dataclass(frozen=True)
class Abandoned:
    """A job whose runners died too often."""

    id: UUID
    name: str
    claims: int


# Of the jobs with one exclusive key, only the oldest that has not ended may be claimed.
_MAY_RUN = """
    (j.exclusive_key IS NULL OR NOT EXISTS (
        SELECT FROM jobs other
         WHERE other.exclusive_key = j.exclusive_key AND other.status IN ('QUEUED', 'RUNNING') AND other.id <> j.id
           AND (other.id < j.id OR other.status = 'RUNNING')))
"""
_TAKE = """
    UPDATE jobs
       SET status = 'RUNNING', fence = fence + 1, claims = claims + 1, claimed_by = :runner,
           lease_until = clock_timestamp() + make_interval(secs => :lease_s), started_at = clock_timestamp(),
           progress_done = NULL, progress_total = NULL, progress_note = NULL
"""
_CLAIMED = "jobs.id, fence, name, params, task_type, max_retries, timeout_s"

_CLAIM = text(
    f"""
    WITH expired AS (
        SELECT id FROM jobs WHERE {RUNNING} AND lease_until <= clock_timestamp() AND task_type = :task_type
         ORDER BY lease_until LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
    ), queued AS (
        SELECT id FROM jobs j WHERE j.{QUEUED} AND due_at <= clock_timestamp() AND task_type = :task_type AND {_MAY_RUN}
         ORDER BY due_at, id LIMIT greatest(:limit - (SELECT count(*) FROM expired), 0) FOR NO KEY UPDATE SKIP LOCKED
    ), due AS (
        SELECT id FROM expired UNION ALL SELECT id FROM queued
    )
    {_TAKE} FROM due WHERE jobs.id = due.id RETURNING {_CLAIMED}
    """
)
_CLAIM_ONE = text(f"{_TAKE} WHERE id = :id AND {QUEUED} RETURNING {_CLAIMED}")


def claim(conn: Connection, task_type: TaskType, limit: int, runner: str, lease_s: float) -> list[ClaimedJob]:
    values = {"task_type": task_type.value, "limit": limit, "runner": runner, "lease_s": lease_s}
    return sorted((_claimed(row) for row in conn.execute(_CLAIM, values)), key=lambda job: job.id)


def claim_one(conn: Connection, job_id: UUID, runner: str, lease_s: float) -> ClaimedJob | None:
    row = conn.execute(_CLAIM_ONE, {"id": job_id, "runner": runner, "lease_s": lease_s}).one_or_none()
    return None if row is None else _claimed(row)


def _claimed(row: Any) -> ClaimedJob:
    return ClaimedJob(row.id, row.fence, row.name, row.params, TaskType(row.task_type), row.max_retries, row.timeout_s)


# A job that nobody runs any more and that is to be cancelled, and one whose runners always died, are not run again.
_CLOSE = text(
    f"""
    WITH expired AS (
        SELECT id FROM jobs
         WHERE {RUNNING} AND lease_until <= clock_timestamp()
           AND (cancel_requested_at IS NOT NULL OR claims > :most_claims)
         ORDER BY id LIMIT 100 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE jobs SET status = CASE WHEN cancel_requested_at IS NOT NULL THEN 'CANCELLED' ELSE 'FAILED' END,
           error = CASE WHEN cancel_requested_at IS NULL THEN 'Its runner ended ' || claims || ' times while it ran.'
                   ELSE 'cancelled' END,
           finished_at = clock_timestamp(), lease_until = NULL, fence = fence + 1
      FROM expired WHERE jobs.id = expired.id AND {one_of("status", RECORDED_FROM)}
    RETURNING jobs.id, name, claims, status
    """
)


def close_expired(conn: Connection, most_claims: int) -> list[Abandoned]:
    """Ends the jobs that are not run again; returns those that failed."""
    rows = conn.execute(_CLOSE, {"most_claims": most_claims}).all()
    return [Abandoned(row.id, row.name, row.claims) for row in rows if row.status == JobStatus.FAILED]


_KEEP = text(
    f"""
    UPDATE jobs SET lease_until = clock_timestamp() + make_interval(secs => :lease_s)
      FROM json_to_recordset(CAST(:held AS json)) AS held(id uuid, fence bigint)
     WHERE jobs.id = held.id AND jobs.fence = held.fence AND {RUNNING}
    RETURNING jobs.id, jobs.fence, cancel_requested_at IS NOT NULL AS is_cancelled
    """
)


@dataclass(frozen=True)
class KeptLease:
    task_id: str
    is_cancelled: bool


def keep_leases(conn: Connection, held: Iterable[tuple[UUID, int]], lease_s: float) -> list[KeptLease]:
    """Prolongs the leases; returns the jobs that are still the runner's own."""
    rows = conn.execute(_KEEP, {"held": _pairs(held), "lease_s": lease_s})
    return [KeptLease(f"{row.id}.{row.fence}", row.is_cancelled) for row in rows]


_GIVE_BACK = text(
    f"""
    WITH held AS (
        SELECT * FROM json_to_recordset(CAST(:held AS json)) AS row(id uuid, fence bigint)
    ), back AS (
        UPDATE jobs
           SET status = CASE WHEN cancel_requested_at IS NULL THEN 'QUEUED' ELSE 'CANCELLED' END,
               finished_at = CASE WHEN cancel_requested_at IS NOT NULL THEN clock_timestamp() END,
               claims = claims - 1, claimed_by = NULL, lease_until = NULL, started_at = NULL
          FROM held WHERE jobs.id = held.id AND jobs.fence = held.fence AND {one_of("status", GIVEN_BACK_FROM)}
        RETURNING jobs.id
    )
    SELECT count(*) AS number, pg_notify(:channel, :topic) FROM back
    """
)


def give_back(conn: Connection, held: Sequence[tuple[UUID, int]], channel: str, topic: str) -> int:
    """Puts jobs that did not end back into the queue, as if they had not been claimed."""
    if not held:
        return 0
    return conn.execute(_GIVE_BACK, {"held": _pairs(held), "channel": channel, "topic": topic}).one().number


_PROGRESS = text(
    """
    UPDATE jobs SET progress_done = row.done, progress_total = row.total, progress_note = row.note
      FROM json_to_recordset(CAST(:rows AS json)) AS row(id uuid, fence bigint, done bigint, total bigint, note text)
     WHERE jobs.id = row.id AND jobs.fence = row.fence AND jobs.status = 'RUNNING'
    """
)


def save_progress(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    conn.execute(_PROGRESS, {"rows": json.dumps(rows)})


def _pairs(held: Iterable[tuple[UUID, int]]) -> str:
    return json.dumps([{"id": str(id_), "fence": fence} for id_, fence in held])
