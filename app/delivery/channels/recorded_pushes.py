"""Reads the pushes that were recorded for a user instead of sent, as their phone would have shown them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.delivery.messages.values import NotificationType
from app.foundation.errors import NotFound
from app.foundation.pages import BIGINT_MAX, Page, page_of, parse_number
from app.settings.settings import Settings


class PushesNotRecorded(NotFound):
    """Pushes are sent here, and not recorded."""

    code = "pushes_not_recorded"


@dataclass(frozen=True)
class RecordedPush:
    id: int
    notification_id: UUID
    title: str | None = field(repr=False)
    body: str | None = field(repr=False)
    data: dict[str, Any] = field(repr=False)
    recorded_at: datetime


# A push is recorded for each device of the user.
_OF_USER = text(
    """
    SELECT id, notification_id, title, body, data, shown_at FROM recorded_pushes p
     WHERE user_id = :user_id AND notification_type = :type AND id < :before
       AND NOT EXISTS (SELECT FROM recorded_pushes o WHERE o.notification_id = p.notification_id AND o.id < p.id)
     ORDER BY id DESC LIMIT :limit
    """
)


def check_pushes_recorded(settings: Settings) -> None:
    if NotificationType.PUSH not in settings.recorded_types:
        raise PushesNotRecorded("Pushes are sent here, and not recorded.")


def list_recorded_pushes(conn: Connection, user_id: int, *, cursor: str | None, limit: int) -> Page[RecordedPush]:
    """Newest first."""
    before = BIGINT_MAX if cursor is None else parse_number(cursor)
    values = {"user_id": user_id, "type": NotificationType.PUSH.value, "before": before, "limit": limit + 1}
    return page_of(conn.execute(_OF_USER, values).all(), limit, lambda row: RecordedPush(*row))
