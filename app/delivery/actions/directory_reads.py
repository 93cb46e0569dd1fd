"""Reads the parts of the directory that the steps of a batch of actions need. SQL only."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, text

from app.delivery.actions.context import Action
from app.delivery.actions.states import StepState
from app.delivery.actions.targets import Directory, Profile, ProfileChannel, ProfileRoute, Recipient
from app.delivery.plans.models import Audience


def read_directory(conn: Connection, actions: Sequence[Action]) -> Directory:
    """Reads nothing for steps that have begun, because they keep their targets."""
    waiting = [(action, step) for action in actions for step in action.run.steps if step.state is StepState.WAITING]
    routed = [action for action, step in waiting if step.audience is Audience.ROUTES]
    return Directory(
        _people(conn, {action.person_id for action, _ in waiting if action.person_id is not None}),
        _routes(conn, {action.plan_id for action in routed}),
        _devices(conn, {action.about.device_id for action in routed if action.about.device_id is not None}),
    )


_PROFILE = """
    json_build_object('id', p.id, 'priority', p.priority, 'status', p.status, 'locale', p.locale,
        'user_id', p.user_id, 'retired', p.retired_at IS NOT NULL, 'channels',
        (SELECT json_agg(json_build_object('id', c.id, 'channel_type', c.channel_type, 'target', c.target,
                         'usable', c.enabled AND c.verify_status = 'verified', 'retired', c.retired_at IS NOT NULL,
                         'address_kind', c.target_meta ->> 'addressKind') ORDER BY c.id)
           FROM recipient_channels c WHERE c.profile_id = p.id))
"""
_PEOPLE = text(
    f"""
    SELECT u.id, u.locale, u.phone,
           (SELECT json_agg({_PROFILE}) FROM recipient_profiles p
             WHERE p.user_id = u.id AND p.retired_at IS NULL AND p.status) AS profiles
      FROM users u WHERE u.id = ANY(:ids)
    """
)
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


def _people(conn: Connection, ids: Collection[int]) -> dict[int, Recipient]:
    if not ids:
        return {}
    return {
        row.id: Recipient(row.id, row.locale, row.phone, tuple(_profile(profile) for profile in row.profiles or ()))
        for row in conn.execute(_PEOPLE, {"ids": list(ids)})
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
    )


def _channel(row: Mapping[str, Any]) -> ProfileChannel:
    return ProfileChannel(
        row["id"], row["channel_type"], row["target"], row["usable"], row["retired"], row["address_kind"]
    )
