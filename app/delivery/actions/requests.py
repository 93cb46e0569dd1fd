"""The request for an action, and its result. Plain values."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app.delivery.actions.models import Origin
from app.delivery.messages.values import Priority
from app.users.contract import EVERYTHING, StaffScope


@dataclass(frozen=True)
class NewAction:
    """Requests that a plan is carried out once."""

    plan: int | str
    """The id of the plan, or the key of a plan that the product ships with, such as `matching.offer`."""
    person_id: int | None = None
    """The recipient of steps with the audience PERSON."""
    elder_id: int | None = None
    """The elder whom it is about, if that is not the person. The coordinators of their institution see its messages."""
    scope: StaffScope = EVERYTHING
    """Of the coordinator who requests it."""
    variables: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """The variables of the plan's templates."""
    data: dict[str, str] = field(default_factory=dict[str, str])
    """Data for an app, besides the text."""
    priority: Priority = Priority.NORMAL
    expires_at: datetime | None = None
    task_id: UUID | None = None
    evaluation_key: str | None = None
    """Repeated requests of the same caller with the same key create one action. A request without a key always creates
    one."""
    requested_by: int | None = None
    """The user who asks over HTTP."""
    origin: Origin = Origin.INTERNAL
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    """`device_id`, `stream_id`, `group_id`, `rule_id`, `trace_id`: copied into the events about the action."""

    @property
    def key_owner(self) -> str:
        """The namespace of the evaluation key: each user has one, and so do the stream and this service."""
        return self.origin.value if self.requested_by is None else f"user:{self.requested_by}"


@dataclass(frozen=True)
class Requested:
    id: UUID
    is_new: bool
    """False if the evaluation key was used before; `id` is then the action of the earlier request."""
