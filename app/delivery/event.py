"""A notification as it travels from the queue to a channel. It is made once and never changed."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app.delivery.models import Priority


@dataclass(frozen=True)
class NotificationEvent:
    id: UUID
    notification_type: str
    recipient: str = field(repr=False)
    """An address of the kind that the type asks for: a person's mail, phone, token or URL stays out of logs."""
    subject: str = field(repr=False)
    body: str = field(repr=False)
    priority: Priority
    created_at: datetime
    metadata: dict[str, Any] = field(repr=False)
    recipient_user_id: int | None = None
    expires_at: datetime | None = None

    @property
    def data(self) -> dict[str, str]:
        """What an app or a machine gets besides the words."""
        return self.metadata.get("data") or {}

    @property
    def is_data_only(self) -> bool:
        return not self.subject and not self.body
