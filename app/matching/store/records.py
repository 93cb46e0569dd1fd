"""What the store returns and takes: rows of tasks and offers, and decisions to be written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from app.matching.eligibility import Obstacle
from app.matching.states import HELD, OfferState, TaskStatus
from app.users.models import LatLon, Role


@dataclass(frozen=True)
class Task:
    id: UUID
    status: TaskStatus
    elder_id: int
    student_id: int | None
    note: str | None
    spot: LatLon
    created_at: datetime
    search_until: datetime
    next_step_at: datetime | None
    waiting: bool
    listed: int
    asked: int
    skipped: int
    assigned_at: datetime | None
    idempotency_key: str | None
    updated_at: datetime
    """Grows with every change, so it is the version of the row."""
    read_at: datetime
    """The database's time when this was read."""

    @property
    def is_held(self) -> bool:
        return self.status in HELD


@dataclass(frozen=True)
class FromNow:
    """A moment that the database's clock fixes when the row is written."""

    by: timedelta


NOW = FromNow(timedelta(0))


@dataclass(frozen=True)
class Moved:
    next_step_at: datetime | None
    updated_at: datetime


@dataclass(frozen=True)
class Progress:
    """What settling writes into the row of a task that goes on searching."""

    task_id: UUID
    next_step_at: datetime
    waiting: bool
    asked: int
    skipped: int
    listed: int


@dataclass(frozen=True)
class Offer:
    id: int
    task_id: UUID
    student_id: int
    state: OfferState
    deadline: datetime | None
    overdue: bool

    @property
    def is_answerable(self) -> bool:
        return self.state is OfferState.PENDING and not self.overdue


@dataclass(frozen=True)
class Expired:
    task_id: UUID
    student_id: int
    late_s: float


@dataclass(frozen=True)
class Fact:
    """Whether a candidate may be asked when their turn comes; `eligibility` has the rules."""

    task_id: UUID
    student_id: int
    obstacle: Obstacle | None
    """Why this student is skipped for the task; None if nothing is in the way."""
    seen_before: bool
    """The task has asked or skipped this student already."""
    busy_until: datetime | None
    """Deadline of the offer that this student is considering."""
    completed: int
    distance_m: float | None
    version: int | None = None
    """Of the student's row; another number means that another transaction has changed it."""

    @property
    def may_be_asked(self) -> bool:
        return self.obstacle is None and self.busy_until is None and not self.seen_before


@dataclass(frozen=True)
class Pick:
    task_id: UUID
    student_id: int
    rank: int
    completed: int
    distance_m: float


@dataclass(frozen=True)
class Skip:
    task_id: UUID
    student_id: int
    reason: Obstacle
    completed: int
    distance_m: float | None


class Candidate(NamedTuple):
    """A tuple, because there are fifty of them in a query that takes less than a millisecond."""

    student_id: int
    completed: int
    distance_m: float
    busy_until: datetime | None
    """Deadline of the offer that this student is considering for another task."""


@dataclass(frozen=True)
class Ranking:
    candidates: Sequence[Candidate]
    eligible: int
    """How many there are in all; the list is cut at its cap."""


@dataclass(frozen=True)
class Standing:
    """What Redis should hold for a task, as PostgreSQL has it."""

    task_id: UUID
    status: TaskStatus
    student_id: int | None
    """Who is being asked."""
    deadline: datetime | None
    next_step_at: datetime | None
    updated_at: datetime
    seen: Sequence[int] = ()
    """All students who were asked or skipped, and so have left the list."""


@dataclass(frozen=True)
class NamedPerson:
    """What a notice says about a person."""

    id: int
    name: str
    phone: str | None


@dataclass(frozen=True)
class Elder:
    role: Role
    active: bool
    home: LatLon | None
