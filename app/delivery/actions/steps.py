"""The values for decisions about an action: its steps, the data that was read about them, and the effects."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from app.delivery.actions.states import STEP_TRANSITIONS, ActionStatus, StepState
from app.delivery.messages.outcomes import BREAKER_OPEN
from app.delivery.messages.states import LIVE
from app.delivery.messages.values import NotificationStatus
from app.delivery.plans.models import Audience, OnFailure
from app.delivery.words.rendering import Words
from app.foundation.copies import changed
from app.foundation.state_machine import check_transition


@dataclass(frozen=True)
class Target:
    """One address of one recipient."""

    channel_type: str
    recipient: str = field(repr=False)
    locale: str = "tr"
    user_id: int | None = None
    channel_id: int | None = None
    """The recipient's channel in the directory."""
    address_kind: str | None = None
    notification_id: UUID | None = None
    """The notification to this target; None until it is written."""
    withdrawn: bool = False


@dataclass(frozen=True)
class StepRun:
    """A step of a plan, with its state in one action."""

    order: int
    channel_type: str
    audience: Audience = Audience.ROUTES
    template_key: str | None = None
    on_failure: OnFailure = OnFailure.STOP
    fallback: tuple[str, ...] = ()
    within_s: int | None = None
    may_arrive_twice: bool = False
    """The fallback follows a message that may have arrived. If False, a lost answer ends the step instead."""
    state: StepState = StepState.WAITING
    targets: tuple[Target, ...] = ()
    tried: int = 0
    """The number of targets that were tried or passed over."""
    asked_at: datetime | None = None
    """The time at which the newest notification of the step was written."""
    error_code: str | None = None

    @property
    def has_next(self) -> bool:
        return self.tried < len(self.targets)

    @property
    def notification_ids(self) -> list[UUID]:
        return [target.notification_id for target in self.targets if target.notification_id is not None]

    def moved_to(self, state: StepState, **changes: Any) -> "StepRun":
        check_transition(STEP_TRANSITIONS, self.state, state)
        return changed(self, state=state, **changes)


@dataclass(frozen=True)
class Run:
    """The steps, the expiry and the status of an action. Its transitions change the steps and the status."""

    steps: tuple[StepRun, ...]
    expires_at: datetime | None = None
    status: ActionStatus = ActionStatus.RUNNING

    @property
    def awaited_ids(self) -> list[UUID]:
        """The notifications whose end decides how the running step goes on."""
        return [id_ for step in self.steps if step.state is StepState.RUNNING for id_ in step.notification_ids]

    def is_over(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


# Data that was read


@dataclass(frozen=True)
class NotificationState:
    """The state of a notification when it was read."""

    status: NotificationStatus
    may_have_arrived: bool = False
    """An attempt ended without a clear answer."""
    error_code: str | None = None
    retry_count: int = 0
    retryable: bool = False
    """Further attempts might have succeeded."""
    provider_message_id: str | None = None
    is_locked_elsewhere: bool = False
    """Another transaction has locked the row and may be changing it."""
    has_arrived: bool = False
    """At least one of several phones was reached."""
    recipient_is_gone: bool = False
    """The last attempt found that the recipient is gone for good, at all of their addresses."""

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @property
    def is_held_back(self) -> bool:
        """The breaker of its provider was open when it was to be sent."""
        return self.is_live and self.error_code == BREAKER_OPEN


MISSING = NotificationState(NotificationStatus.CANCELLED)
"""Used for a notification that has no row."""


@dataclass(frozen=True)
class Found:
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class TargetFault:
    """Why a step has no target, or why no notification can be written for a target."""

    error_code: str


class Unresolved(StrEnum):
    ALL_OFF = "ALL_OFF"
    """All recipients are switched off."""
    ELSEWHERE = "ELSEWHERE"
    """Another service carries out steps of this channel type."""
    NEEDS_SETTINGS = "NEEDS_SETTINGS"
    """Needs settings that the caller's transaction does not have; the conductor decides."""


Resolution = Found | TargetFault | Unresolved


@dataclass(frozen=True)
class Draft:
    """The address and the words of a notification that can be written."""

    recipient: str = field(repr=False)
    """The canonical form of the address."""
    words: Words


class Context(Protocol):
    """The directory and the templates that were read for one action."""

    def resolve(self, step: StepRun) -> Resolution: ...

    def draft(self, step: StepRun, target: Target) -> Draft | TargetFault | Unresolved: ...

    def new_id(self) -> UUID: ...


# Effects


@dataclass(frozen=True)
class Send:
    step: StepRun
    target: Target
    draft: Draft


@dataclass(frozen=True)
class Withdraw:
    notification_id: UUID


@dataclass(frozen=True)
class GiveUp:
    """Writes a dead letter for a target that got no notification."""

    step: StepRun
    channel_type: str
    error_code: str


@dataclass(frozen=True)
class Cover:
    """Closes the dead letters of a step that reached its recipient at another target."""

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
    notification: NotificationState | None = None


@dataclass(frozen=True)
class HandOver:
    step: StepRun


Effect = Send | Withdraw | GiveUp | Cover | Executed | Failed | HandOver
