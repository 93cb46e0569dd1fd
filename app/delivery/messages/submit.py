"""Submits a notification for one address. One statement writes it, so that the caller waits for one commit only."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.plain_statements import execute_later
from app.db.wake import WAKE_CHANNEL
from app.delivery.messages.addresses import ABROAD, InvalidAddress, check_address, is_abroad
from app.delivery.messages.content import problems_with_content
from app.delivery.messages.message_log import note_accepted
from app.delivery.messages.metadata import check_metadata
from app.delivery.messages.traits import traits_of
from app.delivery.messages.values import NotificationType, Priority
from app.foundation.errors import IdempotencyKeyReused, InvalidValues
from app.foundation.ids import uuid7
from app.users.contract import EVERYTHING, REACHED, StaffScope


@dataclass(frozen=True)
class NewSubmission:
    """A notification for one address of its type."""

    notification_type: NotificationType
    recipient: str = field(repr=False)
    """In the canonical form that `check_address` returns."""
    body: str = field(repr=False)
    subject: str = field(default="", repr=False)
    priority: Priority = Priority.NORMAL
    metadata: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    expires_at: datetime | None = None
    channel_id: int | None = None
    """The recipient's channel, if the address comes from the directory."""
    institution_id: int | None = None
    """The institution whose coordinators see it, unless it goes to an elder: then it is that of the elder."""


@dataclass(frozen=True)
class SubmissionKey:
    """A repeated key of the same caller returns the same notification."""

    caller_id: int
    text: str


@dataclass(frozen=True)
class Submitted:
    id: UUID
    submitted_at: datetime
    is_new: bool
    """False if an earlier request with the same key created it."""
    recipient: str = field(default="", repr=False)
    """In canonical form."""


USER = "user:"
_MAY_BE_TOLD = f"EXISTS (SELECT FROM users u WHERE u.id = :user_id AND u.active AND {REACHED})"
# Writes nothing if the scope does not reach the user, if `expires_at` has passed, or if the key was used before. If
# several requests have the same key, the first one that inserts it writes the notification, and the others wait for its
# commit.
_SUBMIT = text(
    f"""
    WITH wanted AS MATERIALIZED (
        SELECT WHERE (CAST(:expires_at AS timestamptz) > clock_timestamp()) IS NOT FALSE
           AND (CAST(:user_id AS bigint) IS NULL OR {_MAY_BE_TOLD})
    ), first AS (
        INSERT INTO notification_keys (caller_id, key, digest, notification_id)
        SELECT :caller_id, :key, :digest, :id FROM wanted WHERE CAST(:key AS text) IS NOT NULL
            ON CONFLICT DO NOTHING
        RETURNING key
    ), added AS (
        INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority,
                                   metadata, channel_id, institution_id, expires_at)
        SELECT :id, :notification_type, :recipient, :user_id, :subject, :body, :priority,
               CAST(:metadata AS jsonb), CAST(:channel_id AS bigint), CASE WHEN elder.id IS NULL
               THEN CAST(:institution_id AS bigint) ELSE elder.institution_id END, CAST(:expires_at AS timestamptz)
          FROM wanted LEFT JOIN users elder ON elder.id = CAST(:user_id AS bigint) AND elder.role = 'ELDER'
         WHERE CAST(:key AS text) IS NULL OR EXISTS (SELECT FROM first)
        RETURNING created_at, notification_type
    )
    SELECT created_at, pg_notify(:channel, notification_type) FROM added
    """
)
_FIND_KEY = text(
    """
    SELECT k.digest, k.notification_id AS id, coalesce(n.created_at, k.created_at) AS created_at
      FROM notification_keys k LEFT JOIN notifications n ON n.id = k.notification_id
     WHERE k.caller_id = :caller_id AND k.key = :key
    """
)


def submit(
    conn: Connection, new: NewSubmission, key: SubmissionKey | None = None, scope: StaffScope = EVERYTHING
) -> Submitted:
    """The caller has checked the recipient with `check_address`. A repeated key returns the same notification."""
    values = _values(new, key) | scope.values
    row = conn.execute(_SUBMIT, values).one_or_none()
    if row is not None:
        note_accepted(values["id"], new.notification_type)
        return Submitted(values["id"], row.created_at, is_new=True, recipient=new.recipient)
    before = conn.execute(_FIND_KEY, values).one_or_none() if key is not None else None
    if before is None:
        problems = _check_database(conn, scope, values["user_id"], new.expires_at)
        if not problems:
            # The user was created between the two statements.
            return submit(conn, new, key, scope)
        raise InvalidValues(problems)
    if before.digest != values["digest"]:
        raise IdempotencyKeyReused("This Idempotency-Key was used for a different notification.")
    return Submitted(before.id, before.created_at, is_new=False)


