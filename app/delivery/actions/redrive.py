"""Redrives dead letters: sends the same notification again under the same id, or runs a step again that wrote none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.delivery.actions import service as actions
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letter_states import REDRIVABLE as REDRIVABLE_DEAD_LETTERS
from app.delivery.messages.dead_letter_states import DeadLetterStatus
from app.delivery.messages.dead_letter_views import MATCHES, DeadLetterCriteria, get_dead_letter
from app.delivery.messages.dead_letters import MOST_AT_ONCE, DeadLetterClosed
from app.delivery.messages.message_log import log_redriven
from app.delivery.messages.states import REDRIVABLE
from app.delivery.messages.values import NotificationStatus
from app.foundation.errors import AppError, Conflict
from app.users.contract import StaffScope

MAX_AGE_S = 86_400.0


class DeadLetterTooLate(Conflict):
    """The notification or its action has expired, so it would not be sent."""

    code = "dead_letter_expired"


class NothingToRedrive(Conflict):
    """The dead letter has neither a notification nor an action, or its step has not failed."""

    code = "dead_letter_not_redrivable"


@dataclass(frozen=True)
class Redriven:
    redriven: int
    skipped: int
    """Open dead letters that match the criteria and cannot be redriven."""
    remaining: int
    """Dead letters that are left for the next call."""


_JOINED = """
    dead_letters d LEFT JOIN notifications n ON n.id = d.notification_id LEFT JOIN actions a ON a.id = d.action_id
"""
_OPEN = one_of("d.status", REDRIVABLE_DEAD_LETTERS)
_LATE = """
    (coalesce(n.expires_at <= statement_timestamp(), false)
     OR coalesce(n.created_at <= statement_timestamp() - make_interval(secs => :max_age_s), false)
     OR n.id IS NULL AND coalesce(a.created_at <= statement_timestamp() - make_interval(secs => :max_age_s), false)
     OR coalesce(a.expires_at <= statement_timestamp(), false)
     OR coalesce(a.status = 'CANCELLED', false))
"""
_IS_REDRIVABLE = f"""
    (NOT {_LATE} AND CASE WHEN n.id IS NULL THEN a.id IS NOT NULL ELSE {one_of("n.status", REDRIVABLE)} END)
