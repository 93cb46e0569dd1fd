"""Reads actions, their plans and templates, and the state of their notifications. SQL only."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, text

from app.delivery.actions.context import Action
from app.delivery.actions.models import Origin
from app.delivery.actions.states import ActionStatus, StepState
from app.delivery.actions.step_codec import decode
from app.delivery.actions.steps import NotificationState, Run, StepRun
from app.delivery.messages.states import LIVE, sql_in
from app.delivery.messages.values import NotificationStatus, Priority
from app.delivery.words.rendering import Words
from app.delivery.words.templates import Templates, read_templates


@dataclass(frozen=True)
class PlanToRun:
    id: int
    is_on: bool
    steps: tuple[StepRun, ...]
    templates: Templates
    read_at: datetime


_PLANS = text(
    """
    SELECT p.id, p.key, p.status, clock_timestamp() AS read_at,
           (SELECT json_agg(json_build_object('step_order', s.step_order, 'channel_type', s.channel_type,
                            'audience', s.audience, 'template_key', s.template_key, 'on_failure', s.on_failure,
                            'fallback', s.fallback, 'within_s', s.within_s) ORDER BY s.step_order)::text
              FROM action_plan_steps s WHERE s.action_plan_id = p.id AND s.retired_at IS NULL) AS steps,
           (SELECT json_agg(json_build_array(t.key, t.locale, t.subject, t.body))::text
              FROM message_templates t
             WHERE t.retired_at IS NULL
               AND t.key IN (SELECT s.template_key FROM action_plan_steps s
                              WHERE s.action_plan_id = p.id AND s.retired_at IS NULL)) AS templates
      FROM action_plans p
     WHERE p.retired_at IS NULL AND (p.id = ANY(:ids) OR p.key = ANY(:keys))
    """
)


def plans(conn: Connection, wanted: Collection[int | str]) -> dict[int | str, PlanToRun]:
    """The plans by id and by key."""
    ids = [id_ for id_ in wanted if isinstance(id_, int)]
    keys = [key for key in wanted if isinstance(key, str)]
    found: dict[int | str, PlanToRun] = {}
    for row in conn.execute(_PLANS, {"ids": ids, "keys": keys}):
        plan = PlanToRun(row.id, row.status, _steps(row.steps or "[]"), _templates(row.templates or "[]"), row.read_at)
        found[row.id] = plan
        if row.key is not None:
            found[row.key] = plan
    return found


# Plans are read often and edited rarely, so the parsed JSON is cached.
@lru_cache(maxsize=256)
def _steps(document: str) -> tuple[StepRun, ...]:
    return decode(json.loads(document))


@lru_cache(maxsize=256)
def _templates(document: str) -> Templates:
    return {(key, locale): Words(subject, body) for key, locale, subject, body in json.loads(document)}


def templates(conn: Connection, actions: Iterable[Action]) -> Templates:
    """The templates of the steps that may still write notifications."""
    all_steps = [step for action in actions for step in action.run.steps]
    steps = [step for step in all_steps if step.state is StepState.WAITING or step.has_next]
    return read_templates(conn, {step.template_key for step in steps if step.template_key is not None})


ActionRow = Row[Any]
"""The columns of `ACTION_COLUMNS`, and `read_at`."""
ACTION_COLUMNS = """
    id, action_plan_id, steps, status, origin, evaluation_key, person_id, task_id, context, variables, data, priority,
    created_at, expires_at
"""
_CLAIM = text(
    f"""
    SELECT {ACTION_COLUMNS}, clock_timestamp() AS read_at FROM actions
     WHERE status = 'RUNNING' AND due_at <= statement_timestamp()
     ORDER BY due_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
    """
)


def claim(conn: Connection, limit: int) -> Sequence[ActionRow]:
    """Locks actions that are due. Other conductors skip them."""
    return conn.execute(_CLAIM, {"limit": limit}).all()


def action_of(row: ActionRow) -> Action:
    return Action(
        id=row.id,
        plan_id=row.action_plan_id,
        run=Run(decode(row.steps), row.expires_at, ActionStatus(row.status)),
        origin=Origin(row.origin),
        evaluation_key=row.evaluation_key,
        person_id=row.person_id,
        task_id=row.task_id,
        context=row.context,
        variables=row.variables,
        data=row.data,
        priority=Priority(row.priority),
        created_at=row.created_at,
    )


# A live notification stays locked until the decision about it is committed. A notification that another transaction has
# locked is skipped: that transaction is about to record its end, and will make the action due again.
_LOCK_LIVE = text(
    f"""
    SELECT id FROM notifications WHERE id = ANY(:ids) AND {sql_in("status", LIVE)}
       FOR NO KEY UPDATE SKIP LOCKED
    """
)
# `arrived` covers all attempts and all phones: it stays true after a later attempt was refused, and while another phone
# is still to be reached.
_STATES = text(
    """
    SELECT n.id, n.status, n.error_code, n.failures, coalesce(attempt.arrived, false) AS arrived,
           coalesce(attempt.again, false) AS again, attempt.provider_message_id
      FROM notifications n
      LEFT JOIN LATERAL (
           SELECT bool_or(a.outcome = 'SENT' OR a.outcome = 'UNKNOWN' AND a.attempt > n.fresh_from) AS arrived,
                  bool_or(a.outcome IN ('TRANSIENT', 'UNKNOWN') AND a.attempt = n.attempts) AS again,
                  max(a.provider_message_id) FILTER (WHERE a.outcome = 'SENT') AS provider_message_id
             FROM notification_attempts a WHERE a.notification_id = n.id) AS attempt ON true
     WHERE n.id = ANY(:ids)
    """
)


def notifications(conn: Connection, ids: Sequence[UUID]) -> dict[UUID, NotificationState]:
    """Locks the live notifications that no other transaction has locked, then reads all of them."""
    if not ids:
        return {}
    locked = {row.id for row in conn.execute(_LOCK_LIVE, {"ids": ids})}
    return {
        row.id: NotificationState(
            NotificationStatus(row.status),
            may_have_arrived=row.arrived,
            error_code=row.error_code,
            retry_count=max(row.failures - 1, 0),
            retryable=row.again,
            provider_message_id=row.provider_message_id,
            is_locked_elsewhere=row.id not in locked,
        )
        for row in conn.execute(_STATES, {"ids": ids})
    }
