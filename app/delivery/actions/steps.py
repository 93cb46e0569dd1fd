"""What a run of a plan is made of, what is known of it, and what it may ask for. Values only; `run.py` decides."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from app.delivery.actions.models import ActionStatus
from app.delivery.messages.states import LIVE
from app.delivery.messages.values import NotificationStatus
from app.delivery.plans.models import Audience, OnFailure


class StepState(StrEnum):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    SENT = "SENT"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    """Everybody it would have gone to is switched off."""
    HANDED_OVER = "HANDED_OVER"
    CANCELLED = "CANCELLED"


UNENDED = frozenset({StepState.WAITING, StepState.RUNNING})


@dataclass(frozen=True)
class Target:
    """One address of one recipient."""

    channel_type: str
    recipient: str = field(repr=False)
    locale: str = "tr"
    user_id: int | None = None
    channel_id: int | None = None
    """The directory's entry."""
    address_kind: str | None = None
    notification_id: UUID | None = None
    """The message to it, once there is one."""
    withdrawn: bool = False


@dataclass(frozen=True)
class StepRun:
    order: int
    channel_type: str
    audience: Audience = Audience.ROUTES
    template_key: str | None = None
    on_failure: OnFailure = OnFailure.STOP
    fallback: tuple[str, ...] = ()
    within_s: int | None = None
    state: StepState = StepState.WAITING
    targets: tuple[Target, ...] = ()
    tried: int = 0
    """How many of the targets had their turn."""
    asked_at: datetime | None = None
    """When the last of them was sent its message."""
    error_code: str | None = None

    @property
    def has_next(self) -> bool:
        return self.tried < len(self.targets)

    @property
    def messages(self) -> list[UUID]:
        return [target.notification_id for target in self.targets if target.notification_id is not None]


@dataclass(frozen=True)
class Run:
    steps: tuple[StepRun, ...]
    expires_at: datetime | None = None
    status: ActionStatus = ActionStatus.RUNNING

    @property
    def messages(self) -> list[UUID]:
        """Those that somebody still waits for."""
        return [id_ for step in self.steps if step.state is StepState.RUNNING for id_ in step.messages]

    def is_over(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


# ---- what is known ----


@dataclass(frozen=True)
class Seen:
    """A message as it was read."""

    status: NotificationStatus
    may_have_arrived: bool = False
    """One of its tries ended without an answer that can be trusted, or reached one phone of several."""
    error_code: str | None = None
    retry_count: int = 0
    retryable: bool = False
    """More patience might have helped."""
    provider_message_id: str | None = None
    is_elsewhere: bool = False
    """Somebody holds its row at this moment, so this may be history already."""

    @property
    def is_live(self) -> bool:
        return self.status in LIVE


GONE = Seen(NotificationStatus.CANCELLED)


@dataclass(frozen=True)
class Found:
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Nobody:
    """There is nobody to send to, or no way to."""

    error_code: str


class Special(StrEnum):
    ALL_OFF = "ALL_OFF"
    """There are recipients, and each of them is switched off."""
    ELSEWHERE = "ELSEWHERE"
    """Another service carries out steps of this type."""
    LATER = "LATER"
    """Whoever asks here does not know the settings it takes."""


Resolution = Found | Nobody | Special


class Desk(Protocol):
    """Knows the directory and the words, as they were read for this run."""

    def resolve(self, step: StepRun) -> Resolution: ...

    def fault(self, step: StepRun, target: Target) -> str | None:
        """Why no message can be made for this target; None when one can, and `LATER` when that is not known here."""
        ...

    def new_id(self) -> UUID: ...


# ---- what is to be done ----


@dataclass(frozen=True)
class SendTo:
    step: StepRun
    target: Target


@dataclass(frozen=True)
class Withdraw:
    notification_id: UUID


@dataclass(frozen=True)
class GiveUp:
    """A dead letter for what never became a message."""

    step: StepRun
    channel_type: str
    error_code: str


@dataclass(frozen=True)
class Cover:
    """What the step gave up before has arrived another way."""

    step: StepRun


@dataclass(frozen=True)
class Executed:
    step: StepRun
    target: Target
    provider_message_id: str | None


@dataclass(frozen=True)
class Failed:
    step: StepRun
    error_code: str
    seen: Seen | None = None


@dataclass(frozen=True)
class HandOver:
    step: StepRun


Effect = SendTo | Withdraw | GiveUp | Cover | Executed | Failed | HandOver
