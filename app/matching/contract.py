"""The values and errors of matching that other packages use."""

from dataclasses import dataclass

from app.matching.rules.eligibility import NotAskedBecause, OfferReason
from app.matching.rules.errors import (
    NotAssigned,
    OfferAccepted,
    OfferExpired,
    OfferRejected,
    OfferReleased,
    OfferWithdrawn,
    Overtaken,
    StudentUnavailable,
    Suspended,
    TaskNotFound,
)
from app.matching.rules.staff_views import (
    AssignableStudent,
    ListedElder,
    ListedStudent,
    MapBox,
    PeoplePage,
    StudentMap,
    StudentOnMap,
)
from app.matching.rules.states import IllegalTaskTransition, OfferState, TaskOutcome, TaskStatus
from app.matching.rules.visibility import (
    CurrentOffer,
    MyOffer,
    OfferView,
    Person,
    TaskOutcomeView,
    TaskView,
    first_name,
)
from app.matching.store.records import LeftBehind, StudentDrift, TaskDrift
from app.users.models import LatLon

__all__ = [
    "AssignableStudent",
    "CurrentOffer",
    "IllegalTaskTransition",
    "LeftBehind",
    "ListedElder",
    "ListedStudent",
    "MapBox",
    "MyOffer",
    "NewTask",
    "NotAskedBecause",
    "NotAssigned",
    "OfferAccepted",
    "OfferExpired",
    "OfferReason",
    "OfferRejected",
    "OfferReleased",
    "OfferState",
    "OfferView",
    "OfferWithdrawn",
    "Overtaken",
    "PeoplePage",
    "Person",
    "Pressed",
    "StudentDrift",
    "StudentMap",
    "StudentOnMap",
    "StudentUnavailable",
    "Suspended",
    "TaskDrift",
    "TaskNotFound",
    "TaskOutcome",
    "TaskOutcomeView",
    "TaskStatus",
    "TaskView",
    "first_name",
]


@dataclass(frozen=True)
class NewTask:
    elder_id: int
    note: str | None = None
    location: LatLon | None = None


@dataclass(frozen=True)
class Pressed:
    task: TaskView
    created: bool
