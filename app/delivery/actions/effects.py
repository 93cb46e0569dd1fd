"""Writes down what a run's next moves ask for: messages, letters, events. Set-based, in the caller's transaction."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection, text

from app.db import outbox
from app.db.outbox import Event
from app.db.wake import WAKE_CHANNEL
from app.delivery.actions import result_format
from app.delivery.actions.context import Action, ActionContext
from app.delivery.actions.models import Origin
from app.delivery.actions.run import Advanced
from app.delivery.actions.step_codec import encode
from app.delivery.actions.steps import Cover, Effect, Executed, Failed, GiveUp, HandOver, SendTo, StepRun, Withdraw
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letters import NewDeadLetter
from app.delivery.messages.error_texts import explain
from app.delivery.messages.states import CANCELLABLE, LIVE, sql_in
from app.delivery.messages.values import ACTION_TOPIC, NotificationType
from app.delivery.words.rendering import Words

Kind = TypeVar("Kind", bound=Effect)


@dataclass(frozen=True)
class ActionTransition:
    """What an action does next."""

    desk: ActionContext
    advanced: Advanced
    at: datetime

    @property
    def action(self) -> Action:
        return self.desk.action

    def row(self) -> dict[str, Any]:
        run = self.advanced.run
        return {
            "id": str(self.action.id),
            "status": run.status.value,
            "steps": encode(run.steps),
            "due_at": self.advanced.due_at.isoformat() if self.advanced.due_at else None,
        }

    def whole_row(self) -> dict[str, Any]:
        action = self.action
        return self.row() | {
            "evaluation_key": action.evaluation_key,
            "action_plan_id": action.plan_id,
            "origin": action.origin.value,
            "person_id": action.person_id,
            "task_id": str(action.task_id) if action.task_id else None,
            "context": action.context,
            "variables": action.variables,
            "data": action.data,
            "priority": action.priority.value,
            "expires_at": _iso(action.run.expires_at),
        }


_MESSAGES = """
        INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority,
                                   metadata, task_id, expires_at, action_id, step_order, channel_id)
        SELECT id, notification_type, recipient, recipient_user_id, subject, body, priority, metadata, task_id,
               expires_at, action_id, step_order, channel_id
          FROM json_to_recordset(CAST(:messages AS json)) AS row(
               id uuid, notification_type text, recipient text, recipient_user_id bigint, subject text, body text,
               priority text, metadata jsonb, task_id uuid, expires_at timestamptz, action_id uuid, step_order int,
               channel_id bigint)
"""
# In the order of the keys, so that two callers with the same keys do not wait for each other in a circle. The first
# messages go with their actions, in one statement: this is part of every offer.
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
        {_MESSAGES}
         WHERE action_id IN (SELECT id FROM inserted)
        RETURNING notification_type
    ), announced AS (
        SELECT notification_type AS topic FROM sent UNION
        SELECT :topic FROM inserted WHERE due_at <= clock_timestamp()
    )
    SELECT id, NULL AS told FROM inserted UNION ALL SELECT NULL, pg_notify(:channel, topic)::text FROM announced
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
        {_MESSAGES}
        RETURNING notification_type
    )
    SELECT pg_notify(:channel, notification_type) FROM inserted GROUP BY notification_type
    """
)
# What a worker has in hand cannot be called back, but it can be kept from being tried again: it expires now. Rows
# that another transaction holds at this instant are in hand too; waiting for them could deadlock with the
# dispatcher, which records many rows at once.
_WITHDRAW = text(
    f"""
    WITH meant AS (
        SELECT id FROM notifications WHERE id = ANY(:ids) AND {sql_in("status", LIVE)}
           FOR NO KEY UPDATE SKIP LOCKED
    ), in_hand AS (
        UPDATE notifications n SET expires_at = least(n.expires_at, clock_timestamp())
          FROM meant WHERE n.id = meant.id AND {sql_in("n.status", LIVE - CANCELLABLE)}
    )
    UPDATE notifications n SET status = 'CANCELLED', due_at = NULL, finished_at = clock_timestamp()
      FROM meant WHERE n.id = meant.id AND {sql_in("n.status", CANCELLABLE)}
    """
)
# In the order of their ids, as everybody holds letters who closes several.
_COVER = text(
    """
    WITH held AS (
        SELECT d.id FROM dead_letters d
          JOIN json_to_recordset(CAST(:rows AS json)) AS row(action_id uuid, step_order int)
            ON d.action_id = row.action_id AND d.step_order = row.step_order
         WHERE d.status = 'OPEN' ORDER BY d.id FOR NO KEY UPDATE OF d
    )
    UPDATE dead_letters d SET status = 'COVERED', closed_at = clock_timestamp()
      FROM held WHERE d.id = held.id AND d.status = 'OPEN'
    """
)


def insert(conn: Connection, moves: Sequence[ActionTransition]) -> set[UUID]:
    """With what their first steps ask for; says whose evaluation key is new. The others ask for nothing."""
    values = {"rows": _json([move.whole_row() for move in moves]), "messages": _json(_messages(moves))}
    found = conn.execute(_INSERT, {**values, "channel": WAKE_CHANNEL, "topic": ACTION_TOPIC})
    new = {row.id for row in found if row.id is not None}
    _carry_out_the_rest(conn, [move for move in moves if move.action.id in new])
    return new


