"""Forgets a person in delivery. Messages to them are not sent any more. Messages about them, which others still have to
get, are sent without their name. All other words are emptied."""

import re
from collections.abc import Collection, Iterator, Sequence
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
from app.delivery.plans.service import retire_routes_to
from app.delivery.traces_of_person import FoundTraces, PersonTraces, in_json, search_values

AT_ONCE = 500


def chunks(ids: Collection[UUID]) -> Iterator[list[UUID]]:
    ordered = sorted(ids)
    for start in range(0, len(ordered), AT_ONCE):
        yield ordered[start : start + AT_ONCE]


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


_RENAME = text(
    """
    UPDATE notifications SET subject = regexp_replace(subject, :words, :substitute, 'g'),
           body = regexp_replace(body, :words, :substitute, 'g'),
           metadata = CAST(regexp_replace(metadata::text, :in_json, :substitute, 'g') AS jsonb)
     WHERE id = ANY(:ids)
    """
)
_RENAME_IN_ACTION = text(
    """
    UPDATE actions SET context = CAST(regexp_replace(context::text, :in_json, :substitute, 'g') AS jsonb),
           variables = CAST(regexp_replace(variables::text, :in_json, :substitute, 'g') AS jsonb),
           data = CAST(regexp_replace(data::text, :in_json, :substitute, 'g') AS jsonb)
     WHERE id = ANY(:ids) AND status = 'RUNNING'
    """
)


def forget_words(conn: Connection, found: FoundTraces, traces: PersonTraces, substitute: str) -> dict[str, int]:
    """Empties finished messages, and takes the name out of the others."""
    kept = [one.id for one in found.notifications if one.may_be_sent and not one.is_to_person]
    emptied = {one.id for one in found.notifications} - set(kept)
    rows = {"notifications": 0, "actions": 0}
    for ids in chunks(emptied):
        conn.execute(_HOLD_NOTIFICATIONS, {"ids": ids})
        rows["notifications"] += conn.execute(_EMPTY, {"ids": ids}).rowcount
        conn.execute(_EMPTY_ATTEMPTS, {"ids": ids})
    words = {"words": _any_of(traces.words), "in_json": _any_of(in_json(traces.words)), "substitute": substitute}
    for ids in chunks(kept) if traces.words else ():
        conn.execute(_HOLD_NOTIFICATIONS, {"ids": ids})
        rows["notifications"] += conn.execute(_RENAME, {"ids": ids, **words}).rowcount
    for ids in chunks([one.id for one in found.actions]):
        conn.execute(_HOLD_ACTIONS, {"ids": ids})
        rows["actions"] += conn.execute(_EMPTY_ACTION, {"ids": ids}).rowcount
        if traces.words:
            rows["actions"] += conn.execute(_RENAME_IN_ACTION, {"ids": ids, **words}).rowcount
    return rows


def _any_of(words: Sequence[str]) -> str:
    """A regular expression."""
    return "|".join(re.escape(word) for word in words)


# ---- what is about messages ----

_ANYWHERE = "{words} LIKE ANY(:secrets) OR {words} LIKE ANY(:full_names)"
_COPIES = {
    "in_app_messages": "user_id = :user_id OR notification_id = ANY(:ids) OR "
    + _ANYWHERE.format(words="concat_ws(' ', subject, body, data)"),
    "recorded_pushes": "user_id = :user_id OR notification_id = ANY(:ids) OR "
    + _ANYWHERE.format(words="concat_ws(' ', recipient, device_id, title, body, data)"),
    "notification_keys": "caller_id = :user_id OR notification_id = ANY(:ids) OR " + _ANYWHERE.format(words="key"),
    "channel_verifications": "channel_id = ANY(:channels)",
    "action_events": _ANYWHERE.format(words="payload::text"),
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
_IN_USE = text(
    "SELECT * FROM recipient_profiles WHERE id = ANY(:ids) AND retired_at IS NULL AND key IS NULL ORDER BY id"
)


def forget_directory(conn: Connection, found: FoundTraces, name: str) -> dict[str, int]:
    profiles = list(found.profiles)
    for profile in conn.execute(_IN_USE, {"ids": profiles}).all():
        retire_routes_to(conn, profile)
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


def count_kept(conn: Connection, traces: PersonTraces) -> dict[str, int]:
    """Rows that name the person and stay: entries of the audit trail, and the words of operators."""
    values = {"recipient": f"user:{traces.user_id}", **search_values(traces)}
    return {
        "audit_entries": conn.execute(_AUDITED, values).scalar_one(),
        "message_templates": conn.execute(_TEMPLATES, values).scalar_one(),
    }


def append_to_audit_trail(conn: Connection, entry: Notification) -> None:
    audit_trail.append(conn, [entry])
