"""Writes dead letters, and closes them: after a redrive, after another channel reached the recipient, because an
operator discards them, or because their message has lost its meaning."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from app.db.outbox import Event, put
from app.db.schema import one_of
from app.db.wake import WAKE_CHANNEL
from app.delivery.messages.dead_letter_states import COVERABLE, DISCARDABLE, EXPIRABLE, REDRIVABLE
from app.delivery.messages.dead_letter_views import MATCHES, DeadLetterCriteria, get_dead_letter
from app.delivery.messages.error_texts import explain
from app.foundation.clock import utc_milliseconds
from app.foundation.errors import Conflict
from app.foundation.ids import earliest_id, uuid7
from app.users.contract import StaffScope

TOPIC = "dlq.action"
"""The stream for events about dead letters, without the prefix from the settings."""
MOST_AT_ONCE = 200
"""The highest number of dead letters that one call redrives or discards."""


class DeadLetterClosed(Conflict):
    """The dead letter is closed: it was redriven or discarded, or the message arrived in another way."""

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
    """A caller that may repeat a dead letter gives it the same id, so that it is written once."""
    action_plan_id: int | None = None
    """The plan of a request that never became an action. Otherwise the plan is that of the action."""
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    detail: str = ""
    """What is wrong with this one, in a sentence that names fields and never their values."""
    expires_at: datetime | None = None
    """The message has no meaning from then on. The end of the action counts, too."""

    @property
    def error_message(self) -> str:
        return f"{explain(self.error_code)} {self.detail}".rstrip()


_WRITE = text(
    """
    WITH written AS (
        INSERT INTO dead_letters (id, notification_id, action_id, action_plan_id, step_order, institution_id,
                                  channel_type, error_code, error_message, retryable, retry_count, expires_at)
        SELECT row.id, row.notification_id, row.action_id, coalesce(a.action_plan_id, row.action_plan_id),
               row.step_order, coalesce(a.institution_id, n.institution_id), row.channel_type,
               row.error_code, row.error_message, row.retryable, row.retry_count, least(row.expires_at, a.expires_at)
          FROM json_to_recordset(CAST(:rows AS json)) AS row(
               id uuid, notification_id uuid, action_id uuid, action_plan_id bigint, step_order int,
               channel_type text, error_code text, error_message text, retryable boolean, retry_count int,
               expires_at timestamptz)
          LEFT JOIN actions a ON a.id = row.action_id
          LEFT JOIN notifications n ON n.id = row.notification_id
        ON CONFLICT (id) DO NOTHING
        RETURNING *
    )
    SELECT written.*, a.context FROM written LEFT JOIN actions a ON a.id = written.action_id ORDER BY written.id
    """
)


def write(conn: Connection, new: Sequence[NewDeadLetter]) -> set[UUID]:
    """Writes the dead letters that do not exist yet, and an event about each; returns their ids."""
    if not new:
        return set()
    rows = conn.execute(_WRITE, {"rows": json.dumps([_row(dead_letter) for dead_letter in new])}).all()
    contexts = {dead_letter.id: dead_letter.context for dead_letter in new}
    put(conn, [dead_letter_event(row, row.context or contexts[row.id]) for row in rows])
    return {row.id for row in rows}


def _row(new: NewDeadLetter) -> dict[str, Any]:
    return {
        "id": str(new.id),
        "notification_id": str(new.notification_id) if new.notification_id else None,
        "action_id": str(new.action_id) if new.action_id else None,
        "action_plan_id": new.action_plan_id,
        "step_order": new.step_order,
        "channel_type": new.channel_type,
        "error_code": new.error_code,
        "error_message": new.error_message,
        "retryable": new.retryable,
        "retry_count": new.retry_count,
        "expires_at": new.expires_at.isoformat() if new.expires_at else None,
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


# Every statement that closes several dead letters locks them in the order of their ids, to avoid deadlocks.
_COVER = text(
    f"""
    WITH held AS (
        SELECT d.id FROM dead_letters d
          JOIN json_to_recordset(CAST(:rows AS json)) AS row(action_id uuid, step_order int)
            ON d.action_id = row.action_id AND d.step_order = row.step_order
         WHERE {one_of("d.status", COVERABLE)} ORDER BY d.id FOR NO KEY UPDATE OF d
    )
    UPDATE dead_letters d SET status = 'COVERED', closed_at = clock_timestamp()
      FROM held WHERE d.id = held.id AND {one_of("d.status", COVERABLE)}
    """
)
_EXPIRE_OF_ACTIONS = text(
    f"""
    WITH held AS (
        SELECT d.id FROM dead_letters d
         WHERE d.action_id = ANY(:ids) AND {one_of("d.status", EXPIRABLE)} ORDER BY d.id FOR NO KEY UPDATE
    )
    UPDATE dead_letters d SET status = 'EXPIRED', closed_at = clock_timestamp()
      FROM held WHERE d.id = held.id AND {one_of("d.status", EXPIRABLE)}
    """
)
# Each of the three conditions has an index of the open dead letters. Ids increase with time. A step without a
# notification is as old as its dead letter. A request that never became an action stays until somebody looks at it.
# Rows that somebody is redriving or discarding are skipped.
_EXPIRE_LATE = text(
    f"""
    WITH held AS MATERIALIZED (
        SELECT d.id FROM dead_letters d
         WHERE {one_of("d.status", EXPIRABLE)}
           AND (d.expires_at <= statement_timestamp() OR d.notification_id < :oldest
                OR d.id < :oldest AND d.notification_id IS NULL AND d.action_id IS NOT NULL)
         ORDER BY d.id LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE dead_letters d SET status = 'EXPIRED', closed_at = clock_timestamp()
      FROM held WHERE d.id = held.id AND {one_of("d.status", EXPIRABLE)}
    """
)
# The callers of these two statements have locked the dead letters.
_CLOSE_REDRIVEN = text(
    f"""
    WITH closed AS (
        UPDATE dead_letters SET status = 'REDRIVEN', closed_at = clock_timestamp(), closed_by = :by
         WHERE id = ANY(:ids) AND {one_of("status", REDRIVABLE)}
    )
    SELECT pg_notify(:channel, '')
    """
)
_CLOSE_REDRIVEN_STEP = text(
    f"""
    UPDATE dead_letters SET status = 'REDRIVEN', closed_at = clock_timestamp(), closed_by = :by
     WHERE action_id = :action_id AND step_order = :step_order AND {one_of("status", REDRIVABLE)}
    """
)


def cover(conn: Connection, steps: Sequence[tuple[UUID, int]]) -> None:
    """Closes the dead letters of steps, given as action id and step order, whose recipient was reached another way."""
    if steps:
        rows = [{"action_id": str(action_id), "step_order": step_order} for action_id, step_order in steps]
        conn.execute(_COVER, {"rows": json.dumps(rows)})


def expire_of_actions(conn: Connection, action_ids: Sequence[UUID]) -> None:
    """Closes all dead letters of actions that were cancelled."""
    conn.execute(_EXPIRE_OF_ACTIONS, {"ids": action_ids})


def expire_late(conn: Connection, now: datetime, max_age_s: float, limit: int) -> int:
    """Closes the dead letters whose message would come too late if it was redriven, at most `limit`, and returns their
    number."""
    oldest = earliest_id(now - timedelta(seconds=max_age_s))
    return conn.execute(_EXPIRE_LATE, {"oldest": oldest, "limit": limit}).rowcount


def close_redriven(conn: Connection, ids: Sequence[UUID], by: int | None) -> None:
    """Closes the dead letters, and wakes the workers that send their notifications or advance their actions again."""
    conn.execute(_CLOSE_REDRIVEN, {"ids": ids, "by": by, "channel": WAKE_CHANNEL})


def close_redriven_step(conn: Connection, action_id: UUID, step_order: int, by: int | None) -> None:
    """Closes all dead letters of a step that begins anew. The step writes new notifications, so the old ones must not
    be redriven too."""
    conn.execute(_CLOSE_REDRIVEN_STEP, {"by": by, "action_id": action_id, "step_order": step_order})


@dataclass(frozen=True)
class Discarded:
    discarded: int
    remaining: int
    """Dead letters that match the criteria and are left for the next call."""


# ARRAY runs the subquery once. With IN, a nested loop could run it for every row, each time with a new LIMIT.
_DISCARD = f"""
    UPDATE dead_letters SET status = 'DISCARDED', closed_at = clock_timestamp(), closed_by = :by
     WHERE {one_of("status", DISCARDABLE)} AND id = ANY(ARRAY(
           SELECT d.id FROM dead_letters d WHERE {one_of("d.status", DISCARDABLE)} AND {{which}}
            ORDER BY d.id LIMIT :limit FOR NO KEY UPDATE))
"""
_DISCARD_ONE = text(_DISCARD.format(which="d.id = :id"))
_DISCARD_MATCHING = text(_DISCARD.format(which=MATCHES))
_DISCARD_ABOUT = text(
    _DISCARD.format(which="(d.notification_id = ANY(:notification_ids) OR d.action_id = ANY(:action_ids))")
)
_REMAINING = text(f"SELECT count(*) FROM dead_letters d WHERE {one_of('d.status', DISCARDABLE)} AND {MATCHES}")


def discard_dead_letter(conn: Connection, scope: StaffScope, id_: UUID, by: int | None) -> None:
    """If two callers close the same dead letter, the second one gets `DeadLetterClosed`."""
    get_dead_letter(conn, scope, id_)
    if conn.execute(_DISCARD_ONE, {"id": id_, "by": by, "limit": 1}).rowcount:
        return
    raise DeadLetterClosed("This dead letter is closed already.", status=get_dead_letter(conn, scope, id_).status.value)


def discard_dead_letters(
    conn: Connection, which: DeadLetterCriteria, by: int | None, limit: int = MOST_AT_ONCE
) -> Discarded:
    """Discards the oldest first, at most `limit`."""
    discarded = conn.execute(_DISCARD_MATCHING, which.values | {"by": by, "limit": limit}).rowcount
    return Discarded(discarded, conn.execute(_REMAINING, which.values).scalar_one())


def discard_all_about(conn: Connection, notification_ids: Sequence[UUID], action_ids: Sequence[UUID]) -> int:
    """Discards all dead letters of these notifications and actions, because nobody wants them any more."""
    values = {"notification_ids": notification_ids, "action_ids": action_ids, "by": None, "limit": None}
    return conn.execute(_DISCARD_ABOUT, values).rowcount
