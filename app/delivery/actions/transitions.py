"""Writes the transitions of a batch of actions: the rows of the actions and the effects of the decisions. The caller
owns the transaction."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from pydantic_core import to_json
from sqlalchemy import Connection, TextClause, text

from app.db import outbox
from app.db.plain_statements import execute_later
from app.db.schema import may_become, one_of
from app.db.wake import WAKE_CHANNEL
from app.delivery.actions.context import Action
from app.delivery.actions.results import result_event
from app.delivery.actions.run import Decision
from app.delivery.actions.states import ACTION_TRANSITIONS, ActionStatus
from app.delivery.actions.step_codec import encode
from app.delivery.actions.steps import Cover, Effect, GiveUp, Send, Withdraw
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letters import NewDeadLetter
from app.delivery.messages.message_log import log_cancelled, note_accepted
from app.delivery.messages.states import CANCELLABLE, LIVE
from app.delivery.messages.values import ACTION_TOPIC, NotificationType
from app.foundation.state_machine import IllegalTransition, check_transition

Kind = TypeVar("Kind", bound=Effect)


@dataclass(frozen=True)
class ActionTransition:
    """An action as it was read or requested, and the decision about it."""

    action: Action
    decision: Decision
    at: datetime
    is_new: bool = False
    """The action has no row yet."""


# The end of the statement that writes actions, new ones or known ones: their notifications, and the announcements. One
# statement writes all of this, because every offer runs it and it has to be fast.
_SEND = """
    sent AS (
        INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority,
                                   metadata, task_id, institution_id, expires_at, action_id, step_order, channel_id)
        SELECT id, notification_type, recipient, recipient_user_id, subject, body, priority, metadata, task_id,
               institution_id, expires_at, action_id, step_order, channel_id
          FROM json_to_recordset(CAST(:notifications AS json)) AS row(
               id uuid, notification_type text, recipient text, recipient_user_id bigint, subject text, body text,
               priority text, metadata jsonb, task_id uuid, institution_id bigint, expires_at timestamptz,
               action_id uuid, step_order int, channel_id bigint)
         WHERE action_id IN (SELECT id FROM written)
        RETURNING notification_type
    ), announced AS (
        SELECT notification_type AS topic FROM sent UNION
        SELECT :topic FROM written WHERE due_at <= clock_timestamp()
    )
    SELECT id, NULL AS notified FROM written UNION ALL SELECT NULL, pg_notify(:channel, topic)::text FROM announced
