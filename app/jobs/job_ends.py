"""Records the end of a job: its result, output and artifacts. SQL only; the caller owns the transaction."""

import json
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.foundation.ids import uuid7
from app.foundation.logs import mask_database_detail, mask_text
from app.foundation.state_machine import check_transition
from app.foundation.storable import made_storable
from app.jobs.engine.engine import Artifact, Finished
from app.jobs.engine.result import ResultStatus
from app.jobs.failure_alarm import raise_alarm
from app.jobs.states import JOB_TRANSITIONS, RECORDED_FROM, JobStatus

MOST_ERROR_CHARACTERS = 10_000

STATUS_OF = {
    ResultStatus.SUCCESS: JobStatus.SUCCEEDED,
    ResultStatus.FAILED: JobStatus.FAILED,
    ResultStatus.CANCELLED: JobStatus.CANCELLED,
}


@dataclass(frozen=True)
class JobEnd:
    status: JobStatus
    tries: int
    result: str | None = None
    """JSON text."""
    error: str | None = None
    output: str = ""
    artifacts: tuple[Artifact, ...] = ()

    def failed(self, error: str) -> "JobEnd":
        return replace(self, status=JobStatus.FAILED, result=None, error=error, artifacts=())


def end_of(finished: Finished) -> JobEnd:
    given = finished.result
    return JobEnd(
        STATUS_OF[given.status],
        finished.tries,
        # Escaped, because PostgreSQL takes no half of a surrogate pair.
        result=json.dumps(given.data, ensure_ascii=True) if given.is_success else None,
        error=None if given.error is None else made_storable(mask_text(given.error))[-MOST_ERROR_CHARACTERS:],
        output=made_storable(mask_database_detail(finished.output)),
        artifacts=finished.artifacts,
    )


# The fence decides: if the lease has passed to another runner, the row has a higher one and is not changed.
_RECORD = text(
    f"""
    UPDATE jobs
       SET status = :status, result = CAST(:result AS json), error = :error, output = :output, tries = :tries,
           finished_at = clock_timestamp(), lease_until = NULL
     WHERE id = :id AND fence = :fence AND {one_of("status", RECORDED_FROM)}
    RETURNING name
    """
)
_KEEP_ARTIFACT = text(
    "INSERT INTO job_artifacts (id, job_id, name, size, content) VALUES (:id, :job_id, :name, :size, :content)"
)


def record_end(conn: Connection, job_id: UUID, fence: int, end: JobEnd) -> bool:
    """False if the job is not this runner's any more; then nothing is written."""
    check_transition(JOB_TRANSITIONS, JobStatus.RUNNING, end.status)
    values: dict[str, Any] = {
        "id": job_id,
        "fence": fence,
        "status": end.status.value,
        "result": end.result,
        "error": end.error,
        "output": end.output,
        "tries": end.tries,
    }
    row = conn.execute(_RECORD, values).one_or_none()
    if row is None:
        return False
    for artifact in end.artifacts:
        size = len(artifact.content)
        kept = {"id": uuid7(), "job_id": job_id, "name": artifact.name, "size": size, "content": artifact.content}
        conn.execute(_KEEP_ARTIFACT, kept)
    if end.status is JobStatus.FAILED:
        raise_alarm(conn, row.name)
    return True
