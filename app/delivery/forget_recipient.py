"""Forgets a person in delivery. Messages to them are not sent any more. Messages about them, which others still have to
get, are sent without their name. All other words are emptied."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.delivery.actions.service import cancel_actions_by_id
from app.delivery.actions.transitions import withdraw
from app.delivery.actions.wake_actions import wake_actions
from app.delivery.channels import audit_trail
from app.delivery.directory.service import CHANNELS
from app.delivery.messages.dead_letters import discard_all_about
from app.delivery.messages.states import LIVE
from app.delivery.messages.values import Notification, NotificationChange
from app.delivery.old_messages import EMPTY_ACTION, EMPTY_NOTIFICATION
from app.delivery.rename_person import Renamer
from app.delivery.traces_of_person import FoundTraces, PersonTraces, search_values

# ---- what is still on its way ----


def stop_messages(conn: Connection, found: FoundTraces) -> dict[str, int]:
    """Cancels what is on its way to the person. The order of the statements is the lock order."""
    to_person = [one for one in found.notifications if one.is_to_person]
    ids = [one.id for one in to_person]
    withdraw(conn, ids)
    changes = [NotificationChange(one.id, one.action_id) for one in to_person if one.action_id is not None]
    own_actions = [one.id for one in found.actions if one.is_to_person]
    cancelled = cancel_actions_by_id(conn, own_actions)
    wake_actions(conn, [change for change in changes if change.action_id not in set(own_actions)])
    discarded = discard_all_about(conn, ids, own_actions)
    return {"actions_cancelled": cancelled, "dead_letters_discarded": discarded}


_BEING_SENT = text("SELECT count(*) FROM notifications WHERE id = ANY(:ids) AND status = 'SENDING'")


def count_being_sent(conn: Connection, found: FoundTraces) -> int:
    """Messages that a worker has in its memory. It may still write what it has sent."""
    return conn.execute(_BEING_SENT, {"ids": [one.id for one in found.notifications]}).scalar_one()


# ---- messages ----

_HOLD_NOTIFICATIONS = text("SELECT id FROM notifications WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE")
_HOLD_ACTIONS = text("SELECT id FROM actions WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE")
_EMPTY = text(
    f"UPDATE notifications t SET {EMPTY_NOTIFICATION} WHERE id = ANY(:ids) AND NOT ({one_of('status', LIVE)})"
)
_EMPTY_ACTION = text(
    f"UPDATE actions t SET {EMPTY_ACTION}, evaluation_key = NULL WHERE id = ANY(:ids) AND status <> 'RUNNING'"
)
_EMPTY_ATTEMPTS = text(
    "UPDATE notification_attempts SET device_id = NULL, provider_message_id = NULL WHERE notification_id = ANY(:ids)"
)


_READ = text("SELECT id, subject, body, metadata FROM notifications WHERE id = ANY(:ids)")
_RENAME = text(
    "UPDATE notifications SET subject = :subject, body = :body, metadata = CAST(:metadata AS jsonb) WHERE id = :id"
)
_READ_ACTIONS = text(
    "SELECT id, evaluation_key, context, variables, data, steps FROM actions"
    " WHERE id = ANY(:ids) AND status = 'RUNNING'"
)
_RENAME_IN_ACTION = text(
    """
    UPDATE actions SET evaluation_key = :evaluation_key, context = CAST(:context AS jsonb),
           variables = CAST(:variables AS jsonb), data = CAST(:data AS jsonb), steps = CAST(:steps AS jsonb)
     WHERE id = :id
    """
)


def forget_words(conn: Connection, found: FoundTraces, traces: PersonTraces, substitute: str) -> dict[str, int]:
    """Empties finished messages, and takes the name out of the others."""
    kept = [one.id for one in found.notifications if one.may_be_sent and not one.is_to_person]
    emptied = sorted({one.id for one in found.notifications} - set(kept))
    actions = [one.id for one in found.actions]
    rename = Renamer(traces.words, substitute)
    conn.execute(_HOLD_NOTIFICATIONS, {"ids": [one.id for one in found.notifications]})
    notifications = conn.execute(_EMPTY, {"ids": emptied}).rowcount + _rename(conn, kept, rename)
    conn.execute(_EMPTY_ATTEMPTS, {"ids": emptied})
    conn.execute(_HOLD_ACTIONS, {"ids": actions})
    emptied_actions = conn.execute(_EMPTY_ACTION, {"ids": actions}).rowcount
    renamed = _rename_in_actions(conn, actions, rename, found.channels, traces.addresses)
    return {"notifications": notifications, "actions": emptied_actions + renamed}


def _rename(conn: Connection, ids: Sequence[UUID], rename: Renamer) -> int:
    changed = [
        {
            "id": row.id,
            "subject": rename.in_text(row.subject),
            "body": rename.in_text(row.body),
            "metadata": rename.to_json(row.metadata),
        }
        for row in conn.execute(_READ, {"ids": ids})
    ]
    return len(changed) and conn.execute(_RENAME, changed).rowcount


def _rename_in_actions(
    conn: Connection, ids: Sequence[UUID], rename: Renamer, channels: Collection[int], addresses: Collection[str]
) -> int:
    def is_person(target: Mapping[str, Any]) -> bool:
        return target.get("channel_id") in channels or target.get("recipient") in addresses

    changed: list[dict[str, Any]] = []
    for row in conn.execute(_READ_ACTIONS, {"ids": ids}):
        # A target without an address is not sent to: its channel is retired.
        steps = [
            step | {"targets": [one | {"recipient": ""} if is_person(one) else one for one in step["targets"]]}
            if "targets" in step
            else step
            for step in row.steps
        ]
        key = row.evaluation_key
        changed.append(
            {
                "id": row.id,
                "evaluation_key": key if key is not None and rename.in_text(key) == key else None,
                "context": rename.to_json(row.context),
                "variables": rename.to_json(row.variables),
                "data": rename.to_json(row.data),
                "steps": json.dumps(steps, ensure_ascii=False),
            }
        )
    return len(changed) and conn.execute(_RENAME_IN_ACTION, changed).rowcount


# ---- what is about messages ----

_ANYWHERE = "{words} LIKE ANY(:secrets) OR {words} LIKE ANY(:full_names)"
# As in traces_of_person.py. The notification of a copy may be empty already.
_COPY = """
    user_id = :user_id OR notification_id = ANY(:ids) OR {words} LIKE ANY(:secrets)
    OR {words} LIKE ANY(:full_names) AND (user_id = ANY(:namesakes)) IS NOT TRUE AND NOT EXISTS (
       SELECT FROM notifications n WHERE n.id = notification_id AND n.task_id <> ALL(:tasks))
    OR {words} LIKE ANY(:names) AND EXISTS (
       SELECT FROM notifications n WHERE n.id = notification_id AND n.task_id = ANY(:tasks))
