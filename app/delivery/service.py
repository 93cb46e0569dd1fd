"""What other features may ask of delivery. Everything happens in the caller's transaction."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, literal_column, select, text

from app.delivery.contract import AttemptView, NewNotification, NotificationPage, NotificationView
from app.delivery.models import VERIFICATION, NotificationStatus, NotificationType, Outcome, Priority, notifications
from app.delivery.submit import checked, refusals, submit
from app.delivery.wake import ACTION_TOPIC, WAKE_CHANNEL
from app.errors import InvalidValue, NotFound
from app.ids import uuid7

__all__ = ["ACTION_TOPIC", "WAKE_CHANNEL", "checked", "refusals", "submit"]

# One statement for any number of rows: it runs inside the transactions that offers are made in. The wake-up call
# reaches the dispatchers when the caller commits, and only shortens their wait.
_ENQUEUE = text(
    """
    WITH inserted AS (
        INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body, priority,
                                   metadata, task_id, expires_at)
        SELECT id, notification_type, 'user:' || recipient_user_id, recipient_user_id, subject, body, priority,
               metadata, task_id, expires_at
          FROM json_to_recordset(CAST(:rows AS json)) AS row(
               id uuid, notification_type text, recipient_user_id bigint, subject text, body text, priority text,
               metadata jsonb, task_id uuid, expires_at timestamptz)
        RETURNING notification_type
    )
    SELECT pg_notify(:channel, notification_type) FROM inserted GROUP BY notification_type
    """
)


def enqueue(conn: Connection, new: Sequence[NewNotification]) -> list[UUID]:
    if not new:
        return []
    ids = [uuid7() for _ in new]
    rows = [_row(id_, one) for id_, one in zip(ids, new, strict=True)]
    conn.execute(_ENQUEUE, {"rows": json.dumps(rows, ensure_ascii=False), "channel": WAKE_CHANNEL})
    return ids


def _row(id_: UUID, new: NewNotification) -> dict[str, Any]:
    return {
        "id": str(id_),
        "notification_type": new.notification_type,
        "recipient_user_id": new.recipient_user_id,
        "subject": new.subject,
        "body": new.body,
        "priority": new.priority,
        "metadata": {**new.extra, "data": {**new.data, "notificationId": str(id_)}},
        "task_id": str(new.task_id) if new.task_id else None,
        "expires_at": new.expires_at.isoformat() if new.expires_at else None,
    }


def list_notifications(
    conn: Connection,
    *,
    recipient_user_id: int | None = None,
    status: NotificationStatus | None = None,
    notification_type: NotificationType | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> NotificationPage:
    """Newest first; ids are made in the order of time."""
    query = select(notifications).order_by(notifications.c.id.desc()).limit(limit + 1)
    if recipient_user_id is not None:
        query = query.where(notifications.c.recipient_user_id == recipient_user_id)
    if status is not None:
        # Spelled out, because a partial index is of use only where the planner can see the value.
        query = query.where(notifications.c.status == literal_column(f"'{status.value}'"))
    if notification_type is not None:
        query = query.where(notifications.c.notification_type == notification_type.value)
    if cursor is not None:
        query = query.where(notifications.c.id < _parse_cursor(cursor))
    rows = conn.execute(query).mappings().all()
    items = [_view(row) for row in rows[:limit]]
    return NotificationPage(items, str(items[-1].id) if len(rows) > limit else None)


def get_notification(conn: Connection, id_: UUID) -> NotificationView:
    row = conn.execute(select(notifications).where(notifications.c.id == id_)).mappings().one_or_none()
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
    # A phone that was given by its token alone has no id.
    return [
        AttemptView(
            row.attempt, row.device_id or None, Outcome(row.outcome), row.error_code, row.provider_message_id, row.at
        )
        for row in rows
    ]


def _parse_cursor(cursor: str) -> UUID:
    try:
        return UUID(cursor)
    except ValueError:
        raise InvalidValue("cursor", "is not a cursor that this list has given out") from None


SHOWN_OF_A_TOKEN = 4


def _shown_recipient(row: RowMapping) -> str:
    """Whoever has a phone's token can reach the phone, so its end is all that is shown of it."""
    if row["notification_type"] != NotificationType.PUSH or row["recipient_user_id"] is not None:
        return row["recipient"]
    return "…" + row["recipient"][SHOWN_OF_A_TOKEN:][-SHOWN_OF_A_TOKEN:]


HIDDEN = "••••••"


def _view(row: RowMapping, attempts: list[AttemptView] | None = None) -> NotificationView:
    is_secret = VERIFICATION in row["metadata"]
    return NotificationView(
        id=row["id"],
        notification_type=NotificationType(row["notification_type"]),
        recipient=_shown_recipient(row),
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
