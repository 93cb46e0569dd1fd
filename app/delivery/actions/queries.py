"""Reads actions, their plans and templates, the directory, and the state of notifications. SQL only."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, TextClause, text

from app.db.plain_statements import execute_later
from app.db.schema import one_of
from app.delivery.actions.context import Action
from app.delivery.actions.models import Origin
from app.delivery.actions.states import ActionStatus, StepState
from app.delivery.actions.step_codec import decode
from app.delivery.actions.steps import NotificationState, Run, StepRun
from app.delivery.actions.targets import Directory, Profile, ProfileChannel, ProfileRoute, Recipient
from app.delivery.messages.states import LIVE
from app.delivery.messages.values import NotificationStatus, Priority
from app.delivery.plans.models import Audience
from app.delivery.words.rendering import Words
from app.delivery.words.templates import Templates, read_templates
from app.users.models import Role


@dataclass(frozen=True)
class PlanToRun:
    id: int
    key: str | None
    is_on: bool
    steps: tuple[StepRun, ...]
    templates: Templates


@dataclass(frozen=True)
class PlansAndPeople:
    """What requests need. By id and by key for plans, by id for people."""

    plans: Mapping[int | str, PlanToRun]
    people: Mapping[int, Recipient]
    read_at: datetime


_PROFILE = """
    json_build_object('id', p.id, 'priority', p.priority, 'locale', p.locale, 'user_id', p.user_id,
        'status', p.status AND (SELECT owner.active FROM users owner WHERE owner.id = p.user_id) IS NOT FALSE,
        'institution_id', coalesce(p.institution_id,
            (SELECT owner.institution_id FROM users owner WHERE owner.id = p.user_id AND owner.role <> 'ADMIN')),
        'retired', p.retired_at IS NOT NULL, 'channels',
        (SELECT json_agg(json_build_object('id', c.id, 'channel_type', c.channel_type, 'target', c.target,
                         'usable', c.enabled AND c.verify_status = 'verified', 'retired', c.retired_at IS NOT NULL,
                         'address_kind', c.target_meta ->> 'addressKind') ORDER BY c.id)
           FROM recipient_channels c WHERE c.profile_id = p.id))
"""
_PEOPLE_OF = f"""
    SELECT u.id, u.locale, u.phone, u.active, u.role, u.institution_id,
           (SELECT json_agg({_PROFILE}) FROM recipient_profiles p
             WHERE p.user_id = u.id AND p.retired_at IS NULL AND p.status) AS profiles
      FROM users u WHERE"""
_BY_ID = "u.id = ANY(:person_ids)"
_PEOPLE = text(f"{_PEOPLE_OF} {_BY_ID}")
_PLANS = """
    SELECT p.id, p.key, p.status,
           (SELECT json_agg(json_build_object('step_order', s.step_order, 'channel_type', s.channel_type,
                            'audience', s.audience, 'template_key', s.template_key, 'on_failure', s.on_failure,
                            'fallback', s.fallback, 'within_s', s.within_s,
                            'may_arrive_twice', s.may_arrive_twice) ORDER BY s.step_order)
              FROM action_plan_steps s WHERE s.action_plan_id = p.id AND s.retired_at IS NULL) AS steps,
           (SELECT json_agg(json_build_array(t.key, t.locale, t.subject, t.body))
              FROM message_templates t
             WHERE t.retired_at IS NULL
               AND t.key IN (SELECT s.template_key FROM action_plan_steps s
                              WHERE s.action_plan_id = p.id AND s.retired_at IS NULL)) AS templates
      FROM action_plans p
     WHERE p.retired_at IS NULL AND (p.id = ANY(:plan_ids) OR p.key = ANY(:plan_keys))
