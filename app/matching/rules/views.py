"""What users see of tasks and offers; `visibility.py` decides who may see which of it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.matching.rules.states import OfferState, TaskStatus
from app.users.models import LatLon


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    phone: str | None


@dataclass(frozen=True)
class CurrentOffer:
    deadline: datetime
    student_id: int | None


@dataclass(frozen=True)
class TaskView:
    id: UUID
    status: TaskStatus
    created_at: datetime
    note: str | None
    asked: int
    remaining: int
    next_step_at: datetime | None
    location: LatLon | None
    elder: Person
    student: Person | None
    current_offer: CurrentOffer | None


@dataclass(frozen=True)
class MyOffer:
    task_id: UUID
    deadline: datetime
    distance_m: float
    elder_name: str
    note: str | None


@dataclass(frozen=True)
class OfferView:
    student_id: int
    rank: int | None
    completed_this_month: int
    distance_m: float | None
    state: OfferState
    reason: str | None
    offered_at: datetime | None
    deadline: datetime | None
