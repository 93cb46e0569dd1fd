"""The values and errors of events that other packages use."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from app.foundation.errors import Gone, TooManyRequests, Unavailable
from app.users.models import Caller


class EventType(StrEnum):
    TASK_CREATED = "TASK_CREATED"
    TASK_OFFERED = "TASK_OFFERED"
    TASK_REOFFERED = "TASK_REOFFERED"
    OFFER_REJECTED = "OFFER_REJECTED"
    OFFER_EXPIRED = "OFFER_EXPIRED"
    OFFER_WITHDRAWN = "OFFER_WITHDRAWN"
    STUDENT_SKIPPED = "STUDENT_SKIPPED"
    TASK_ASSIGNED = "TASK_ASSIGNED"
    TASK_STARTED = "TASK_STARTED"
    TASK_COMPLETED = "TASK_COMPLETED"
    TASK_RELEASED = "TASK_RELEASED"
    TASK_CANCELLED = "TASK_CANCELLED"
    TASK_TIMED_OUT = "TASK_TIMED_OUT"
    TASK_RESOLVED = "TASK_RESOLVED"
    DUTY_CHANGED = "DUTY_CHANGED"
    MESSAGE_ARRIVED = "MESSAGE_ARRIVED"


class EndReason(StrEnum):
    """Why the server ends a stream."""

    TOKEN_EXPIRED = "TOKEN_EXPIRED"
    DEACTIVATED = "DEACTIVATED"
    DRAINING = "DRAINING"
    SLOW = "SLOW"
    RESTORED = "RESTORED"
    """The newest position is below those that were sent, because a backup was restored."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events a stream is asked for, of those that its reader may see."""

    task_id: UUID | None = None
    types: frozenset[EventType] | None = None
    """None for all."""


CheckTokens = Callable[[Sequence[str]], Sequence[Caller | EndReason | None]]
"""For each bearer token the caller whom it still admits, or why it admits nobody; None if that is unknown just now."""


class EventsGone(Gone):
    """Events after this id are not kept any more: read the present state, and connect without `Last-Event-ID`."""

    code = "events_gone"


class TooManyStreams(TooManyRequests):
    """This person has as many streams of events as one may have; close one first."""

    code = "too_many_streams"


class NoRoomForStream(Unavailable):
    """This process has as many streams of events as it may have; another one answers the next try."""

    code = "no_room_for_stream"
    retry_after_s = 5
