"""HTTP models of jobs, under /api/v1."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field, StringConstraints

from app.api.schemas import PageQuery
from app.api.validation import Identifier, Instant, Request, Response, whole
from app.jobs.contract import ARTIFACT_NAME, MOST_RETRIES, JobOrigin, JobStatus, TaskType

JobName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
ArtifactName = Annotated[str, StringConstraints(pattern=f"^{ARTIFACT_NAME.pattern}$")]
Retries = Annotated[int, Field(ge=0, le=MOST_RETRIES), BeforeValidator(whole)]
TimeoutS = Annotated[float, Field(gt=0, le=7 * 86_400)]


class NewJobBody(Request):
    name: JobName
    params: dict[str, Any] = Field(default_factory=dict[str, Any], description="As the catalogue describes them.")
    max_retries: Retries | None = Field(None, description="The script's own if absent.")
    timeout_s: TimeoutS | None = Field(None, description="Longest time of one try; the script's own if absent.")


class JobsQuery(PageQuery):
    name: JobName | None = None
    status: JobStatus | None = None


class JobProgressJson(Response):
    done: int
    total: int | None
    note: str


class ArtifactJson(Response):
    name: str
    size: int = Field(description="In bytes.")


class JobJson(Response):
    id: UUID
    name: str
    params: dict[str, Any]
    task_type: TaskType
    status: JobStatus
    origin: JobOrigin
    requested_by: Identifier | None
    schedule_name: str | None
    scheduled_for: Instant | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    cancel_requested_at: Instant | None
    progress: JobProgressJson | None
    error: str | None


class JobInFullJson(JobJson):
    result: Any
    output: str = Field(description="The end of what the script printed, at most 64 KB.")
    claims: int = Field(description="How often a process has begun it; above 1 if processes died.")
    tries: int
    max_retries: int
    timeout_s: float | None
    artifacts: list[ArtifactJson]


class ScriptJson(Response):
    name: str
    is_shipped: bool
    error: str | None = Field(description="Why the script cannot be used; null if it can.")
    summary: str | None
    description: str | None
    task_type: TaskType | None
    max_retries: int | None
    timeout_s: float | None = Field(description="Null leaves it to the setting JOBS_TIMEOUT_S.")
    parameters: dict[str, Any] | None = Field(description="JSON schema of `params`.")


class ScriptsJson(Response):
    items: list[ScriptJson]