"""
# Rows are inserted in the order of their evaluation keys, so that two callers with the same keys do not deadlock.
_INSERT = text(
    f"""
    WITH written AS (
        INSERT INTO actions (id, evaluation_key, key_owner, request_digest, action_plan_id, status, origin, person_id,
                             institution_id, task_id, context, variables, data, steps, priority, expires_at, due_at,
                             finished_at)
        SELECT id, evaluation_key, key_owner, request_digest, action_plan_id, status, origin, person_id,
               institution_id, task_id, context, variables, data, steps, priority, expires_at, due_at,
               CASE WHEN status <> 'RUNNING' THEN clock_timestamp() END
          FROM json_to_recordset(CAST(:rows AS json)) AS row(
               id uuid, evaluation_key text, key_owner text, request_digest bytea, action_plan_id bigint, status text,
               origin text, person_id bigint, institution_id bigint, task_id uuid, context jsonb, variables jsonb,
               data jsonb, steps jsonb, priority text, expires_at timestamptz, due_at timestamptz)
         ORDER BY key_owner, evaluation_key
            ON CONFLICT (key_owner, evaluation_key) WHERE evaluation_key IS NOT NULL DO NOTHING
        RETURNING id, due_at
    ), {_SEND}
    """
)
_UPDATE = text(
    f"""
    WITH written AS (
        UPDATE actions a
           SET status = row.status, steps = row.steps, due_at = row.due_at,
               finished_at = CASE WHEN row.status <> 'RUNNING' THEN clock_timestamp() END
          FROM json_to_recordset(CAST(:rows AS json)) AS row(id uuid, status text, steps jsonb, due_at timestamptz)
         WHERE a.id = row.id AND {may_become(ACTION_TRANSITIONS, "a.status", "row.status")}
        RETURNING a.id, a.due_at
    ), {_SEND}
    """
)
# A notification that a worker is sending cannot be cancelled. It expires now instead, which prevents further attempts.
# Rows that another transaction has locked are skipped, because they are being sent too, and waiting for them could
# deadlock with the dispatcher, which records many rows at once.
_WITHDRAW = text(
    f"""
    WITH meant AS (
        SELECT id FROM notifications WHERE id = ANY(:ids) AND {one_of("status", LIVE)}
           FOR NO KEY UPDATE SKIP LOCKED
    ), being_sent AS (
        UPDATE notifications n SET expires_at = least(n.expires_at, clock_timestamp())
          FROM meant WHERE n.id = meant.id AND {one_of("n.status", LIVE - CANCELLABLE)}
    )
    UPDATE notifications n SET status = 'CANCELLED', due_at = NULL, finished_at = clock_timestamp()
      FROM meant WHERE n.id = meant.id AND {one_of("n.status", CANCELLABLE)}
    RETURNING n.id
    """
)
_POSTPONE = text("UPDATE actions SET due_at = :until WHERE id = :id")


def write(conn: Connection, transitions: Sequence[ActionTransition]) -> set[UUID]:
    """Writes the transitions with their effects; returns the ids of the actions that were written.

    A new action whose evaluation key was used before is not written, and has no effects. The order of the statements
    is the lock order. The caller has locked the actions that are not new.
    """
    new = [item for item in transitions if item.is_new]
    known = [item for item in transitions if not item.is_new]
    written = _insert(conn, new) | _update(conn, known)
    cancelled = [item.action.id for item in known if item.decision.run.status is ActionStatus.CANCELLED]
    if cancelled:
        dead_letters.expire_of_actions(conn, cancelled)
    results = [
        (item, effect)
        for item in transitions
        if item.action.id in written
        for effect in item.decision.effects
        if not isinstance(effect, Send | Withdraw)
    ]
    if results:
        _write_results(conn, results)
    return written


def _insert(conn: Connection, new: Sequence[ActionTransition]) -> set[UUID]:
    for item in new:
        check_transition(ACTION_TRANSITIONS, None, item.decision.run.status)
    return _write_actions(conn, _INSERT, new, [_new_row(item.action, item.decision) for item in new])


def _update(conn: Connection, known: Sequence[ActionTransition]) -> set[UUID]:
    withdraw(conn, [effect.notification_id for _, effect in _effects(known, Withdraw)])
    written = _write_actions(conn, _UPDATE, known, [_changed_row(item.action, item.decision) for item in known])
    if len(written) < len(known):
        raise IllegalTransition("An action was not in a state from which its transition starts.")
    return written


def _write_actions(
    conn: Connection, statement: TextClause, transitions: Sequence[ActionTransition], rows: Sequence[dict[str, Any]]
) -> set[UUID]:
    if not rows:
        return set()
    notifications = [_notification(item.action, effect) for item, effect in _effects(transitions, Send)]
    values = {
        "rows": _json(rows),
        "notifications": _json(notifications),
        "channel": WAKE_CHANNEL,
        "topic": ACTION_TOPIC,
    }
    if statement is _INSERT and all(item.action.evaluation_key is None for item in transitions):
        # Without keys nothing is left out, so nobody has to wait for the answer.
        execute_later(conn, statement, values)
        written = {item.action.id for item in transitions}
    else:
        written = {row.id for row in conn.execute(statement, values) if row.id is not None}
    for item, effect in _effects(transitions, Send):
        id_, action = effect.target.notification_id, item.action
        if id_ is not None and action.id in written:
            type_ = NotificationType(effect.target.channel_type.upper())
            note_accepted(id_, type_, action_id=action.id, task_id=action.task_id)
    return written


def _write_results(conn: Connection, results: Sequence[tuple[ActionTransition, Effect]]) -> None:
    """The dead letters of the effects, and the events for other services."""
    given_up = [(item, effect) for item, effect in results if isinstance(effect, GiveUp)]
    dead_letters.write(conn, [_dead_letter(item.action, effect) for item, effect in given_up])
    covered = [(item.action.id, effect.step.order) for item, effect in results if isinstance(effect, Cover)]
    dead_letters.cover(conn, covered)
    events = (result_event(item.action, effect, item.at) for item, effect in results)
    outbox.put(conn, [event for event in events if event is not None])


def withdraw(conn: Connection, ids: Sequence[UUID]) -> None:
    """Cancels live notifications, or lets them expire if a worker is sending them."""
    if ids:
        for row in conn.execute(_WITHDRAW, {"ids": ids}):
            log_cancelled(row.id)


def postpone(conn: Connection, action_id: UUID, until: datetime) -> None:
    """Makes the action due later. This is not a transition."""
    conn.execute(_POSTPONE, {"id": action_id, "until": until})


def _effects(transitions: Iterable[ActionTransition], kind: type[Kind]) -> Iterator[tuple[ActionTransition, Kind]]:
    return ((item, effect) for item in transitions for effect in item.decision.effects if isinstance(effect, kind))


# Rows, in the JSON form that the statements read


def _changed_row(action: Action, decision: Decision) -> dict[str, Any]:
    """The columns that every transition writes."""
    return {
        "id": str(action.id),
        "status": decision.run.status.value,
        "steps": encode(decision.run.steps),
        "due_at": _iso(decision.due_at),
    }


def _new_row(action: Action, decision: Decision) -> dict[str, Any]:
    digest = action.request_digest
    return _changed_row(action, decision) | {
        "evaluation_key": action.evaluation_key,
        "key_owner": action.key_owner,
        "request_digest": f"\\x{digest.hex()}" if digest is not None else None,
        "action_plan_id": action.plan_id,
        "origin": action.origin.value,
        "person_id": action.person_id,
        "institution_id": action.institution_id,
        "task_id": str(action.task_id) if action.task_id else None,
        "context": action.context,
        "variables": action.variables,
        "data": action.data,
        "priority": action.priority.value,
        "expires_at": _iso(action.run.expires_at),
    }


def _notification(action: Action, send: Send) -> dict[str, Any]:
    target, draft, id_ = send.target, send.draft, str(send.target.notification_id)
    metadata: dict[str, Any] = {"data": {**action.data, "notificationId": id_}}
    if target.address_kind is not None:
        metadata["addressKind"] = target.address_kind
    return {
        "id": id_,
        "notification_type": NotificationType(target.channel_type.upper()).value,
        "recipient": draft.recipient,
        "recipient_user_id": target.user_id,
        "subject": draft.words.subject,
        "body": draft.words.body,
        "priority": action.priority.value,
        "metadata": metadata,
        "task_id": str(action.task_id) if action.task_id else None,
        "institution_id": action.institution_id,
        "expires_at": _iso(action.run.expires_at),
        "action_id": str(action.id),
        "step_order": send.step.order,
        "channel_id": target.channel_id,
    }


def _dead_letter(action: Action, given_up: GiveUp) -> NewDeadLetter:
    return NewDeadLetter(
        channel_type=given_up.channel_type,
        error_code=given_up.error_code,
        retryable=False,
        action_id=action.id,
        step_order=given_up.step.order,
    )


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None


def _json(values: Sequence[dict[str, Any]]) -> str:
    return to_json(values).decode()
