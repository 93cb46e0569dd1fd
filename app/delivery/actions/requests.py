"""What is asked for when a plan is to be carried out. Plain values."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app.delivery.actions.models import Origin
from app.delivery.messages.values import Priority


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