def submit_later(conn: Connection, new: NewSubmission) -> None:
    """For a message that nothing can refuse, because it is not for a user and does not expire. Its statement is sent
    with the next one of the transaction."""
    values = _values(new, None) | EVERYTHING.values
    assert values["user_id"] is None and new.expires_at is None
    execute_later(conn, _SUBMIT, values)
    note_accepted(values["id"], new.notification_type)


def _values(new: NewSubmission, key: SubmissionKey | None) -> dict[str, Any]:
    id_ = uuid7()
    metadata = new.metadata
    if traits_of(new.notification_type).is_for_apps:
        metadata = {**metadata, "data": {**metadata.get("data", {}), "notificationId": str(id_)}}
    return {
        "id": id_,
        "notification_type": new.notification_type.value,
        "recipient": new.recipient,
        "user_id": user_in(new.notification_type, new.recipient),
        "subject": new.subject,
        "body": new.body,
        "priority": new.priority.value,
        "metadata": json.dumps(metadata, ensure_ascii=False),
        "channel_id": new.channel_id,
        "institution_id": new.institution_id,
        "expires_at": new.expires_at,
        "caller_id": key.caller_id if key else None,
        "key": key.text if key else None,
        "digest": digest(new) if key else None,
        "channel": WAKE_CHANNEL,
    }


def user_in(notification_type: str, recipient: str) -> int | None:
    """The id of the user in a checked address; None if the address is not that of a user."""
    is_user = traits_of(notification_type).is_for_apps and recipient.startswith(USER)
    return int(recipient.removeprefix(USER)) if is_user else None


def digest(new: NewSubmission) -> bytes:
    """A hash of the content. It does not depend on the order of the members in the JSON."""
    content = [
        new.notification_type,
        new.recipient,
        new.subject,
        new.body,
        new.priority,
        new.metadata,
        new.channel_id,
        new.expires_at.isoformat() if new.expires_at else None,
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()


def submit_notification(
    conn: Connection,
    scope: StaffScope,
    new: NewSubmission,
    country_code: str,
    key: SubmissionKey | None = None,
    *,
    countries: tuple[str, ...] = (),
) -> Submitted:
    """Checks and submits the notification. Raises `InvalidValues` with all problems. A user whom the scope does not
    reach is refused like one who does not exist."""
    recipient, problems = _check_values(new.notification_type, new.recipient, new.metadata, country_code, countries)
    if "metadata" not in problems:
        problems |= problems_with_content(new.notification_type, new.subject, new.body, new.metadata)
    if problems:
        user_id = user_in(new.notification_type, recipient)
        raise InvalidValues(problems | _check_database(conn, scope, user_id, new.expires_at))
    return submit(conn, replace(new, recipient=recipient, institution_id=scope.institution_id), key, scope)


def refusals_of_submission(
    conn: Connection,
    scope: StaffScope,
    notification_type: NotificationType | None,
    recipient: str | None,
    metadata: dict[str, Any] | None,
    expires_at: datetime | None,
    country_code: str,
    countries: tuple[str, ...] = (),
) -> dict[str, str]:
    """The problems of the fields that could be read, by field, for a request that is refused because of others."""
    address, problems = _check_values(notification_type, recipient, metadata, country_code, countries)
    user_id = user_in(notification_type, address) if notification_type else None
    return problems | _check_database(conn, scope, user_id, expires_at)


def _check_values(
    notification_type: NotificationType | None,
    recipient: str | None,
    metadata: dict[str, Any] | None,
    country_code: str,
    countries: tuple[str, ...],
) -> tuple[str, dict[str, str]]:
    """The address in canonical form, or empty, and the problems that can be found without the database."""
    problems: dict[str, str] = {}
    address = ""
    if notification_type is not None and recipient is not None:
        try:
            address = check_address(notification_type, recipient, country_code)
        except InvalidAddress as error:
            problems["recipient"] = str(error)
        if is_abroad(notification_type, address, countries):
            problems.setdefault("recipient", ABROAD)
    wrong = check_metadata(metadata or {})
    if wrong is not None:
        problems["metadata"] = wrong
    return address, problems


_CHECK_DATABASE = text(
    f"""
    SELECT (CAST(:user_id AS bigint) IS NOT NULL AND NOT {_MAY_BE_TOLD}) AS unknown,
           (CAST(:expires_at AS timestamptz) <= clock_timestamp()) IS TRUE AS late
    """
)


def _check_database(
    conn: Connection, scope: StaffScope, user_id: int | None, expires_at: datetime | None
) -> dict[str, str]:
    """The problems that only the database can find: a user who is not reached, and a time that has passed."""
    if user_id is None and expires_at is None:
        return {}
    values = {"user_id": user_id, "expires_at": expires_at, **scope.values}
    row = conn.execute(_CHECK_DATABASE, values).one()
    problems = {"recipient": "is not the id of a user"} if row.unknown else {}
    return problems | ({"expiresAt": "has passed already"} if row.late else {})
