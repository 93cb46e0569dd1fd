"""Reads a user's messages in the app, and marks them as read."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select, text

from app.delivery.channels.models import in_app_messages
from app.foundation.errors import NotFound
from app.foundation.pages import Page, page_of, parse_number


class MessageNotFound(NotFound):
    """There is no such message, or it belongs to another user."""

    code = "message_not_found"


@dataclass(frozen=True)
class InAppMessage:
    id: int
    notification_id: UUID
    subject: str = field(repr=False)
    body: str = field(repr=False)
    data: dict[str, Any] = field(repr=False)
    created_at: datetime
    read_at: datetime | None


def list_messages(
    conn: Connection, user_id: int, *, unread: bool = False, cursor: str | None = None, limit: int = 50
) -> Page[InAppMessage]:
    """Newest first."""
    t = in_app_messages.c
    query = select(t.id, t.notification_id, t.subject, t.body, t.data, t.created_at, t.read_at)
    query = query.where(t.user_id == user_id).order_by(t.id.desc()).limit(limit + 1)
    if unread:
        query = query.where(t.read_at.is_(None))
    if cursor is not None:
        query = query.where(t.id < parse_number(cursor))
    return page_of(conn.execute(query).all(), limit, lambda row: InAppMessage(*row))


_READ = text(
    "UPDATE in_app_messages SET read_at = coalesce(read_at, clock_timestamp()) WHERE id = :id AND user_id = :user_id"
)


def mark_read(conn: Connection, user_id: int, message_id: int) -> None:
    """A message keeps the time at which it was first read."""
    if not conn.execute(_READ, {"id": message_id, "user_id": user_id}).rowcount:
        raise MessageNotFound("There is no such message.")
