"""Tells webhooks what a run changed, and the administrators what it held back. In the run's transaction."""

import structlog
from sqlalchemy import Connection, text

from app.delivery import service as delivery
from app.delivery.contract import NewAction
from app.foundation.errors import NotFound
from app.roster.sync.comparison import KindReport

log = structlog.get_logger(__name__)

RUN_PLAN, HELD_BACK_PLAN = "roster.run", "roster.held_back"

_ADMINS = text("SELECT id FROM users WHERE role = 'ADMIN' AND active ORDER BY id")


def announce(conn: Connection, run_id: int, reports: list[KindReport]) -> None:
    new = [_to_webhooks(run_id, report) for report in reports if report.has_changes or report.is_held_back]
    held = [report for report in reports if report.is_held_back]
    if held:
        admins = conn.execute(_ADMINS).scalars().all()
        new += [_to_admin(admin, run_id, report) for report in held for admin in admins]
    try:
        delivery.request_actions(conn, new)
    except NotFound as error:
        # The plan is retired.
        log.error("roster_run_untold", run_id=run_id, code=error.code)


def _to_webhooks(run_id: int, report: KindReport) -> NewAction:
    counts = {name: getattr(report, name) for name in ("added", "modified", "removed", "rows")}
    return NewAction(
        RUN_PLAN,
        variables={"kind": report.kind, "run": run_id, "held": report.is_held_back, **counts},
        data={"type": "roster_run", "kind": report.kind, "run": str(run_id)},
    )


def _to_admin(admin: int, run_id: int, report: KindReport) -> NewAction:
    return NewAction(
        HELD_BACK_PLAN,
        person_id=admin,
        variables={"kind": report.kind, "run": run_id, "count": report.held_back},
        data={"type": "roster_held_back", "kind": report.kind, "run": str(run_id)},
    )
