"""Tells the administrators that a job failed, at most once for each script and hour."""

import structlog
from sqlalchemy import Connection, text

from app.delivery import service as delivery
from app.delivery.contract import NewAction
from app.foundation.errors import NotFound

log = structlog.get_logger(__name__)

PLAN = "jobs.failed"

_ADMINS = text(
    """
    SELECT id, to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDDHH24') AS hour FROM users
     WHERE role = 'ADMIN' AND active ORDER BY id
    """
)


def raise_alarm(conn: Connection, job_name: str) -> None:
    """In the transaction that records the failure."""
    people = conn.execute(_ADMINS).all()
    if not people:
        log.warning("job_failure_untold", hint="there is no active administrator: users add --role ADMIN …")
        return
    new = [
        NewAction(
            PLAN,
            person_id=person.id,
            variables={"job": job_name},
            data={"type": "job_failed"},
            evaluation_key=f"{PLAN}:{job_name}:{person.hour}:{person.id}",
        )
        for person in people
    ]
    try:
        delivery.request_actions(conn, new)
    except NotFound as error:
        # The plan is retired.
        log.error("job_failure_untold", code=error.code)
