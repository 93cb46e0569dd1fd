"""What coordinators see of people, beside tasks: whom they can assign, and the lists and the map of their scope."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.matching.rules.eligibility import NotAskedBecause
from app.matching.rules.states import OfferState
from app.users.contract import PeopleSearch
from app.users.models import LatLon


@dataclass(frozen=True)
class AssignableStudent:
    """A student to whom a coordinator may assign a task after a call."""

    student_id: int
    name: str
    phone: str | None
    distance_m: float | None
    completed_this_month: int
    on_duty: bool
    obstacle: NotAskedBecause | None
    asked_before: OfferState | None


@dataclass(frozen=True)
class PeoplePage:
    """Which page of a list of people is wanted."""

    search: PeopleSearch | None
    cursor: str | None
    limit: int


@dataclass(frozen=True)
class ListedStudent:
    id: int
    name: str
    phone: str | None
    on_duty: bool
    active: bool
    suspended: bool
    """Off duty until a coordinator says otherwise."""
    busy: bool
    """Has a task, or is being asked."""
    completed_this_month: int
    location: LatLon | None


@dataclass(frozen=True)
class ListedElder:
    id: int
    name: str
    phone: str | None
    location: LatLon | None
    open_task_id: UUID | None


@dataclass(frozen=True)
class MapBox:
    """A part of the map that does not reach over the 180th meridian."""

    south: float
    west: float
    north: float
    east: float


@dataclass(frozen=True)
class StudentOnMap:
    id: int
    name: str
    lat: float
    lon: float
    on_duty: bool
    busy: bool
    offered_task_id: UUID | None
    """The task for which the student is being asked, if the coordinator sees it."""


@dataclass(frozen=True)
class StudentMap:
    students: Sequence[StudentOnMap]
    truncated: bool
    """There are more students in the box."""
