"""What was given up, and why."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, RowMapping, text

from app.db.outbox import Event, put
from app.delivery.messages.error_texts import explain
from app.delivery.messages.values import DeadLetterStatus
from app.foundation.clock import utc_milliseconds
from app.foundation.errors import Conflict, NotFound
from app.foundation.ids import uuid7
from app.foundation.pages import Page, page_of, parse_uuid

TOPIC = "dlq.action"
"""The stream, after the prefix of the settings, that tells other services of dead letters."""
MOST_AT_ONCE = 200
"""Dead letters that one call redrives or discards at most."""


class DeadLetterClosed(Conflict):
    """It was redriven already, or the message arrived in another way."""

    code = "dead_letter_closed"


@dataclass(frozen=True)
class NewDeadLetter:
    channel_type: str
    error_code: str
    retryable: bool
    retry_count: int = 0
    notification_id: UUID | None = None
    action_id: UUID | None = None
    step_order: int | None = None
    id: UUID = field(default_factory=uuid7)
    """Whoever may come twice with the same letter gives it the same id: it is written once."""
    action_plan_id: int | None = None
    """Of a request that never became an action; otherwise the action's is taken."""
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])


_WRITE = text(
    """
    WITH written AS (
        INSERT INTO dead_letters (id, notification_id, action_id, action_plan_id, step_order, channel_type, error_code,
                                  error_message, retryable, retry_count)
        SELECT row.id, row.notification_id, row.action_id, coalesce(a.action_plan_id, row.action_plan_id),
               row.step_order, row.channel_type, row.error_code, row.error_message, row.retryable, row.retry_count
          FROM json_to_recordset(CAST(:rows AS json)) AS row(
               id uuid, notification_id uuid, action_id uuid, action_plan_id bigint, step_order int,
               channel_type text, error_code text, error_message text, retryable boolean, retry_count int)
          LEFT JOIN actions a ON a.id = row.action_id
        ON CONFLICT (id) DO NOTHING
        RETURNING *
    )
    SELECT written.*, a.context FROM written LEFT JOIN actions a ON a.id = written.action_id ORDER BY written.id
    """
)


def write(conn: Connection, letters: Sequence[NewDeadLetter]) -> set[UUID]:
    """The letter, and word of it to other services; says which of them are new."""
    if not letters:
        return set()
    rows = conn.execute(_WRITE, {"rows": json.dumps([_row(letter) for letter in letters])}).all()
    contexts = {letter.id: letter.context for letter in letters}
    put(conn, [dead_letter_event(row, row.context or contexts[row.id]) for row in rows])
    return {row.id for row in rows}


def _row(letter: NewDeadLetter) -> dict[str, Any]:
    return {
        "id": str(letter.id),
        "notification_id": str(letter.notification_id) if letter.notification_id else None,
        "action_id": str(letter.action_id) if letter.action_id else None,
        "action_plan_id": letter.action_plan_id,
        "step_order": letter.step_order,
        "channel_type": letter.channel_type,
        "error_code": letter.error_code,
        "error_message": explain(letter.error_code),
        "retryable": letter.retryable,
        "retry_count": letter.retry_count,
    }


def dead_letter_event(row: Row[Any], context: Mapping[str, Any]) -> Event:
    payload = {
        "dead_letter_id": str(row.id),
        "action_id": str(row.action_id) if row.action_id else None,
        "notification_id": str(row.notification_id) if row.notification_id else None,
        "trace_id": context.get("trace_id"),
        "action_plan_id": row.action_plan_id,
        "step_order": row.step_order,
        "channel_type": row.channel_type,
        "error_code": row.error_code,
        "error_message": row.error_message,
        "retry_count": row.retry_count,
        "failed_at": utc_milliseconds(row.failed_at),
    }
    return Event(TOPIC, payload)


@dataclass(frozen=True)
class Filter:
    """Which letters are meant. What is absent does not matter."""

    channel_type: str | None = None
    error_code: str | None = None
    action_plan_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def values(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


EVERY = Filter()
MEANT = """
    (CAST(:channel_type AS text) IS NULL OR l.channel_type = :channel_type)
    AND (CAST(:error_code AS text) IS NULL OR l.error_code = :error_code)
    AND (CAST(:action_plan_id AS bigint) IS NULL OR l.action_plan_id = :action_plan_id)
    AND (CAST(:since AS timestamptz) IS NULL OR l.failed_at >= :since)
    AND (CAST(:until AS timestamptz) IS NULL OR l.failed_at < :until)
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
    SELECT l.*, a.context ->> 'trace_id' AS trace_id
      FROM dead_letters l LEFT JOIN actions a ON a.id = l.action_id
     WHERE {which}
"""
_GET = text(_SHOW.format(which="l.id = :id"))
_LIST = _SHOW.format(which=f"{MEANT} AND {{status}} AND {{cursor}}") + " ORDER BY l.id DESC LIMIT :limit"


def list_dead_letters(
    conn: Connection,
    *,
    status: DeadLetterStatus | None = None,
    which: Filter = EVERY,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[DeadLetterView]:
    """Newest first."""
    values: dict[str, Any] = which.values | {"limit": limit + 1}
    if cursor is not None:
        values["cursor"] = parse_uuid(cursor)
    # The status is spelled out, because a partial index is of use only where the planner can see the value.
    query = _LIST.format(
        status="true" if status is None else f"l.status = '{status.value}'",
        cursor="true" if cursor is None else "l.id < :cursor",
    )
    return page_of(conn.execute(text(query), values).mappings().all(), limit, _view)


def get_dead_letter(conn: Connection, id_: UUID) -> DeadLetterView:
    row = conn.execute(_GET, {"id": id_}).mappings().one_or_none()
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


_COUNT_OPEN = text("SELECT count(*) FROM (SELECT FROM dead_letters WHERE status = 'OPEN' LIMIT :most) AS counted")


def count_open_dead_letters(conn: Connection, most: int) -> int:
    """No further than anybody wants to know."""
    return conn.execute(_COUNT_OPEN, {"most": most}).scalar_one()


@dataclass(frozen=True)
class Discarded:
    discarded: int
    remaining: int
    """Dead letters that match and are left for the next call."""


# Dead letters are locked in the order of their ids, as everywhere.
_DISCARD = """
    UPDATE dead_letters SET status = 'DISCARDED', closed_at = clock_timestamp(), closed_by = :by
     WHERE status = 'OPEN' AND id IN (
           SELECT l.id FROM dead_letters l WHERE l.status = 'OPEN' AND {which}
            ORDER BY l.id LIMIT :limit FOR NO KEY UPDATE)
"""
_ONE = text(_DISCARD.format(which="l.id = :id"))
_MATCHING = text(_DISCARD.format(which=MEANT))
_LEFT = text(f"SELECT count(*) FROM dead_letters l WHERE l.status = 'OPEN' AND {MEANT}")


def discard_dead_letter(conn: Connection, id_: UUID, by: int | None) -> None:
    """Of two who close a letter at the same time, one is told that it is closed."""
    if conn.execute(_ONE, {"id": id_, "by": by, "limit": 1}).rowcount:
        return
    raise DeadLetterClosed("This dead letter is closed already.", status=get_dead_letter(conn, id_).status.value)


def discard_dead_letters(conn: Connection, which: Filter, by: int | None, limit: int = MOST_AT_ONCE) -> Discarded:
    """The oldest first, no more than `limit`."""
    discarded = conn.execute(_MATCHING, which.values | {"by": by, "limit": limit}).rowcount
    return Discarded(discarded, conn.execute(_LEFT, which.values).scalar_one())