"""
_COPIES = {
    "in_app_messages": _COPY.format(words="concat_ws(' ', subject, body, data)"),
    "recorded_pushes": _COPY.format(words="concat_ws(' ', recipient, device_id, title, body, data)"),
    "notification_keys": "caller_id = :user_id OR notification_id = ANY(:ids) OR key LIKE ANY(:only_theirs)",
    "channel_verifications": "channel_id = ANY(:channels)",
    "action_events": "payload::text LIKE ANY(:only_theirs)",
}


def forget_copies(conn: Connection, found: FoundTraces, traces: PersonTraces) -> dict[str, int]:
    """Deletes the copies of messages, and what was written only because of them."""
    values: dict[str, Any] = {
        "user_id": traces.user_id,
        "ids": [one.id for one in found.notifications],
        "channels": list(found.channels),
        **search_values(traces),
    }
    return {
        table: conn.execute(text(f"DELETE FROM {table} WHERE {condition}"), values).rowcount
        for table, condition in _COPIES.items()
    }


# Channels come last in the lock order. A shipped profile, such as that of the coordinators on call, stays in use.
_FORGET_CHANNELS = text(
    """
    UPDATE recipient_channels
       SET target = '', target_meta = '{}', secrets = '{}', enabled = false, updated_at = clock_timestamp(),
           retired_at = coalesce(retired_at, clock_timestamp())
     WHERE id = ANY(:ids) AND (target <> '' OR retired_at IS NULL)
    """
)
_FORGET_PROFILES = text(
    """
    UPDATE recipient_profiles
       SET name = CASE WHEN key IS NULL THEN :name ELSE name END, device_id = NULL,
           status = CASE WHEN key IS NULL THEN false ELSE status END, updated_at = clock_timestamp(),
           retired_at = CASE WHEN key IS NULL THEN coalesce(retired_at, clock_timestamp()) ELSE retired_at END
     WHERE id = ANY(:ids) AND (name <> :name AND key IS NULL OR device_id IS NOT NULL OR retired_at IS NULL)
    """
)
_UNLINK_SHIPPED = text("UPDATE recipient_profiles SET user_id = NULL WHERE id = ANY(:ids) AND key IS NOT NULL")


def forget_directory(conn: Connection, found: FoundTraces, name: str) -> dict[str, int]:
    profiles = list(found.profiles)
    rows = conn.execute(_FORGET_PROFILES, {"ids": profiles, "name": name}).rowcount
    conn.execute(_UNLINK_SHIPPED, {"ids": profiles})
    conn.execute(
        text(f"SELECT id FROM {CHANNELS.table.name} WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE"),
        {"ids": list(found.channels)},
    )
    channels = conn.execute(_FORGET_CHANNELS, {"ids": list(found.channels)}).rowcount
    return {"recipient_profiles": rows, "recipient_channels": channels}


# ---- what stays ----

_AUDITED = text(
    "SELECT count(*) FROM audit_entries WHERE recipient = :recipient OR "
    + _ANYWHERE.format(words="concat_ws(' ', recipient, subject, body, metadata)")
)
_TEMPLATES = text(
    "SELECT count(*) FROM message_templates WHERE " + _ANYWHERE.format(words="concat_ws(' ', subject, body)")
)


_PLANS = text("SELECT count(*) FROM action_plans WHERE " + _ANYWHERE.format(words="concat_ws(' ', name, description)"))
_UNLINKED = text(
    f"SELECT count(*) FROM recipient_profiles WHERE user_id IS NULL AND ({_ANYWHERE.format(words='name')})"
    " AND id <> ALL(:profiles)"
)


def count_kept(conn: Connection, found: FoundTraces, traces: PersonTraces) -> dict[str, int]:
    """Rows that name the person and stay: entries of the audit trail, and the words of operators."""
    values = {"recipient": f"user:{traces.user_id}", **search_values(traces)}
    return {
        "audit_entries": conn.execute(_AUDITED, values).scalar_one(),
        "message_templates": conn.execute(_TEMPLATES, values).scalar_one(),
        "action_plans": conn.execute(_PLANS, values).scalar_one(),
        "recipient_profiles": conn.execute(_UNLINKED, values | {"profiles": list(found.profiles)}).scalar_one(),
    }


def append_to_audit_trail(conn: Connection, entry: Notification, author: str | None = None) -> None:
    audit_trail.append(conn, [entry], author)
