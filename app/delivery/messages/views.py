"""Views of notifications for coordinators."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, Select, literal_column, select, text

from app.delivery.messages.models import notifications
from app.delivery.messages.values import HIDDEN, VERIFICATION, NotificationStatus, NotificationType, Outcome, Priority
from app.foundation.errors import NotFound
from app.foundation.pages import Page, page_of, parse_uuid
from app.users.contract import StaffScope


@dataclass(frozen=True)
class AttemptView:
    attempt: int
    device_id: str | None
    outcome: Outcome
    error_code: str | None
    provider_message_id: str | None
    at: datetime


@dataclass(frozen=True)
class NotificationView:
    id: UUID
    notification_type: NotificationType
    recipient: str = field(repr=False)
    recipient_user_id: int | None
    subject: str = field(repr=False)
    body: str = field(repr=False)
    priority: Priority
    status: NotificationStatus
    metadata: dict[str, Any] = field(repr=False)
    task_id: UUID | None
    created_at: datetime
    expires_at: datetime | None
    finished_at: datetime | None
    error_code: str | None
    attempts: list[AttemptView] = field(default_factory=list[AttemptView])
    """Empty in a list of notifications."""


def list_notifications(
    conn: Connection,
    scope: StaffScope,
    *,
    recipient_user_id: int | None = None,
    status: NotificationStatus | None = None,
    notification_type: NotificationType | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[NotificationView]:
    """Newest first: ids increase with time."""
    query = _seen(scope).order_by(notifications.c.id.desc()).limit(limit + 1)
    if recipient_user_id is not None:
        query = query.where(notifications.c.recipient_user_id == recipient_user_id)
    if status is not None:
        # A literal, because the planner uses a partial index only for a value that it can see.
        query = query.where(notifications.c.status == literal_column(f"'{status.value}'"))
    if notification_type is not None:
        query = query.where(notifications.c.notification_type == notification_type.value)
    if cursor is not None:
        query = query.where(notifications.c.id < parse_uuid(cursor))
    return page_of(conn.execute(query).mappings().all(), limit, _view)


def _seen(scope: StaffScope) -> Select[Any]:
    return select(notifications).where(text(scope.sees("notifications.institution_id")))


def get_notification(conn: Connection, scope: StaffScope, id_: UUID) -> NotificationView:
    row = conn.execute(_seen(scope).where(notifications.c.id == id_)).mappings().one_or_none()
    if row is None:
        raise NotFound("There is no such notification.")
    return _view(row, _attempts(conn, id_))


def _attempts(conn: Connection, id_: UUID) -> list[AttemptView]:
    rows = conn.execute(
        text(
            "SELECT attempt, device_id, outcome, error_code, provider_message_id, at FROM notification_attempts"
            " WHERE notification_id = :id ORDER BY id"
        ),
        {"id": id_},
    )
    # If a push went to a token and not to a user, the device has no id.
    return [
        AttemptView(
            row.attempt, row.device_id or None, Outcome(row.outcome), row.error_code, row.provider_message_id, row.at
        )
        for row in rows
    ]


SHOWN_TOKEN_CHARACTERS = 4


def shown_recipient(notification_type: str, recipient: str, user_id: int | None) -> str:
    """Anybody who has the token of a phone can send to it, so only the end of the token is shown."""
    if notification_type != NotificationType.PUSH or user_id is not None:
        return recipient
    return "…" + recipient[SHOWN_TOKEN_CHARACTERS:][-SHOWN_TOKEN_CHARACTERS:]


def _view(row: RowMapping, attempts: list[AttemptView] | None = None) -> NotificationView:
    # Without a channel of the directory, the key in the metadata is the caller's own data, and the text is not a code.
    is_secret = VERIFICATION in row["metadata"] and row["channel_id"] is not None
    return NotificationView(
        id=row["id"],
        notification_type=NotificationType(row["notification_type"]),
        recipient=shown_recipient(row["notification_type"], row["recipient"], row["recipient_user_id"]),
        recipient_user_id=row["recipient_user_id"],
        subject=HIDDEN if is_secret else row["subject"],
        body=HIDDEN if is_secret else row["body"],
        priority=Priority(row["priority"]),
        status=NotificationStatus(row["status"]),
        metadata={VERIFICATION: row["metadata"][VERIFICATION]} if is_secret else row["metadata"],
        task_id=row["task_id"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        finished_at=row["finished_at"],
        error_code=row["error_code"],
        attempts=attempts or [],
    )
