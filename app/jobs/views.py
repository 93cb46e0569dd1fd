"""Jobs as operators see them. SQL only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.foundation.pages import Page, page_of, parse_uuid
from app.jobs.errors import ArtifactNotFound, JobNotFound
from app.jobs.models import JobOrigin
from app.jobs.states import LIVE, JobStatus


@dataclass(frozen=True)
class JobProgress:
    done: int
    total: int | None
    note: str


@dataclass(frozen=True)
class ArtifactView:
    name: str
    size: int


@dataclass(frozen=True)
class JobView:
    id: UUID
    name: str
    params: Mapping[str, Any] = field(repr=False)
    task_type: str
    status: JobStatus
    origin: JobOrigin
    requested_by: int | None
    schedule_name: str | None
    scheduled_for: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    progress: JobProgress | None
    error: str | None = field(repr=False)

    @property
    def has_ended(self) -> bool:
        return self.status not in LIVE


@dataclass(frozen=True)
class JobInFull(JobView):
    result: Any = field(repr=False)
    output: str = field(repr=False)
    """The end of what the script printed."""
    claims: int
    tries: int
    max_retries: int
    timeout_s: float | None
    artifacts: list[ArtifactView]


_SHOWN = """id, name, params, task_type, status, origin, requested_by, schedule_name, scheduled_for, created_at,
    started_at, finished_at, cancel_requested_at, progress_done, progress_total, progress_note, error"""
_GET = text(f"SELECT {_SHOWN}, result, output, claims, tries, max_retries, timeout_s FROM jobs WHERE id = :id")
_WATCH = text(f"SELECT {_SHOWN} FROM jobs WHERE id = :id")
_FILTERS = {"name": "name = :name", "status": "status = :status", "before": "id < CAST(:before AS uuid)"}
_ARTIFACTS = text("SELECT name, size FROM job_artifacts WHERE job_id = :id ORDER BY name")
_CONTENT = text("SELECT content FROM job_artifacts WHERE job_id = :id AND name = :name")


def list_jobs(
    conn: Connection, *, name: str | None = None, status: JobStatus | None = None, cursor: str | None, limit: int
) -> Page[JobView]:
    """Newest first."""
    before = None if cursor is None else parse_uuid(cursor)
    values = {"name": name, "status": status and status.value, "before": before}
    given = {key: value for key, value in values.items() if value is not None}
    # Only these conditions, so that each list is read from an index, however long the history is.
    where = " AND ".join(_FILTERS[key] for key in given) or "true"
    statement = text(f"SELECT {_SHOWN} FROM jobs WHERE {where} ORDER BY id DESC LIMIT :limit")
    return page_of(
        conn.execute(statement, given | {"limit": limit + 1}).all(), limit, lambda row: JobView(**_shown(row))
    )


def get_job(conn: Connection, job_id: UUID) -> JobInFull:
    row = conn.execute(_GET, {"id": job_id}).one_or_none()
    if row is None:
        raise JobNotFound("There is no job with this id.")
    artifacts = [ArtifactView(found.name, found.size) for found in conn.execute(_ARTIFACTS, {"id": job_id})]
    return JobInFull(
        **_shown(row),
        result=row.result,
        output=row.output,
        claims=row.claims,
        tries=row.tries,
        max_retries=row.max_retries,
        timeout_s=row.timeout_s,
        artifacts=artifacts,
    )


def watch_job(conn: Connection, job_id: UUID) -> JobView:
    """Without what is large, for a caller that asks again and again."""
    row = conn.execute(_WATCH, {"id": job_id}).one_or_none()
    if row is None:
        raise JobNotFound("There is no job with this id.")
    return JobView(**_shown(row))


def read_artifact(conn: Connection, job_id: UUID, name: str) -> bytes:
    content = conn.execute(_CONTENT, {"id": job_id, "name": name}).scalar_one_or_none()
    if content is None:
        raise ArtifactNotFound("There is no such artifact.")
    return bytes(content)


def _shown(row: Any) -> dict[str, Any]:
    names = ("id", "name", "params", "task_type", "requested_by", "schedule_name", "scheduled_for", "created_at")
    names += ("started_at", "finished_at", "cancel_requested_at", "error")
    progress = None
    if row.progress_done is not None:
        progress = JobProgress(row.progress_done, row.progress_total, row.progress_note or "")
    values: dict[str, Any] = {name: getattr(row, name) for name in names}
    return values | {"status": JobStatus(row.status), "origin": JobOrigin(row.origin), "progress": progress}


@dataclass(frozen=True)
class QueueLoad:
    queued: int
    running: int
    oldest_queued_s: float
    """How long the oldest job has waited that could run."""


_LOAD = text(
    f"""
    SELECT count(*) FILTER (WHERE status = 'QUEUED') AS queued, count(*) FILTER (WHERE status = 'RUNNING') AS running,
           coalesce(extract(epoch FROM clock_timestamp() - min(due_at) FILTER (WHERE status = 'QUEUED')), 0)::float8
           AS oldest_queued_s
      FROM jobs WHERE {one_of("status", LIVE)}
    """
)


def read_load(conn: Connection) -> QueueLoad:
    row = conn.execute(_LOAD).one()
    return QueueLoad(row.queued, row.running, max(row.oldest_queued_s, 0.0))
