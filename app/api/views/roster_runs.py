"""The runs that take the lists of students and elders."""

from app.api.access import ADMIN
from app.api.routing import Call, Routes
from app.api.schemas import PageJson, PageQuery
from app.api.schemas_roster import ApprovedJson, RosterRunJson
from app.api.validation import PathIdentifier
from app.foundation.errors import InvalidValue
from app.roster import service as roster
from app.roster.contract import NothingHeldBack, RunNotFound

routes = Routes("Roster")


@routes.add("GET", "/api/v1/roster/runs", who=ADMIN, answers={200: PageJson[RosterRunJson]}, errors=(InvalidValue,))
def list_runs(call: Call, query: PageQuery) -> PageJson[RosterRunJson]:
    """List runs, newest first."""
    with call.services.db.reading() as conn:
        page = roster.list_runs(conn, cursor=query.cursor, limit=query.limit)
    return PageJson[RosterRunJson].model_validate(page)


@routes.add("GET", "/api/v1/roster/runs/{runId}", who=ADMIN, answers={200: RosterRunJson}, errors=(RunNotFound,))
def get_run(call: Call, run_id: PathIdentifier) -> RosterRunJson:
    """Show one run with its report."""
    with call.services.db.reading() as conn:
        return RosterRunJson.model_validate(roster.get_run(conn, run_id))


@routes.add(
    "POST",
    "/api/v1/roster/runs/{runId}/approve",
    who=ADMIN,
    answers={200: ApprovedJson},
    errors=(RunNotFound, NothingHeldBack),
)
def approve_run(call: Call, run_id: PathIdentifier) -> ApprovedJson:
    """Let the next run apply what this one held back: once, and only if the lists are still the same."""
    with call.services.db.transaction() as conn:
        return ApprovedJson(kinds=roster.approve_run(conn, run_id, call.caller.id))
