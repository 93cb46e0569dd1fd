"""Doubles and tables for tests of the HTTP layer."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.api.auth import Doorkeeper
from app.api.identities import Identity, TokenInvalid, UserId
from app.bootstrap.api import create_app
from app.db.database import DatabaseUnavailable
from app.foundation.clock import FakeClock
from app.foundation.errors import AppError
from app.foundation.pages import Page
from app.matching.contract import CurrentOffer, MyOffer, OfferView, Person, Pressed, TaskView
from app.matching.rules.states import OfferState, TaskStatus
from app.redis_store.limits import PerUserLimit
from app.settings.settings import Settings
from app.users.contract import UserDeactivated
from app.users.models import Caller, LatLon, Role
from tests.support.breakers import MemoryBreakers

SECRET = "a-secret-for-tests-that-is-long-enough-0123456789"
NOBODY_LISTENS = "redis://127.0.0.1:9/0"
TASK_ID = UUID("01932c07-4b00-7000-8000-000000000001")
NOON = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)

PEOPLE = {
    "elder": Caller(1, Role.ELDER, "Ayşe Yılmaz", "tr", None),
    "student": Caller(2, Role.STUDENT, "Ahmet Çelik", "tr", None),
    "coordinator": Caller(3, Role.COORDINATOR, "Zeynep Koç", "tr", None),
    "admin": Caller(4, Role.ADMIN, "Yönetici", "tr", None),
    "deactivated": Caller(5, Role.STUDENT, "Berat Şahin", "tr", None),
}

A_TASK = TaskView(
    id=TASK_ID,
    status=TaskStatus.PENDING,
    created_at=NOON,
    note="Ekmek",
    asked=1,
    remaining=2,
    next_step_at=NOON,
    location=LatLon(40.987, 29.028),
    elder=Person(1, "Ayşe Yılmaz", "+905550100002"),
    student=None,
    current_offer=CurrentOffer(NOON, None),
)
AN_OFFER = OfferView(2, "Ahmet Çelik", 1, 0, 120.0, OfferState.PENDING, None, NOON, NOON)


@dataclass
class FakeMatching:
    """Records its calls, and returns one task or raises `error`."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    error: Exception | None = None
    task_shown: TaskView = A_TASK
    created: bool = True
    offer: MyOffer | None = None

    def _answer(self, *call: Any) -> TaskView:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        return self.task_shown

    def press(self, caller: Caller, new: Any, idempotency_key: str | None = None) -> Pressed:
        return Pressed(self._answer("press", caller.id, new, idempotency_key), self.created)

    def __getattr__(self, deed: str) -> Any:
        if deed not in {
            "accept",
            "reject",
            "start",
            "complete",
            "withdraw",
            "cancel",
            "assign",
            "move_on",
            "release",
            "task",
        }:
            raise AttributeError(deed)
        return lambda caller, *arguments: self._answer(deed, caller.id, *arguments)

    def tasks(self, caller: Caller, **filters: Any) -> Page[TaskView]:
        return Page([self._answer("tasks", caller.id, filters)], None)

    def board(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[TaskView]:
        return self.tasks(caller, cursor=cursor, limit=limit)

    def offers(self, caller: Caller, task_id: UUID) -> list[OfferView]:
        self._answer("offers", caller.id, task_id)
        return [AN_OFFER]

    def current_offer(self, caller: Caller) -> MyOffer | None:
        self._answer("current_offer", caller.id)
        return self.offer

    def open_task(self, caller: Caller) -> TaskView | None:
        self._answer("open_task", caller.id)
        return None

    def is_late(self, after_s: float) -> bool:
        raise DatabaseUnavailable("There is no database here.")

    def overdue(self) -> Any:
        raise DatabaseUnavailable("There is no database here.")

    def set_availability(self, caller: Caller, on_duty: bool) -> None:
        self._answer("set_availability", caller.id, on_duty)

    def set_location(self, student_id: int, spot: LatLon, *, is_reported: bool = True) -> None:
        self._answer("set_location", student_id, spot)

    def set_active(self, user_id: int, active: bool) -> None:
        self._answer("set_active", user_id, active)


class NamesAreTokens:
    """A verifier for tests: the token is the key of a person in `PEOPLE`."""

    def verify(self, token: str) -> Identity:
        if token not in PEOPLE:
            raise TokenInvalid("The token is not valid.")
        return UserId(PEOPLE[token].id)


def find_caller(identity: Identity) -> Caller | None:
    assert isinstance(identity, UserId)
    if identity.value == PEOPLE["deactivated"].id:
        raise UserDeactivated("This user is not active any more.")
    return next((person for person in PEOPLE.values() if person.id == identity.value), None)


class NoDatabase:
    """For calls that must not use the database."""

    def transaction(self) -> Any:
        """The entry of the audit trail has a transaction of its own. A call that uses its connection fails."""
        return nullcontext()

    def now(self) -> Any:
        raise AppError("This call must not use the database.")

    def reading(self) -> Any:
        raise DatabaseUnavailable("There is no database here.")


@dataclass
class FakeServices:
    settings: Settings
    matching: FakeMatching = field(default_factory=FakeMatching)
    db: Any = field(default_factory=NoDatabase)
    deeds_db: Any = field(default_factory=NoDatabase)
    clock: Any = field(default_factory=FakeClock)
    clockwork: Any = None
    breakers: Any = field(default_factory=MemoryBreakers)

    def __post_init__(self) -> None:
        settings = self.settings
        self.location_limit = PerUserLimit("location", settings.locations_per_minute, settings.redis_url)

    def close(self) -> None: ...


def settings_for_tests(**changes: Any) -> Settings:
    values = {"database_url": "postgresql://nowhere", "redis_url": NOBODY_LISTENS, "auth_secret": SECRET}
    return Settings(**(values | changes))


def app_on_fakes(matching: FakeMatching, **kwargs: Any) -> Any:
    settings = settings_for_tests(**kwargs.pop("settings", {}))
    services: Any = FakeServices(settings, matching)
    return create_app(services, doorkeeper=Doorkeeper(NamesAreTokens(), find_caller, lambda _token: None), **kwargs)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
