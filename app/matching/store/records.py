"""The values that the store returns and takes: rows of tasks and offers, and decisions to be written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from app.matching.rules.eligibility import Candidate, Obstacle
from app.matching.rules.states import HELD, OfferState, TaskStatus, check_task_transition
from app.users.models import LatLon, Role


@dataclass(frozen=True)
class Transition:
    """Comes from `HelpTask.becoming`, which has checked it, or from `HelpTask.staying`."""

    task_id: UUID
    current: TaskStatus
    target: TaskStatus


@dataclass(frozen=True)
class HelpTask:
    id: UUID
    status: TaskStatus
    elder_id: int
    student_id: int | None
    note: str | None
    spot: LatLon
    area: str | None
    """The circle on the map in which cells are near; None if the exact distance decides."""
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
    """The version of the row: it grows with every change."""
    read_at: datetime
    """The database's time at which the row was read."""

    def becoming(self, target: TaskStatus) -> Transition:
        check_task_transition(self.status, target)
        return Transition(self.id, self.status, target)

    def staying(self) -> Transition:
        """For a write that changes other columns only."""
        return Transition(self.id, self.status, self.status)

    @property
    def is_searching(self) -> bool:
        return self.status is TaskStatus.PENDING

    @property
    def is_held(self) -> bool:
        return self.status in HELD

    @property
    def moved_since(self) -> datetime | None:
        """While the search waits, cells decide about the students who have moved since this time."""
        return self.created_at if self.waiting else None

    @property
    def goes_on_searching(self) -> bool:
        """After its search limit, a task asks nobody new."""
        return self.search_until > self.read_at


def task_of(row: Any) -> HelpTask:
    return HelpTask(
        id=row.id,
        status=TaskStatus(row.status),
        elder_id=row.elder_id,
        student_id=row.student_id,
        note=row.note,
        spot=LatLon(row.lat, row.lon),
        area=row.area,
        created_at=row.created_at,
        search_until=row.search_until,
        next_step_at=row.next_step_at,
        waiting=row.waiting,
        listed=row.listed,
        asked=row.asked,
        skipped=row.skipped,
        assigned_at=row.assigned_at,
        idempotency_key=row.idempotency_key,
        updated_at=row.updated_at,
        read_at=row.read_at,
    )


@dataclass(frozen=True)
class LeftBehind:
    """What people who leave the service still have."""

    open_tasks: int = 0
    """Of elders, and those that students have accepted."""
    live_offers: int = 0
    """To students, and those for the tasks of elders."""


@dataclass(frozen=True)
class Withdrawals:
    """Of one student in the last 24 hours, with the one that was just counted."""

    count: int
    suspended: bool


@dataclass(frozen=True)
class FromNow:
    """A time relative to the database's clock when the row is written."""

    by: timedelta


NOW = FromNow(timedelta(0))


@dataclass(frozen=True)
class Moved:
    next_step_at: datetime | None
    updated_at: datetime


@dataclass(frozen=True)
class Progress:
    """The columns that `settle` writes for a task whose search goes on."""

    task_id: UUID
    next_step_at: datetime
    waiting: bool
    asked: int
    skipped: int
    listed: int


@dataclass(frozen=True)
class EndedSearch:
    task_id: UUID
    version: datetime
    alarm_owed: bool
    """The coordinators are told later, together with other searches for the same elder."""


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
class Pick:
    task_id: UUID
    student_id: int
    rank: int
    completed: int
    distance_m: float | None
    """None if it was not measured; the offer measures it."""
    version: int | None = None
    """The version of the student's row that was read; None if it was not read."""


@dataclass(frozen=True)
class Skip:
    task_id: UUID
    student_id: int
    reason: Obstacle
    completed: int
    distance_m: float | None


@dataclass(frozen=True)
class Ranking:
    candidates: Sequence[Candidate]
    eligible: int
    """The number of all eligible students; `candidates` ends at the cap."""


@dataclass(frozen=True)
class NewSearch:
    """A task to be made, and its candidates."""

    task_id: UUID
    elder_id: int
    note: str | None
    spot: LatLon
    area: str | None
    idempotency_key: str | None
    ranking: Ranking


@dataclass(frozen=True)
class MadeTask:
    task: HelpTask
    deadline: datetime | None
    """Of the offer that was made with it; None if none was made."""
    row: Any
    """For `seen_by`."""


@dataclass(frozen=True)
class Standing:
    """The state of a task in PostgreSQL, for comparison with Redis."""

    task_id: UUID
    status: TaskStatus
    student_id: int | None
    """The student who is being asked; of several, the one with the earliest deadline."""
    deadline: datetime | None
    next_step_at: datetime | None
    updated_at: datetime
    seen: Sequence[int] = ()
    """All students who were asked or skipped, so they are no longer on the list."""


@dataclass(frozen=True)
class Overdue:
    """The tasks that are due and not settled yet."""

    tasks: int
    longest_s: float


@dataclass(frozen=True)
class NamedPerson:
    """The parts of a user that a notice may contain."""

    id: int
    name: str
    phone: str | None


@dataclass(frozen=True)
class Accepted:
    student: NamedPerson
    moved: Moved | None
    """None if it was too late."""
    row: Any
    """For `seen_by`, if it was not too late."""


@dataclass(frozen=True)
class KnownPress:
    """An earlier press with the same Idempotency-Key."""

    task_id: UUID
    note: str | None
    spot: LatLon


@dataclass(frozen=True)
class PressingElder:
    """What a press has to know about its elder."""

    role: Role
    active: bool
    home: LatLon | None
    open_task_id: UUID | None
    known: KnownPress | None
    ages: Sequence[timedelta]
    """Of the elder's newest tasks that are less than an hour old, the newest first."""


class StudentDrift(NamedTuple):
    """The kept values of a student, with the prefix `kept_`, and the right ones."""

    student_id: int
    version: int
    """The version of the student's row that the values are of."""
    month: date
    kept_completed: int
    completed: int
    kept_open_task_id: UUID | None
    open_task_id: UUID | None
    kept_active: bool
    active: bool


class TaskDrift(NamedTuple):
    task_id: UUID
    kept_asked: int
    kept_skipped: int
    asked: int
    skipped: int
