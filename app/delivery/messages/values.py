"""The values that all of delivery names: a notification, its kinds and states, and where it goes."""

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
    """The kind of channel a notification leaves by."""

    EMAIL = "EMAIL"
    SMS = "SMS"
    PUSH = "PUSH"
    IN_APP = "IN_APP"
    WEBHOOK = "WEBHOOK"
    WHATSAPP = "WHATSAPP"
    AUDIT = "AUDIT"

    @property
    def channel_type(self) -> str:
        """As the directory, plans and events write it."""
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


class DeadLetterStatus(StrEnum):
    OPEN = "OPEN"
    REDRIVEN = "REDRIVEN"
    COVERED = "COVERED"
    """Another channel, or a later try, brought the message."""
    DISCARDED = "DISCARDED"
    """Somebody has decided that it need not arrive any more."""


class Outcome(StrEnum):
    """What became of one try to reach one address."""

    SENT = "SENT"
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    RECIPIENT_GONE = "RECIPIENT_GONE"
    UNKNOWN = "UNKNOWN"
    """The provider may or may not have taken it."""


VERIFICATION = "verification"
"""In the metadata of a notification whose words prove who reads them: nobody else may see them."""


@dataclass(frozen=True)
class Notification:
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


@dataclass(frozen=True)
class Device:
    device_id: str
    token: str = field(repr=False)
    """Whoever has it can reach the phone: it stays out of logs and errors."""
    address_kind: AddressKind


@dataclass(frozen=True)
class RecipientChannel:
    """What the directory knows about the channel of a recipient."""

    channel_id: int
    meta: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Sign what goes to a webhook; the newest first."""


CHALLENGE = "challenge"
"""In the metadata of the notification that verifies a webhook: what must come back."""


@dataclass(frozen=True)
class Ended:
    """A notification that has just come to its end."""

    id: UUID
    action_id: UUID | None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


Follower = Callable[[Connection, Sequence[Ended]], None]
"""Follow-up work of another package, in the transaction in which notifications end. Followers are called in the order
in which they are given, because that is the order in which they lock rows."""
