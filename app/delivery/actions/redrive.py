"""Gives what was given up another try: the same message under the same id, or the step that never became one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.wake import WAKE_CHANNEL
from app.delivery.actions import service as actions
from app.delivery.messages.dead_letters import MEANT, MOST_AT_ONCE, DeadLetterClosed, Filter
from app.delivery.messages.states import REDRIVABLE, check_transition, sql_in
from app.delivery.messages.values import DeadLetterStatus, NotificationStatus
from app.foundation.errors import AppError, Conflict, NotFound

S = NotificationStatus
MAX_AGE_S = 86_400.0


class DeadLetterTooLate(Conflict):
    """What was to be told has lost its meaning, and would not be sent."""

    code = "dead_letter_expired"


class NothingToRedrive(Conflict):
    """Nothing can be tried again: it was no action at all, or its step goes on by itself."""

    code = "dead_letter_not_redrivable"


@dataclass(frozen=True)
class Redriven:
    redriven: int
    skipped: int
    """Open letters among those meant that another try is of no use to."""
    remaining: int
    """Those that wait for another call."""


_JOINED = """
    dead_letters l LEFT JOIN notifications n ON n.id = l.notification_id LEFT JOIN actions a ON a.id = l.action_id
"""
_LATE = """
    (coalesce(n.expires_at <= statement_timestamp(), false)
     OR coalesce(n.created_at <= statement_timestamp() - make_interval(secs => :max_age_s), false)
     OR coalesce(a.expires_at <= statement_timestamp(), false)
     OR coalesce(a.status = 'CANCELLED', false))
"""
_WORTH_A_TRY = f"""
    (NOT {_LATE} AND CASE WHEN n.id IS NULL THEN a.id IS NOT NULL ELSE n.status = 'DEAD' END)
