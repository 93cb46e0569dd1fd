"""Views of dead letters for operators."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, text

from app.delivery.messages.dead_letter_states import DeadLetterStatus
from app.foundation.errors import NotFound
from app.foundation.pages import Page, page_of, parse_uuid
from app.users.contract import StaffScope


@dataclass(frozen=True)
class DeadLetterCriteria:
    """Selects dead letters. A criterion that is None selects all."""

    channel_type: str | None = None
    error_code: str | None = None
    action_plan_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def values(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


EVERY = DeadLetterCriteria()
MATCHES = """
    (CAST(:channel_type AS text) IS NULL OR d.channel_type = :channel_type)
    AND (CAST(:error_code AS text) IS NULL OR d.error_code = :error_code)
    AND (CAST(:action_plan_id AS bigint) IS NULL OR d.action_plan_id = :action_plan_id)
    AND (CAST(:since AS timestamptz) IS NULL OR d.failed_at >= :since)
    AND (CAST(:until AS timestamptz) IS NULL OR d.failed_at < :until)
"""


@dataclass(frozen=True)
class DeadLetterView:
    id: UUID
    status: DeadLetterStatus
    action_plan_id: int | None
    step_order: int | None
    channel_type: str
    error_code: str
    error_message: str
    retryable: bool
    retry_count: int
    failed_at: datetime
    notification_id: UUID | None
    action_id: UUID | None
    trace_id: str | None
    closed_at: datetime | None
    closed_by: int | None


_SHOW = """
    SELECT d.*, a.context ->> 'trace_id' AS trace_id
      FROM dead_letters d LEFT JOIN actions a ON a.id = d.action_id
     WHERE {which}
"""
_GET = _SHOW.format(which="d.id = :id AND {seen}")
_LIST = _SHOW.format(which=f"{{seen}} AND {MATCHES} AND {{status}} AND {{cursor}}") + " ORDER BY d.id DESC LIMIT :limit"


def list_dead_letters(
    conn: Connection,
    scope: StaffScope,
    *,
    status: DeadLetterStatus | None = None,
    which: DeadLetterCriteria = EVERY,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[DeadLetterView]:
    """Newest first."""
    values: dict[str, Any] = which.values | {"limit": limit + 1}
    if cursor is not None:
        values["cursor"] = parse_uuid(cursor)
    # The status is a literal, because the planner uses a partial index only for a value that it can see.
    query = _LIST.format(
        seen=_seen(scope),
        status="true" if status is None else f"d.status = '{status.value}'",
        cursor="true" if cursor is None else "d.id < :cursor",
    )
    return page_of(conn.execute(text(query), values).mappings().all(), limit, _view)


def _seen(scope: StaffScope) -> str:
    return scope.sees("d.institution_id")


def get_dead_letter(conn: Connection, scope: StaffScope, id_: UUID) -> DeadLetterView:
    row = conn.execute(text(_GET.format(seen=_seen(scope))), {"id": id_}).mappings().one_or_none()
    if row is None:
        raise NotFound("There is no such dead letter.")
    return _view(row)


def _view(row: RowMapping) -> DeadLetterView:
    return DeadLetterView(
        id=row["id"],
        status=DeadLetterStatus(row["status"]),
        action_plan_id=row["action_plan_id"],
        step_order=row["step_order"],
        channel_type=row["channel_type"],
        error_code=row["error_code"],
        error_message=row["error_message"],
        retryable=row["retryable"],
        retry_count=row["retry_count"],
        failed_at=row["failed_at"],
        notification_id=row["notification_id"],
        action_id=row["action_id"],
        trace_id=row["trace_id"],
        closed_at=row["closed_at"],
        closed_by=row["closed_by"],
    )


_COUNT_OPEN = """
    SELECT count(*) FROM (SELECT FROM dead_letters d WHERE d.status = 'OPEN' AND {seen} LIMIT :most) AS counted
"""


def count_open_dead_letters(conn: Connection, most: int, scope: StaffScope | None = None) -> int:
    """Counts up to `most`, so that the time does not grow with the number of dead letters. Without a scope, all."""
    statement = _COUNT_OPEN.format(seen="true" if scope is None else _seen(scope))
    return conn.execute(text(statement), {"most": most}).scalar_one()
