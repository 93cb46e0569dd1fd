"""Tells webhooks what a run changed, and the administrators what it held back or refused. In the run's transaction."""

from collections.abc import Mapping, Sequence

import structlog
from sqlalchemy import Connection, text

from app.delivery import service as delivery
from app.delivery.contract import NewAction
from app.foundation.errors import NotFound
from app.roster.sync.comparison import KindReport

log = structlog.get_logger(__name__)

RUN_PLAN, HELD_BACK_PLAN, REFUSED_PLAN = "roster.run", "roster.held_back", "roster.refused"

_ADMINS = text("SELECT id FROM users WHERE role = 'ADMIN' AND active ORDER BY id")


def announce(conn: Connection, run_id: int, reports: Sequence[KindReport], refused: Mapping[str, str]) -> None:
    """`refused` has the reason by source."""
    new = [_to_webhooks(run_id, report) for report in reports if report.has_changes or report.is_held_back]
    held = [report for report in reports if report.is_held_back]
    if held or refused:
        for admin in conn.execute(_ADMINS).scalars().all():
            new += [_held_back(admin, run_id, report) for report in held]
            new += [_refused(admin, run_id, source, reason) for source, reason in refused.items()]
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


def _held_back(admin: int, run_id: int, report: KindReport) -> NewAction:
    return NewAction(
        HELD_BACK_PLAN,
        person_id=admin,
        variables={"kind": report.kind, "run": run_id, "count": report.held_back},
        data={"type": "roster_held_back", "kind": report.kind, "run": str(run_id)},
    )


def _refused(admin: int, run_id: int, source: str, reason: str) -> NewAction:
    return NewAction(
        REFUSED_PLAN,
        person_id=admin,
        variables={"source": source, "run": run_id, "reason": reason},
        data={"type": "roster_refused", "source": source, "run": str(run_id)},
    )
