"""Inserts notifications directly into the queue, without an action or a request: many at once, with any values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.db.wake import WAKE_CHANNEL
from app.delivery.messages.values import NotificationType, Priority
from app.foundation.ids import uuid7


@dataclass(frozen=True)
class NewNotification:
    """A notification for one person, written in the caller's own transaction."""

    recipient_user_id: int
    subject: str
    """The title on the phone. Empty together with `body` for a message that only the app reads."""
    body: str
    data: dict[str, str]
    """Values for the app besides the text: `type`, `taskId`, `deadline`; delivery adds `notificationId`."""
    task_id: UUID | None = None
    priority: Priority = Priority.NORMAL
    expires_at: datetime | None = None
    notification_type: NotificationType = NotificationType.PUSH
    extra: dict[str, str] = field(default_factory=dict[str, str])


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
