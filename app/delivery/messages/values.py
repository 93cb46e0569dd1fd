"""The values that all of delivery uses: a notification, its types and states, and its addresses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from app.users.models import AddressKind

ACTION_TOPIC = "action"
"""Announced (see `db/wake.py`) when an action has a step to run."""


class NotificationType(StrEnum):
    """The kind of channel that sends a notification."""

    EMAIL = "EMAIL"
    SMS = "SMS"
    PUSH = "PUSH"
    IN_APP = "IN_APP"
    WEBHOOK = "WEBHOOK"
    WHATSAPP = "WHATSAPP"
    AUDIT = "AUDIT"

    @property
    def channel_type(self) -> str:
        """The spelling of the directory, of plans and of published events."""
        return self.value.lower()


class Priority(StrEnum):
    LOW = "LOW"
    NORMAL = "NORMAL"
    HIGH = "HIGH"
    URGENT = "URGENT"


URGENT_FIRST = (Priority.URGENT, Priority.HIGH, Priority.NORMAL, Priority.LOW)


class NotificationStatus(StrEnum):
    ACCEPTED = "ACCEPTED"
    SENDING = "SENDING"
    RETRYING = "RETRYING"
    SENT = "SENT"
    DEAD = "DEAD"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


class Outcome(StrEnum):
    """The result of sending to one address."""

    SENT = "SENT"
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    RECIPIENT_GONE = "RECIPIENT_GONE"
    UNKNOWN = "UNKNOWN"
    """The provider may have taken the message."""


VERIFICATION = "verification"
"""A key in the metadata of a notification that carries a verification code: its text is shown to nobody else."""


@dataclass(frozen=True)
class Notification:
    id: UUID
    notification_type: str
    recipient: str = field(repr=False)
    """An e-mail address, phone number, token or URL, as the type requires. It is kept out of logs."""
    subject: str = field(repr=False)
    body: str = field(repr=False)
    priority: Priority
    created_at: datetime
    metadata: dict[str, Any] = field(repr=False)
    recipient_user_id: int | None = None
    expires_at: datetime | None = None

    @property
    def data(self) -> dict[str, str]:
        """What an app or a machine gets besides the text."""
        return self.metadata.get("data") or {}

    @property
    def is_data_only(self) -> bool:
        return not self.subject and not self.body


@dataclass(frozen=True)
class Device:
    device_id: str
    token: str = field(repr=False)
    """Anybody who has it can send to the phone, so it is kept out of logs and errors."""
    address_kind: AddressKind


@dataclass(frozen=True)
class RecipientChannel:
    """A channel of a profile in the directory."""

    channel_id: int
    meta: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """They sign webhooks; the newest comes first."""


CHALLENGE = "challenge"
"""A key in the metadata of a notification that verifies a webhook: the text that the webhook has to return."""


@dataclass(frozen=True)
class Ended:
    """A notification that has just got a final status."""

    id: UUID
    action_id: UUID | None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


Follower = Callable[[Connection, Sequence[Ended]], None]
"""Follow-up work of another package, in the transaction in which notifications end. Followers are called in the order
in which they are given, because that is the order in which they lock rows."""