"""
_FIND_NEXT = text(
    f"""
    SELECT d.id FROM {_JOINED} WHERE {_OPEN} AND {MATCHES} AND {_IS_REDRIVABLE}
     ORDER BY d.id LIMIT :limit
    """
)
_COUNT_REMAINING = text(
    f"""
    SELECT count(*) FILTER (WHERE {_IS_REDRIVABLE}) AS remaining,
           count(*) FILTER (WHERE NOT {_IS_REDRIVABLE}) AS skipped
      FROM {_JOINED} WHERE {_OPEN} AND {MATCHES}
    """
)

# A transition of an action locks the action's row and then closes its dead letters, so actions are locked first here.
_LOCK_ACTIONS = text(
    """
    SELECT FROM actions
     WHERE id IN (SELECT action_id FROM dead_letters WHERE id = ANY(:ids) AND action_id IS NOT NULL)
     ORDER BY id FOR NO KEY UPDATE
    """
)
# Also locks the other dead letters of the same steps, because they may be closed too. The order of ids is the lock
# order of all statements on dead letters.
_LOCK_DEAD_LETTERS = text(
    f"""
    SELECT FROM dead_letters
     WHERE id IN (SELECT unnest(CAST(:ids AS uuid[]))
                   UNION
                  SELECT other.id FROM dead_letters d
                    JOIN dead_letters other ON other.action_id = d.action_id AND other.step_order = d.step_order
                   WHERE d.id = ANY(:ids) AND {one_of("other.status", REDRIVABLE_DEAD_LETTERS)})
     ORDER BY id FOR NO KEY UPDATE
    """
)
# A separate statement, because only a statement that begins after the locks sees the commits of their former holders.
_READ = text(
    f"""
    SELECT d.id, d.status, d.action_id, d.step_order, d.notification_id, n.status AS notification_status,
           {_LATE} AS late
      FROM {_JOINED} WHERE d.id = ANY(:ids) ORDER BY d.id
    """
)
_SEND_AGAIN = text(
    f"""
    UPDATE notifications
       SET status = 'ACCEPTED', due_at = clock_timestamp(), finished_at = NULL, error_code = NULL,
           failures = 0, fresh_from = attempts
     WHERE id = ANY(:ids) AND {one_of("status", REDRIVABLE)}
    """
)


def redrive_dead_letter(
    conn: Connection, scope: StaffScope, id_: UUID, by: int | None, max_age_s: float = MAX_AGE_S
) -> None:
    """If two callers redrive the same dead letter, the second one gets `DeadLetterClosed`."""
    get_dead_letter(conn, scope, id_)
    refusal = _redrive(conn, [id_], by, max_age_s)[id_]
    if refusal is not None:
        raise refusal


def redrive_dead_letters(
    conn: Connection, which: DeadLetterCriteria, by: int | None, limit: int = MOST_AT_ONCE, max_age_s: float = MAX_AGE_S
) -> Redriven:
    """Redrives the oldest first, at most `limit`. To redrive all, the caller repeats this while some remain."""
    values = which.values | {"max_age_s": max_age_s}
    ids = conn.execute(_FIND_NEXT, values | {"limit": limit}).scalars().all()
    refusals = _redrive(conn, ids, by, max_age_s)
    left = conn.execute(_COUNT_REMAINING, values).one()
    return Redriven(sum(refusal is None for refusal in refusals.values()), left.skipped, left.remaining)


def _redrive(conn: Connection, ids: Sequence[UUID], by: int | None, max_age_s: float) -> dict[UUID, AppError | None]:
    """For each dead letter, the reason why it was not redriven, or None if it was."""
    if not ids:
        return {}
    conn.execute(_LOCK_ACTIONS, {"ids": ids})
    conn.execute(_LOCK_DEAD_LETTERS, {"ids": ids})
    rows = conn.execute(_READ, {"ids": ids, "max_age_s": max_age_s}).all()
    refusals = {row.id: _refusal(row) for row in rows}
    chosen = [row for row in rows if refusals[row.id] is None]
    conn.execute(_SEND_AGAIN, {"ids": [row.notification_id for row in chosen if row.notification_id is not None]})
    for row in chosen:
        if row.action_id is not None and row.step_order is not None:
            refusals[row.id] = _reopen(conn, row, by)
    redriven = [row for row in chosen if refusals[row.id] is None]
    dead_letters.close_redriven(conn, [row.id for row in redriven], by)
    for row in redriven:
        log_redriven(row.id, row.notification_id, row.action_id)
    return refusals


def _refusal(row: Any) -> AppError | None:
    has_notification = row.notification_id is not None
    if DeadLetterStatus(row.status) not in REDRIVABLE_DEAD_LETTERS or (
        has_notification and NotificationStatus(row.notification_status) not in REDRIVABLE
    ):
        return DeadLetterClosed("This dead letter is closed already.", status=row.status)
    if row.late:
        return DeadLetterTooLate("The notification or its action has expired meanwhile, so it would not be sent.")
    if not has_notification and row.action_id is None:
        return NothingToRedrive("There is neither a message nor an action that could be tried again.")
    return None


def _reopen(conn: Connection, row: Any, by: int | None) -> AppError | None:
    """Reopens the step of a dead letter. A dead letter with a notification is redriven whatever the state of its step;
    without a notification, the step has to begin anew."""
    is_reopened = actions.reopen(conn, row.action_id, row.step_order)
    if row.notification_id is not None:
        return None
    if not is_reopened:
        return NothingToRedrive("The step of this dead letter has not failed: it goes on by itself.")
    dead_letters.close_redriven_step(conn, row.action_id, row.step_order, by)
    return None
