"""Writes the transitions of a batch of actions: the rows of the actions and the effects of the decisions. The caller
owns the transaction."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection, text

from app.db import outbox
from app.db.wake import WAKE_CHANNEL
from app.delivery.actions import results, rows
from app.delivery.actions.context import Action
from app.delivery.actions.run import Decision
from app.delivery.actions.steps import Cover, Effect, GiveUp, Send, Withdraw
from app.delivery.messages import dead_letters
from app.delivery.messages.states import CANCELLABLE, LIVE, sql_in
from app.delivery.messages.values import ACTION_TOPIC

Kind = TypeVar("Kind", bound=Effect)


@dataclass(frozen=True)
class ActionTransition:
    """An action as it was read or requested, and the decision about it."""

    action: Action
    decision: Decision
    at: datetime
    is_new: bool = False
    """The action has no row yet."""


_NOTIFICATIONS = """
        INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority,
                                   metadata, task_id, expires_at, action_id, step_order, channel_id)
        SELECT id, notification_type, recipient, recipient_user_id, subject, body, priority, metadata, task_id,
               expires_at, action_id, step_order, channel_id
          FROM json_to_recordset(CAST(:notifications AS json)) AS row(
               id uuid, notification_type text, recipient text, recipient_user_id bigint, subject text, body text,
               priority text, metadata jsonb, task_id uuid, expires_at timestamptz, action_id uuid, step_order int,
               channel_id bigint)
"""
# Rows are inserted in the order of their evaluation keys, so that two callers with the same keys do not deadlock. One
# statement writes the actions and their first notifications, because every offer runs it and it has to be fast.
_INSERT = text(
    f"""
    WITH inserted AS (
        INSERT INTO actions (id, evaluation_key, action_plan_id, status, origin, person_id, task_id, context,
                             variables, data, steps, priority, expires_at, due_at, finished_at)
        SELECT id, evaluation_key, action_plan_id, status, origin, person_id, task_id, context, variables, data,
               steps, priority, expires_at, due_at, CASE WHEN status <> 'RUNNING' THEN clock_timestamp() END
          FROM json_to_recordset(CAST(:rows AS json)) AS row(
               id uuid, evaluation_key text, action_plan_id bigint, status text, origin text, person_id bigint,
               task_id uuid, context jsonb, variables jsonb, data jsonb, steps jsonb, priority text,
               expires_at timestamptz, due_at timestamptz)
         ORDER BY evaluation_key
            ON CONFLICT (evaluation_key) WHERE evaluation_key IS NOT NULL DO NOTHING
        RETURNING id, due_at
    ), sent AS (
        {_NOTIFICATIONS}
         WHERE action_id IN (SELECT id FROM inserted)
        RETURNING notification_type
    ), announced AS (
        SELECT notification_type AS topic FROM sent UNION
        SELECT :topic FROM inserted WHERE due_at <= clock_timestamp()
    )
    SELECT id, NULL AS notified FROM inserted UNION ALL SELECT NULL, pg_notify(:channel, topic)::text FROM announced
    """
)
_UPDATE = text(
    """
    UPDATE actions a
       SET status = row.status, steps = row.steps, due_at = row.due_at,
           finished_at = CASE WHEN row.status <> 'RUNNING' THEN clock_timestamp() END
      FROM json_to_recordset(CAST(:rows AS json)) AS row(id uuid, status text, steps jsonb, due_at timestamptz)
     WHERE a.id = row.id
    """
)
_SEND = text(
    f"""
    WITH inserted AS (
        {_NOTIFICATIONS}
        RETURNING notification_type
    )
    SELECT pg_notify(:channel, notification_type) FROM inserted GROUP BY notification_type
    """
)
# A notification that a worker is sending cannot be cancelled. It expires now instead, which prevents further attempts.
# Rows that another transaction has locked are skipped, because they are being sent too, and waiting for them could
# deadlock with the dispatcher, which records many rows at once.
_WITHDRAW = text(
    f"""
    WITH meant AS (
        SELECT id FROM notifications WHERE id = ANY(:ids) AND {sql_in("status", LIVE)}
           FOR NO KEY UPDATE SKIP LOCKED
    ), being_sent AS (
        UPDATE notifications n SET expires_at = least(n.expires_at, clock_timestamp())
          FROM meant WHERE n.id = meant.id AND {sql_in("n.status", LIVE - CANCELLABLE)}
    )
    UPDATE notifications n SET status = 'CANCELLED', due_at = NULL, finished_at = clock_timestamp()
      FROM meant WHERE n.id = meant.id AND {sql_in("n.status", CANCELLABLE)}
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
    inserted = _insert(conn, new)
    _withdraw(conn, known)
    _send(conn, known)
    written = [*(item for item in new if item.action.id in inserted), *known]
    dead_letters.write(conn, [rows.dead_letter(item.action, effect) for item, effect in _effects(written, GiveUp)])
    dead_letters.cover(conn, [(item.action.id, effect.step.order) for item, effect in _effects(written, Cover)])
    outbox.put(conn, [event for item in written for event in results.events(item.action, item.decision, item.at)])
    _update(conn, known)
    return {item.action.id for item in written}


def _insert(conn: Connection, new: Sequence[ActionTransition]) -> set[UUID]:
    if not new:
        return set()
    values = {
        "rows": _json([rows.new_action(item.action, item.decision) for item in new]),
        "notifications": _json(_notifications(new)),
        "channel": WAKE_CHANNEL,
        "topic": ACTION_TOPIC,
    }
    return {row.id for row in conn.execute(_INSERT, values) if row.id is not None}


def _withdraw(conn: Connection, known: Sequence[ActionTransition]) -> None:
    ids = [effect.notification_id for _, effect in _effects(known, Withdraw)]
    if ids:
        conn.execute(_WITHDRAW, {"ids": ids})


def _send(conn: Connection, known: Sequence[ActionTransition]) -> None:
    notifications = _notifications(known)
    if notifications:
        conn.execute(_SEND, {"notifications": _json(notifications), "channel": WAKE_CHANNEL})


def _update(conn: Connection, known: Sequence[ActionTransition]) -> None:
    if known:
        conn.execute(_UPDATE, {"rows": _json([rows.changed_action(item.action, item.decision) for item in known])})


def postpone(conn: Connection, action_id: UUID, until: datetime) -> None:
    """Makes the action due later. This is not a transition."""
    conn.execute(_POSTPONE, {"id": action_id, "until": until})


def _notifications(transitions: Iterable[ActionTransition]) -> list[dict[str, Any]]:
    return [rows.notification(item.action, effect) for item, effect in _effects(transitions, Send)]


def _effects(transitions: Iterable[ActionTransition], kind: type[Kind]) -> Iterator[tuple[ActionTransition, Kind]]:
    return ((item, effect) for item in transitions for effect in item.decision.effects if isinstance(effect, kind))


def _json(values: Sequence[dict[str, Any]]) -> str:
    return json.dumps(values, ensure_ascii=False)
