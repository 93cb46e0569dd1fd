"""What waits in the app for its reader."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select, text

from app.delivery.channels.models import in_app_messages
from app.delivery.cursors import number_of
from app.errors import NotFound


class MessageNotFound(NotFound):
    """There is no such message, or it is somebody else's."""

    code = "message_not_found"


@dataclass(frozen=True)
class Message:
    id: int
    notification_id: UUID
    subject: str = field(repr=False)
    body: str = field(repr=False)
    data: dict[str, Any] = field(repr=False)
    created_at: datetime
    read_at: datetime | None


@dataclass(frozen=True)
class MessagePage:
    items: list[Message]
    next_cursor: str | None


def list_messages(
    conn: Connection, user_id: int, *, unread: bool = False, cursor: str | None = None, limit: int = 50
) -> MessagePage:
    """Newest first."""
    t = in_app_messages.c
    query = select(t.id, t.notification_id, t.subject, t.body, t.data, t.created_at, t.read_at)
    query = query.where(t.user_id == user_id).order_by(t.id.desc()).limit(limit + 1)
    if unread:
        query = query.where(t.read_at.is_(None))
    if cursor is not None:
        query = query.where(t.id < number_of(cursor))
    rows = conn.execute(query).all()
    items = [Message(*row) for row in rows[:limit]]
    return MessagePage(items, str(items[-1].id) if len(rows) > limit else None)


_READ = text(
    "UPDATE in_app_messages SET read_at = coalesce(read_at, clock_timestamp()) WHERE id = :id AND user_id = :user_id"
)


def mark_read(conn: Connection, user_id: int, message_id: int) -> None:
    """Once read, a message stays read since then."""
    if not conn.execute(_READ, {"id": message_id, "user_id": user_id}).rowcount:
        raise MessageNotFound("There is no such message.")
