"""What delivery takes from other features and shows to them. Plain values."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app.delivery.actions.models import Origin
from app.delivery.models import NotificationStatus, NotificationType, Outcome, Priority


@dataclass(frozen=True)
class NewSubmission:
    """A notification for one address of the kind that its type asks for."""

    notification_type: NotificationType
    recipient: str = field(repr=False)
    """As `check_address` gives it back."""
    body: str = field(repr=False)
    subject: str = field(default="", repr=False)
    priority: Priority = Priority.NORMAL
    metadata: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    expires_at: datetime | None = None
    channel_id: int | None = None
    """The directory's entry it goes to, if it is in there."""


@dataclass(frozen=True)
class SubmissionKey:
    """Whoever sends it again asks for the same notification again."""

    caller_id: int
    text: str


@dataclass(frozen=True)
class Submitted:
    id: UUID
    submitted_at: datetime
    is_new: bool
    """False where the key had brought it before."""


@dataclass(frozen=True)
class NewAction:
    """A plan to be carried out, written in the caller's own transaction."""

    plan: int | str
    """Its id, or the key of a plan that the product ships with, such as `matching.offer`."""
    person_id: int | None = None
    """Whom steps for PERSON go to."""
    variables: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """What templates may say."""
    data: dict[str, str] = field(default_factory=dict[str, str])
    """What an app gets besides the words."""
    priority: Priority = Priority.NORMAL
    expires_at: datetime | None = None
    task_id: UUID | None = None
    evaluation_key: str | None = None
    """The same key is carried out once; none is always carried out."""
    origin: Origin = Origin.INTERNAL
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    """`device_id`, `stream_id`, `group_id`, `rule_id`, `trace_id`: handed back with the results."""


@dataclass(frozen=True)
class Requested:
    id: UUID
    is_new: bool
    """False where the evaluation key had brought it before."""


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
    """Filled where one notification is shown, empty in a list."""


@dataclass(frozen=True)
class NotificationPage:
    items: list[NotificationView]
    next_cursor: str | None