def update(conn: Connection, moves: Sequence[ActionTransition]) -> None:
    if moves:
        conn.execute(_UPDATE, {"rows": _json([move.row() for move in moves])})


def carry_out(conn: Connection, moves: Sequence[ActionTransition]) -> None:
    withdraw(conn, [effect.notification_id for _, effect in _effects(moves, Withdraw)])
    messages = _messages(moves)
    if messages:
        conn.execute(_SEND, {"messages": _json(messages), "channel": WAKE_CHANNEL})
    _carry_out_the_rest(conn, moves)


def _carry_out_the_rest(conn: Connection, moves: Sequence[ActionTransition]) -> None:
    dead_letters.write(conn, [_letter(move, effect) for move, effect in _effects(moves, GiveUp)])
    covered = [
        {"action_id": str(move.action.id), "step_order": effect.step.order} for move, effect in _effects(moves, Cover)
    ]
    if covered:
        conn.execute(_COVER, {"rows": json.dumps(covered)})
    outbox.put(conn, [event for move in moves for event in _told(move)])


def withdraw(conn: Connection, ids: Sequence[UUID]) -> None:
    if ids:
        conn.execute(_WITHDRAW, {"ids": ids})


def put_off(conn: Connection, action_id: UUID, until: datetime) -> None:
    conn.execute(text("UPDATE actions SET due_at = :until WHERE id = :id"), {"id": action_id, "until": until})


def wake(conn: Connection) -> None:
    conn.execute(text("SELECT pg_notify(:channel, :topic)"), {"channel": WAKE_CHANNEL, "topic": ACTION_TOPIC})


def _effects(moves: Iterable[ActionTransition], kind: type[Kind]) -> Iterator[tuple[ActionTransition, Kind]]:
    return ((move, effect) for move in moves for effect in move.advanced.effects if isinstance(effect, kind))


def _messages(moves: Iterable[ActionTransition]) -> list[dict[str, Any]]:
    return [_message(move, effect) for move, effect in _effects(moves, SendTo)]


def _json(rows: Sequence[dict[str, Any]]) -> str:
    return json.dumps(rows, ensure_ascii=False)


def _message(move: ActionTransition, sent: SendTo) -> dict[str, Any]:
    action, target, id_ = move.action, move.desk.addressed(sent.target), str(sent.target.notification_id)
    words = move.desk.words(sent.step, sent.target)
    assert target is not None and isinstance(words, Words), "the run asked whether there is a fault"
    metadata: dict[str, Any] = {"data": {**action.data, "notificationId": id_}}
    if target.address_kind is not None:
        metadata["addressKind"] = target.address_kind
    return {
        "id": id_,
        "notification_type": NotificationType(target.channel_type.upper()).value,
        "recipient": target.recipient,
        "recipient_user_id": target.user_id,
        "subject": words.subject,
        "body": words.body,
        "priority": action.priority.value,
        "metadata": metadata,
        "task_id": str(action.task_id) if action.task_id else None,
        "expires_at": _iso(action.run.expires_at),
        "action_id": str(action.id),
        "step_order": sent.step.order,
        "channel_id": target.channel_id,
    }


def _letter(move: ActionTransition, given_up: GiveUp) -> NewDeadLetter:
    return NewDeadLetter(
        channel_type=given_up.channel_type,
        error_code=given_up.error_code,
        retryable=False,
        action_id=move.action.id,
        step_order=given_up.step.order,
    )


def _told(move: ActionTransition) -> Iterator[Event]:
    """Nobody waits for a result of what a feature of ours asked for; what is handed over, somebody has to do."""
    is_awaited = move.action.origin is not Origin.INTERNAL
    for effect in move.advanced.effects:
        match effect:
            case HandOver(step):
                yield result_format.handover(
                    _about(move, step, step.channel_type),
                    produced_at=move.at,
                    process_ms=_process_ms(move, step),
                    evaluation_key=move.action.evaluation_key,
                    variables=move.action.variables,
                    expires_at=move.action.run.expires_at,
                )
            case Executed(step, target, provider_message_id) if is_awaited:
                yield result_format.executed(
                    _about(move, step, target.channel_type),
                    produced_at=move.at,
                    process_ms=_process_ms(move, step),
                    provider_message_id=provider_message_id,
                )
            case Failed(step, error_code, seen) if is_awaited:
                yield result_format.failed(
                    _about(move, step, step.targets[step.tried - 1].channel_type if step.tried else step.channel_type),
                    produced_at=move.at,
                    process_ms=_process_ms(move, step),
                    error_code=error_code,
                    error_message=explain(error_code),
                    retryable=seen is not None and seen.retryable,
                    failed_at=move.at,
                )
            case _:
                continue


def _about(move: ActionTransition, step: StepRun, channel_type: str) -> result_format.StepResult:
    return result_format.StepResult(move.action.plan_id, step.order, channel_type, move.action.context)


def _process_ms(move: ActionTransition, step: StepRun) -> int:
    """Since the step, or at least its last message, was begun."""
    began = step.asked_at or move.at
    return max(0, round((move.at - began).total_seconds() * 1000))


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None
