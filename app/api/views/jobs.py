"""Jobs: scripts that administrators run."""

from uuid import UUID

from app.api.access import ADMIN
from app.api.errors import FieldError, InvalidInput
from app.api.idempotency import key_header, read_key
from app.api.load import Draining, refuse_while_draining
from app.api.routing import Call, Reply, Routes
from app.api.schemas import PageJson
from app.api.schemas_jobs import (
    ArtifactName,
    JobInFullJson,
    JobJson,
    JobsQuery,
    NewJobBody,
    ScriptJson,
    ScriptsJson,
)
from app.api.validation import field_code
from app.foundation.errors import IdempotencyKeyReused, InvalidValue
from app.jobs import service as jobs
from app.jobs.contract import (
    ArtifactNotFound,
    CatalogueBusy,
    CatalogueEntry,
    JobEnded,
    JobKey,
    JobNotFound,
    JobOrigin,
    JobRequest,
    RequestedJob,
    ScriptBroken,
    ScriptFolderGone,
    ScriptUnknown,
    WrongParams,
    digest_of,
)

routes = Routes("Jobs")


@routes.add(
    "POST",
    "/api/v1/jobs",
    who=ADMIN,
    answers={202: JobInFullJson, 200: JobInFullJson},
    headers=(key_header("A request that its caller repeats with the same key returns the same job."),),
    errors=(InvalidValue, IdempotencyKeyReused, Draining, CatalogueBusy),
)
def request_job(call: Call, body: NewJobBody) -> Reply:
    """Run a script.

    202 once the job is committed; `GET /api/v1/jobs/{id}` shows its progress and its result. A repeated
    `Idempotency-Key` is answered with 200 and the job of the first request.
    """
    refuse_while_draining()
    text = read_key(call)
    key = JobKey(call.caller.id, text, digest_of(body.model_dump(mode="json"))) if text else None
    requested = _requested_before(call, key) or _request(call, body, key)
    with call.services.db.reading() as conn:
        shown = JobInFullJson.model_validate(jobs.get_job(conn, requested.id))
    return Reply(shown, 202 if requested.is_new else 200, {"Location": f"/api/v1/jobs/{requested.id}"})


def _requested_before(call: Call, key: JobKey | None) -> RequestedJob | None:
    """Without a look at the script, which may have been removed since."""
    if key is None:
        return None
    with call.services.db.reading() as conn:
        return jobs.find_requested(conn, key)


def _request(call: Call, body: NewJobBody, key: JobKey | None) -> RequestedJob:
    try:
        checked = call.site.catalogue.check(body.name, body.params)
    except ScriptUnknown:
        raise InvalidValue("name", "is not the name of a script; /api/v1/jobs/catalogue lists them") from None
    except ScriptBroken as error:
        raise InvalidValue("name", f"is the name of a script that cannot be used: {error.message}") from None
    except WrongParams as error:
        raise InvalidInput([_field_error(one.field, one.message, one.kind) for one in error.problems]) from None
    request = JobRequest(
        body.name,
        JobOrigin.HTTP,
        requested_by=call.caller.id,
        key=key,
        max_retries=body.max_retries,
        timeout_s=body.timeout_s,
    )
    with call.services.db.transaction() as conn:
        return jobs.request_job(conn, request, checked, call.services.settings.jobs_timeout_s)


def _field_error(field: str, message: str, kind: str) -> FieldError:
    name = f"params.{field}" if field else "params"
    if not all(part.isidentifier() or part.isdigit() for part in name.split(".")):
        # The caller may send any text as the name of a parameter.
        name = "(unknown)"
    return FieldError(name, message, field_code(kind))


@routes.add("GET", "/api/v1/jobs", who=ADMIN, answers={200: PageJson[JobJson]}, errors=(InvalidValue,))
def list_jobs(call: Call, query: JobsQuery) -> PageJson[JobJson]:
    """List jobs, newest first."""
    with call.services.db.reading() as conn:
        page = jobs.list_jobs(conn, name=query.name, status=query.status, cursor=query.cursor, limit=query.limit)
    return PageJson[JobJson].model_validate(page)


@routes.add(
    "GET", "/api/v1/jobs/catalogue", who=ADMIN, answers={200: ScriptsJson}, errors=(CatalogueBusy, ScriptFolderGone)
)
def list_scripts(call: Call) -> ScriptsJson:
    """List the scripts that can be run, with their parameters.

    A script in the operator's own folder that cannot be used is listed with the reason.
    """
    return ScriptsJson(items=[_shown(entry) for entry in call.site.catalogue.entries()])


def _shown(entry: CatalogueEntry) -> ScriptJson:
    declared = entry.declaration
    return ScriptJson(
        name=entry.name,
        is_shipped=entry.is_shipped,
        error=entry.error,
        summary=declared and declared.summary,
        description=declared and declared.description,
        task_type=declared and declared.task_type,
        max_retries=declared and declared.max_retries,
        timeout_s=declared and declared.timeout_s,
        parameters=declared and dict(declared.parameters),
    )


@routes.add("GET", "/api/v1/jobs/{jobId}", who=ADMIN, answers={200: JobInFullJson}, errors=(JobNotFound,))
def get_job(call: Call, job_id: UUID) -> JobInFullJson:
    """Show one job with its progress, its result, what it printed and the list of its artifacts."""
    with call.services.db.reading() as conn:
        return JobInFullJson.model_validate(jobs.get_job(conn, job_id))


@routes.add(
    "PUT", "/api/v1/jobs/{jobId}/cancel", who=ADMIN, answers={200: JobInFullJson}, errors=(JobNotFound, JobEnded)
)
def cancel_job(call: Call, job_id: UUID) -> JobInFullJson:
    """Cancel a job.

    A job that waits is cancelled at once. A script that runs is asked to stop, and is killed if it does not stop in
    time; the job is CANCELLED then. A repeat is harmless.
    """
    with call.services.db.transaction() as conn:
        jobs.cancel_job(conn, job_id)
        return JobInFullJson.model_validate(jobs.get_job(conn, job_id))


@routes.add(
    "GET",
    "/api/v1/jobs/{jobId}/artifacts/{artifactName}",
    who=ADMIN,
    answers={200: None},
    content_type="application/octet-stream",
    errors=(ArtifactNotFound,),
)
def get_artifact(call: Call, job_id: UUID, artifact_name: ArtifactName) -> Reply:
    """Download one artifact of a job."""
    with call.services.db.reading() as conn:
        content = jobs.read_artifact(conn, job_id, artifact_name)
    # The name has no quotes and no letters beyond ASCII.
    return Reply(content, headers={"Content-Disposition": f'attachment; filename="{artifact_name}"'})
