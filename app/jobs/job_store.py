"""Asks for jobs and cancels them. SQL only; the caller owns the transaction."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.foundation.errors import IdempotencyKeyReused
from app.foundation.ids import uuid7
from app.foundation.state_machine import new_state
from app.jobs.engine.task import TaskType
from app.jobs.errors import JobEnded, JobNotFound
from app.jobs.models import JobOrigin
from app.jobs.states import CANCELLED_AT_ONCE, JOB_TRANSITIONS, LIVE, JobStatus

JOBS_CHANNEL = "jobs"
"""The channel of PostgreSQL's NOTIFY for the role `jobs`. Its payload is one of the topics."""
QUEUED_TOPIC = "queued"
CANCEL_TOPIC = "cancel"


@dataclass(frozen=True)
class JobKey:
    """A repeated key of the same person returns the same job."""

    requested_by: int
    text: str
    digest: bytes
    """Of the request, so that a different request with the same key is refused."""


@dataclass(frozen=True)
class NewJob:
    """The caller has checked the name and the parameters."""

    name: str
    task_type: TaskType
    max_retries: int
    timeout_s: float | None
    origin: JobOrigin
    params: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    requested_by: int | None = None
    key: JobKey | None = None
    schedule_name: str | None = None
    scheduled_for: datetime | None = None
    exclusive_key: str | None = None
    """Jobs with the same key run one after the other."""


@dataclass(frozen=True)
class RequestedJob:
    id: UUID
    is_new: bool
    """False if an earlier request with the same key created it."""


def digest_of(request: Mapping[str, Any]) -> bytes:
    """Does not depend on the order of the members."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()


# Nothing is written for a key, or a time of a schedule, that has its job already.
_INSERT = text(
    f"""
    WITH added AS (
        INSERT INTO jobs (id, name, params, task_type, status, origin, requested_by, idempotency_key, digest,
                          schedule_name, scheduled_for, exclusive_key, max_retries, timeout_s)
        VALUES (:id, :name, CAST(:params AS jsonb), :task_type, '{new_state(JOB_TRANSITIONS, JobStatus.QUEUED)}',
                :origin, :requested_by, :key, :digest, :schedule_name, :scheduled_for, :exclusive_key, :max_retries,
                :timeout_s)
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT id, pg_notify(:channel, :topic) FROM added
    """
)
_FIND_KEY = text("SELECT id, digest FROM jobs WHERE requested_by = :requested_by AND idempotency_key = :key")


def request_job(conn: Connection, new: NewJob) -> RequestedJob | None:
    """None if the job of this time of the schedule exists already."""
    key = new.key
    row = conn.execute(
        _INSERT,
        {
            "id": uuid7(),
            "name": new.name,
            "params": json.dumps(new.params, ensure_ascii=False),
            "task_type": new.task_type.value,
            "origin": new.origin.value,
            "requested_by": key.requested_by if key else new.requested_by,
            "key": key.text if key else None,
            "digest": key.digest if key else None,
            "schedule_name": new.schedule_name,
            "scheduled_for": new.scheduled_for,
            "exclusive_key": new.exclusive_key,
            "max_retries": new.max_retries,
            "timeout_s": new.timeout_s,
            "channel": JOBS_CHANNEL,
            "topic": QUEUED_TOPIC,
        },
    ).one_or_none()
    if row is not None:
        return RequestedJob(row.id, is_new=True)
    return find_requested(conn, key) if key is not None else None


def find_requested(conn: Connection, key: JobKey) -> RequestedJob | None:
    """The job that an earlier request with this key created."""
    row = conn.execute(_FIND_KEY, {"requested_by": key.requested_by, "key": key.text}).one_or_none()
    if row is None:
        return None
    if row.digest != key.digest:
        raise IdempotencyKeyReused("This Idempotency-Key was used for a different job.")
    return RequestedJob(row.id, is_new=False)


# A job that runs is asked to stop; its runner records that it did.
_CANCEL = text(
    f"""
    WITH cancelled AS (
        UPDATE jobs
           SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()),
               status = CASE WHEN {one_of("status", CANCELLED_AT_ONCE)} THEN 'CANCELLED' ELSE status END,
               finished_at = CASE WHEN {one_of("status", CANCELLED_AT_ONCE)} THEN clock_timestamp() END
         WHERE id = :id AND {one_of("status", LIVE)}
        RETURNING id
    )
    SELECT id, pg_notify(:channel, :topic) FROM cancelled
    """
)
_STATUS = text("SELECT status FROM jobs WHERE id = :id")


def cancel_job(conn: Connection, job_id: UUID) -> None:
    """A job that waits is cancelled at once. Harmless to repeat."""
    values = {"id": job_id, "channel": JOBS_CHANNEL, "topic": CANCEL_TOPIC}
    if conn.execute(_CANCEL, values).one_or_none() is not None:
        return
    status = conn.execute(_STATUS, {"id": job_id}).scalar_one_or_none()
    if status is None:
        raise JobNotFound("There is no job with this id.")
    if status != JobStatus.CANCELLED:
        raise JobEnded("The job has ended already.", status=status)


_HAS_LIVE = text(f"SELECT EXISTS (SELECT FROM jobs WHERE exclusive_key = :exclusive_key AND {one_of('status', LIVE)})")


_HAS_QUEUED = text(
    f"SELECT EXISTS (SELECT FROM jobs WHERE exclusive_key = :exclusive_key AND status = '{JobStatus.QUEUED}')"
)


def has_live_job(conn: Connection, exclusive_key: str) -> bool:
    return conn.execute(_HAS_LIVE, {"exclusive_key": exclusive_key}).scalar_one()


def has_queued_job(conn: Connection, exclusive_key: str) -> bool:
    return conn.execute(_HAS_QUEUED, {"exclusive_key": exclusive_key}).scalar_one()
