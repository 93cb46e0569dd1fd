"""The values that all packages of delivery use: a notification, its types and states, and its addresses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from app.users.models import AddressKind

ACTION_TOPIC = "action"
"""The topic of announcements (see `db/wake.py`) that an action is due."""


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
        """The type in lower case, as the directory, plans and published events spell it."""
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
    """There is no clear answer: the provider may have taken the message."""


HIDDEN = "••••••"
"""Shown instead of what no view shows."""
VERIFICATION = "verification"
"""A key in the metadata of a notification that holds a verification code. No view shows the notification's text."""
CODE = "code"
"""The value of that key if the code is in the text."""


@dataclass(frozen=True)
class Notification:
    id: UUID
    notification_type: str
    recipient: str = field(repr=False)
    """An e-mail address, phone number, token, URL or user id, by type. It never appears in logs."""
    subject: str = field(repr=False)
    body: str = field(repr=False)
    priority: Priority
    created_at: datetime
    metadata: dict[str, Any] = field(repr=False)
    recipient_user_id: int | None = None
    expires_at: datetime | None = None

    @property
    def data(self) -> dict[str, str]:
        """Data for an app or a machine, besides the text."""
        return self.metadata.get("data") or {}

    @property
    def is_data_only(self) -> bool:
        return not self.subject and not self.body


@dataclass(frozen=True)
class Device:
    device_id: str
    token: str = field(repr=False)
    """Anybody who has the token can send to the phone, so it never appears in logs and errors."""
    address_kind: AddressKind


@dataclass(frozen=True)
class RecipientChannel:
    """A channel of a profile in the directory."""

    channel_id: int
    meta: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The secrets that sign the requests to a webhook, the newest first."""


CHALLENGE = "challenge"
"""A key in the metadata of a notification that verifies a webhook. Its value is the text that the webhook has to
return."""


@dataclass(frozen=True)
class NotificationChange:
    """What a claim, or the record of an attempt, has changed."""

    id: UUID
    action_id: UUID | None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    has_ended: bool = True
    """The notification has just got a final status."""
    channel_id: int | None = None
    """The recipient's channel in the directory, if it is in use."""
    is_refused: bool = False
    """The recipient's channel wants no more messages."""


@dataclass(frozen=True)
class Follower:
    """Follow-up work of another package, in the transaction in which notifications change."""

    concerns: Callable[[NotificationChange], bool]
    follow: Callable[[Connection, Sequence[NotificationChange]], None]


def follow(conn: Connection, followers: Sequence[Follower], changes: Sequence[NotificationChange]) -> None:
    """The order of the followers is the order in which they lock rows."""
    for follower in followers:
        concerned = [change for change in changes if follower.concerns(change)]
        if concerned:
            follower.follow(conn, concerned)