"""


# One statement for both, because every offer runs it.
@lru_cache(maxsize=16)
def _plans_and_people(people: str) -> TextClause:
    return text(
        f"""
        SELECT (SELECT json_agg(plan)::text FROM ({_PLANS}) plan) AS plans,
               (SELECT json_agg(person) FROM ({_PEOPLE_OF} {people}) person) AS people, clock_timestamp() AS read_at
        """
    )


def plans_and_people(
    conn: Connection, plans: Collection[int | str], people: str = _BY_ID, **values: Any
) -> Callable[[], PlansAndPeople]:
    """Asks together with the next statement. `people` is a condition on the user `u` in SQL, and `values` are for it.
    Returns what gives the answer."""
    wanted = {
        "plan_ids": [id_ for id_ in plans if isinstance(id_, int)],
        "plan_keys": [key for key in plans if isinstance(key, str)],
    }
    asked = execute_later(conn, _plans_and_people(people), wanted | values)

    def read() -> PlansAndPeople:
        row = asked.rows.one()
        return PlansAndPeople(_plans(row.plans or "[]"), _recipients(row.people or ()), row.read_at)

    return read


# Plans are read often and edited rarely, so the parsed JSON is cached.
@lru_cache(maxsize=256)
def _plans(document: str) -> Mapping[int | str, PlanToRun]:
    found: dict[int | str, PlanToRun] = {}
    for row in json.loads(document):
        plan = PlanToRun(row["id"], row["key"], row["status"], decode(row["steps"] or ()), _templates(row["templates"]))
        found[plan.id] = plan
        if plan.key is not None:
            found[plan.key] = plan
    return found


def _templates(rows: Iterable[tuple[str, str, str, str]] | None) -> Templates:
    return {(key, locale): Words(subject, body) for key, locale, subject, body in rows or ()}


def templates(conn: Connection, actions: Iterable[Action]) -> Templates:
    """The templates of the steps that may still write notifications."""
    all_steps = [step for action in actions for step in action.run.steps]
    steps = [step for step in all_steps if step.state is StepState.WAITING or step.has_next]
    return read_templates(conn, {step.template_key for step in steps if step.template_key is not None})


def read_directory(conn: Connection, actions: Sequence[Action]) -> Directory:
    """Reads nothing for steps that have begun, because they keep their targets."""
    return Directory(
        _people(conn, {action.person_id for action in actions if action.person_id is not None and _waiting(action)}),
        **_routes_and_devices(conn, actions),
    )


def directory_of(conn: Connection, people: Mapping[int, Recipient], actions: Sequence[Action]) -> Directory:
    """For people who were read already."""
    return Directory(people, **_routes_and_devices(conn, actions))


def _waiting(action: Action) -> bool:
    return any(step.state is StepState.WAITING for step in action.run.steps)


def _routes_and_devices(conn: Connection, actions: Sequence[Action]) -> dict[str, Any]:
    routed = [
        action
        for action in actions
        if any(step.state is StepState.WAITING and step.audience is Audience.ROUTES for step in action.run.steps)
    ]
    return {
        "routes": _routes(conn, {action.plan_id for action in routed}),
        "devices": _devices(conn, {action.about.device_id for action in routed if action.about.device_id is not None}),
    }


_ROUTES = text(
    f"""
    SELECT r.action_plan_id, r.step_order, r.channel_type, {_PROFILE} AS profile
      FROM action_routes r JOIN recipient_profiles p ON p.id = r.recipient_profile_id
     WHERE r.action_plan_id = ANY(:plan_ids) AND r.enabled AND r.retired_at IS NULL
     ORDER BY r.id
    """
)
_DEVICES = text(
    f"""
    SELECT p.device_id, {_PROFILE} AS profile
      FROM recipient_profiles p WHERE p.device_id = ANY(:device_ids) AND p.retired_at IS NULL
    """
)


def _people(conn: Connection, ids: Collection[int]) -> Mapping[int, Recipient]:
    return _recipients(conn.execute(_PEOPLE, {"person_ids": list(ids)}).mappings()) if ids else {}


def _recipients(rows: Iterable[Any]) -> Mapping[int, Recipient]:
    return {
        row["id"]: Recipient(
            row["id"],
            row["locale"],
            row["phone"],
            tuple(_profile(profile) for profile in row["profiles"] or ()),
            is_active=row["active"],
            is_elder=row["role"] == Role.ELDER,
            institution_id=row["institution_id"],
        )
        for row in rows
    }


def _routes(conn: Connection, plan_ids: Collection[int]) -> dict[tuple[int, int], list[ProfileRoute]]:
    found: dict[tuple[int, int], list[ProfileRoute]] = {}
    for row in conn.execute(_ROUTES, {"plan_ids": list(plan_ids)}) if plan_ids else ():
        found.setdefault((row.action_plan_id, row.step_order), []).append(
            ProfileRoute(_profile(row.profile), row.channel_type)
        )
    return found


def _devices(conn: Connection, device_ids: Collection[str]) -> dict[str, list[Profile]]:
    found: dict[str, list[Profile]] = {}
    for row in conn.execute(_DEVICES, {"device_ids": list(device_ids)}) if device_ids else ():
        found.setdefault(row.device_id, []).append(_profile(row.profile))
    return found


def _profile(row: Mapping[str, Any]) -> Profile:
    return Profile(
        id=row["id"],
        channels=tuple(_channel(channel) for channel in row["channels"] or ()),
        priority=row["priority"],
        is_on=row["status"],
        is_retired=row["retired"],
        locale=row["locale"],
        user_id=row["user_id"],
        institution_id=row["institution_id"],
    )


def _channel(row: Mapping[str, Any]) -> ProfileChannel:
    return ProfileChannel(
        row["id"], row["channel_type"], row["target"], row["usable"], row["retired"], row["address_kind"]
    )


ActionRow = Row[Any]
"""The columns of `ACTION_COLUMNS`, and `read_at`."""
ACTION_COLUMNS = """
    id, action_plan_id, steps, status, origin, evaluation_key, person_id, institution_id, task_id, context,
    variables, data, priority, created_at, expires_at
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
        institution_id=row.institution_id,
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
    SELECT id FROM notifications WHERE id = ANY(:ids) AND {one_of("status", LIVE)}
       FOR NO KEY UPDATE SKIP LOCKED
    """
)
# `arrived` and `unanswered` cover all attempts and all phones: they stay true after a later attempt was refused, and
# while another phone is still to be reached.
_STATES = text(
    """
    SELECT n.id, n.status, n.error_code, n.failures, coalesce(attempt.arrived, false) AS arrived,
           coalesce(attempt.unanswered, false) AS unanswered, coalesce(attempt.gone, false) AS gone,
           coalesce(attempt.again, false) AS again, attempt.provider_message_id
      FROM notifications n
      LEFT JOIN LATERAL (
           SELECT bool_or(a.outcome = 'SENT') AS arrived,
                  bool_or(a.outcome = 'UNKNOWN' AND a.attempt > n.fresh_from) AS unanswered,
                  bool_and(a.outcome = 'RECIPIENT_GONE') FILTER (WHERE a.attempt = n.attempts) AS gone,
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
            may_have_arrived=row.unanswered,
            error_code=row.error_code,
            retry_count=max(row.failures - 1, 0),
            retryable=row.again,
            provider_message_id=row.provider_message_id,
            is_locked_elsewhere=row.id not in locked,
            has_arrived=row.arrived,
            recipient_is_gone=row.gone,
        )
        for row in conn.execute(_STATES, {"ids": ids})
    }
