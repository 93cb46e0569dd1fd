"""The functions of jobs that other packages may call. Each call runs in the caller's transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from app.jobs.catalogue import CheckedJob
from app.jobs.city.neighbours import HOME, YOURS, Neighbour, others
from app.jobs.city.settle_neighbourhood import settle_neighbourhood
from app.jobs.forget_in_jobs import forget_jobs
from app.jobs.job_store import JobKey, NewJob, RequestedJob, cancel_job, find_requested
from app.jobs.job_store import request_job as insert_job
from app.jobs.models import JobOrigin
from app.jobs.reports.figures_at_hand import figures_of
from app.jobs.views import get_job, list_jobs, read_artifact, read_load, watch_job


@dataclass(frozen=True)
class JobRequest:
    """A person's request to run a script once."""

    name: str
    origin: JobOrigin
    params: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    requested_by: int | None = None
    key: JobKey | None = None
    max_retries: int | None = None
    """None for the script's own."""
    timeout_s: float | None = None


def request_job(conn: Connection, request: JobRequest, checked: CheckedJob, timeout_s: float) -> RequestedJob:
    """`checked` is what the catalogue says about the name and the parameters; `timeout_s` is for a job for which
    neither the request nor the script has one."""
    declared = checked.declaration
    requested = insert_job(
        conn,
        NewJob(
            name=request.name,
            task_type=declared.task_type,
            max_retries=declared.max_retries if request.max_retries is None else request.max_retries,
            timeout_s=request.timeout_s or declared.timeout_s or timeout_s,
            origin=request.origin,
            params=checked.params,
            requested_by=request.requested_by,
            key=request.key,
        ),
    )
    assert requested is not None, "only a job of the schedule can exist already"
    return requested


__all__ = [
    "HOME",
    "YOURS",
    "Neighbour",
    "cancel_job",
    "figures_of",
    "find_requested",
    "forget_jobs",
    "get_job",
    "list_jobs",
    "others",
    "read_artifact",
    "read_load",
    "request_job",
    "settle_neighbourhood",
    "watch_job",
]
