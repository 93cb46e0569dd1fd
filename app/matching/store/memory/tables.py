"""Rows in memory, with the constraints that `models.py` declares for PostgreSQL."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from uuid import UUID

from app.delivery.contract import NewAction
from app.matching.states import HELD, OPEN, OfferState, TaskStatus
from app.matching.store.records import Task
from app.users.models import LatLon, Role

EARTH_RADIUS_M = 6_371_008.8


class ConstraintBroken(Exception):
    """PostgreSQL would have refused this row."""


@dataclass(frozen=True)
class UserRow:
    id: int
    role: Role
    name: str
    phone: str | None = None
    locale: str = "tr"
    institution_id: int | None = None
    active: bool = True
    home: LatLon | None = None


@dataclass(frozen=True)
class StudentRow:
    id: int
    location: LatLon | None = None
    active: bool = True
    on_duty: bool = True
    open_task_id: UUID | None = None
    month: date = date.min
    completed: int = 0

    @property
    def available(self) -> bool:
        return self.active and self.on_duty and self.open_task_id is None and self.location is not None


@dataclass(frozen=True)
class TaskRow(Task):
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class OfferRow:
    id: int
    task_id: UUID
    student_id: int
    state: OfferState
    rank: int | None = None
    completed: int = 0
    distance_m: float | None = None
    reason: str | None = None
    offered_at: datetime | None = None
    deadline: datetime | None = None
    closed_at: datetime | None = None


@dataclass(frozen=True)
class NotificationRow:
    new: NewAction
    at: datetime
    cancelled: bool = False

    @property
    def message(self) -> str:
        return self.new.data["type"]


@dataclass
class Tables:
    users: dict[int, UserRow] = field(default_factory=dict[int, UserRow])
    students: dict[int, StudentRow] = field(default_factory=dict[int, StudentRow])
    tasks: dict[UUID, TaskRow] = field(default_factory=dict[UUID, TaskRow])
    offers: dict[tuple[UUID, int], OfferRow] = field(default_factory=dict[tuple[UUID, int], OfferRow])
    """By task and student: once per student is in the key."""
    notifications: list[NotificationRow] = field(default_factory=list[NotificationRow])

    def copy(self) -> "Tables":
        return Tables(
            dict(self.users), dict(self.students), dict(self.tasks), dict(self.offers), list(self.notifications)
        )

    def offers_of(self, task_id: UUID) -> Iterator[OfferRow]:
        return (row for row in self.offers.values() if row.task_id == task_id)

    def live_offer_of(self, student_id: int) -> OfferRow | None:
        return next((row for row in self._live() if row.student_id == student_id), None)

    def live_offer_for(self, task_id: UUID) -> OfferRow | None:
        return next((row for row in self._live() if row.task_id == task_id), None)

    def _live(self) -> Iterator[OfferRow]:
        return (row for row in self.offers.values() if row.state is OfferState.PENDING)

    def counted(self, task_id: UUID) -> tuple[int, int]:
        """How many were asked, and how many passed by."""
        asked = [row.offered_at is not None for row in self.offers_of(task_id)]
        return sum(asked), len(asked) - sum(asked)

    # ---- writing: `fits` is what ON CONFLICT DO NOTHING asks, `put` raises as an UPDATE would ----

    def task_fits(self, new: TaskRow) -> bool:
        others = [row for row in self.tasks.values() if row.id != new.id]
        return not any(
            (row.elder_id == new.elder_id and {row.status, new.status} <= OPEN)
            or (row.student_id == new.student_id and {row.status, new.status} <= HELD)
            or (row.elder_id == new.elder_id and row.idempotency_key == new.idempotency_key is not None)
            for row in others
        )

    def put_task(self, new: TaskRow) -> None:
        if not self.task_fits(new):
            raise ConstraintBroken(f"a second open task: {new}")
        if new.status in HELD and new.student_id is None:
            raise ConstraintBroken("held_by_a_student")
        if new.status is TaskStatus.PENDING and (new.student_id is not None or new.next_step_at is None):
            raise ConstraintBroken("goes_on")
        self.tasks[new.id] = new

    def offer_fits(self, new: OfferRow) -> bool:
        return not any(
            row.id != new.id
            and (
                (row.task_id == new.task_id and row.student_id == new.student_id)
                or (row.state is new.state is OfferState.PENDING and row.task_id == new.task_id)
                or (row.state is new.state is OfferState.PENDING and row.student_id == new.student_id)
                or (row.state is new.state is OfferState.ACCEPTED and row.task_id == new.task_id)
            )
            for row in self.offers.values()
        )

    def put_offer(self, new: OfferRow) -> None:
        if not self.offer_fits(new):
            raise ConstraintBroken(f"a second live or accepted offer: {new}")
        if (new.state is OfferState.SKIPPED) is not (new.offered_at is None):
            raise ConstraintBroken("skipped_was_never_offered")
        if new.state is OfferState.PENDING and new.deadline is None:
            raise ConstraintBroken("live_has_a_deadline")
        self.offers[new.task_id, new.student_id] = new

    def change_student(self, student_id: int, **changes: object) -> None:
        known = self.students.get(student_id)
        if known is not None:
            self.students[student_id] = replace(known, **changes)  # pyright: ignore[reportArgumentType]


def distance_m(one: LatLon, other: LatLon) -> float:
    """On a sphere: half a percent off at most, and what a test compares was measured the same way."""
    lat1, lat2 = math.radians(one.lat), math.radians(other.lat)
    half = math.sin((lat2 - lat1) / 2) ** 2
    half += math.cos(lat1) * math.cos(lat2) * math.sin(math.radians(other.lon - one.lon) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(half))