"""
_NEXT = text(
    f"""
    SELECT l.id FROM {_JOINED} WHERE l.status = 'OPEN' AND {MEANT} AND {_WORTH_A_TRY}
     ORDER BY l.id LIMIT :limit
    """
)
_LEFT = text(
    f"""
    SELECT count(*) FILTER (WHERE {_WORTH_A_TRY}) AS remaining, count(*) FILTER (WHERE NOT {_WORTH_A_TRY}) AS skipped
      FROM {_JOINED} WHERE l.status = 'OPEN' AND {MEANT}
    """
)

# Whoever carries out an action holds its row and closes letters of it then, so here too actions are held first.
_HOLD_ACTIONS = text(
    """
    SELECT FROM actions
     WHERE id IN (SELECT action_id FROM dead_letters WHERE id = ANY(:ids) AND action_id IS NOT NULL)
     ORDER BY id FOR NO KEY UPDATE
    """
)
# With the others of their steps, which may be closed with them: whoever closes several holds them by id.
_HOLD_LETTERS = text(
    """
    SELECT FROM dead_letters
     WHERE id IN (SELECT unnest(CAST(:ids AS uuid[]))
                   UNION
                  SELECT other.id FROM dead_letters l
                    JOIN dead_letters other ON other.action_id = l.action_id AND other.step_order = l.step_order
                   WHERE l.id = ANY(:ids) AND other.status = 'OPEN')
     ORDER BY id FOR NO KEY UPDATE
    """
)
# In a statement of its own, because only that sees what others have done who held them before.
_LOOK = text(
    f"""
    SELECT l.id, l.status, l.action_id, l.step_order, l.notification_id, n.status AS notification_status,
           {_LATE} AS late
      FROM {_JOINED} WHERE l.id = ANY(:ids) ORDER BY l.id
    """
)
_TRY_ANEW = text(
    f"""
    UPDATE notifications
       SET status = 'ACCEPTED', due_at = clock_timestamp(), finished_at = NULL, error_code = NULL,
           failures = 0, fresh_from = attempts
     WHERE id = ANY(:ids) AND {sql_in("status", REDRIVABLE)}
    """
)
_CLOSE = text(
    """
    WITH closed AS (
        UPDATE dead_letters SET status = 'REDRIVEN', closed_at = clock_timestamp(), closed_by = :by
         WHERE id = ANY(:ids)
    )
    SELECT pg_notify(:channel, '')
    """
)
# A step that begins anew makes new messages for everybody, so that the old ones must not be sent besides.
_CLOSE_WITH_STEP = text(
    """
    UPDATE dead_letters SET status = 'REDRIVEN', closed_at = clock_timestamp(), closed_by = :by
     WHERE action_id = :action_id AND step_order = :step_order AND status = 'OPEN'
    """
)


def redrive_dead_letter(conn: Connection, id_: UUID, by: int | None, max_age_s: float = MAX_AGE_S) -> None:
    """Of two who do it at the same time, one is told that the letter is closed."""
    refusals = _redrive(conn, [id_], by, max_age_s)
    if id_ not in refusals:
        raise NotFound("There is no such dead letter.")
    refusal = refusals[id_]
    if refusal is not None:
        raise refusal


def redrive_dead_letters(
    conn: Connection, which: Filter, by: int | None, limit: int = MOST_AT_ONCE, max_age_s: float = MAX_AGE_S
) -> Redriven:
    """The oldest first, no more than `limit`: whoever wants them all calls again while some remain."""
    values = which.values | {"max_age_s": max_age_s}
    ids = conn.execute(_NEXT, values | {"limit": limit}).scalars().all()
    refusals = _redrive(conn, ids, by, max_age_s)
    left = conn.execute(_LEFT, values).one()
    return Redriven(sum(refusal is None for refusal in refusals.values()), left.skipped, left.remaining)


def _redrive(conn: Connection, ids: Sequence[UUID], by: int | None, max_age_s: float) -> dict[UUID, AppError | None]:
    """What keeps each letter from being redriven; None where nothing did."""
    if not ids:
        return {}
    conn.execute(_HOLD_ACTIONS, {"ids": ids})
    conn.execute(_HOLD_LETTERS, {"ids": ids})
    rows = conn.execute(_LOOK, {"ids": ids, "max_age_s": max_age_s}).all()
    refusals = {row.id: _refusal(row) for row in rows}
    chosen = [row for row in rows if refusals[row.id] is None]
    conn.execute(_TRY_ANEW, {"ids": [row.notification_id for row in chosen if row.notification_id is not None]})
    for row in chosen:
        if row.action_id is not None and row.step_order is not None:
            refusals[row.id] = _reopen(conn, row, by)
    closed = [row.id for row in chosen if refusals[row.id] is None]
    conn.execute(_CLOSE, {"ids": closed, "by": by, "channel": WAKE_CHANNEL})
    return refusals


def _refusal(row: Any) -> AppError | None:
    is_message = row.notification_id is not None
    if row.status != DeadLetterStatus.OPEN or (is_message and row.notification_status != S.DEAD):
        return DeadLetterClosed("This dead letter is closed already.", status=row.status)
    if row.late:
        return DeadLetterTooLate("What was to be told has lost its meaning meanwhile, and would not be sent.")
    if is_message:
        check_transition(S(row.notification_status), S.ACCEPTED)
    elif row.action_id is None:
        return NothingToRedrive("There is neither a message nor an action that could be tried again.")
    return None


def _reopen(conn: Connection, row: Any, by: int | None) -> AppError | None:
    """A message is sent whatever its step has come to meanwhile; without one, it is for the step to begin anew."""
    is_reopened = actions.reopen(conn, row.action_id, row.step_order)
    if row.notification_id is not None:
        return None
    if not is_reopened:
        return NothingToRedrive("The step of this letter is not one that failed: it goes on by itself.")
    conn.execute(_CLOSE_WITH_STEP, {"by": by, "action_id": row.action_id, "step_order": row.step_order})
    return None
