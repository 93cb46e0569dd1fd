"""Creates the users: busy places whose search radii overlap, and calm places where students only get offers."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.api.tokens import LocalTokens
from app.db.database import Database
from app.roster import service as roster
from app.roster.models import ConsumerScope
from app.users import service as users
from app.users.models import LatLon, Platform, Role

METRE = 1 / 111_000
SECRET = "the-auth-secret-of-one-run-of-the-torture"
# Tokens are issued in the past, so that a host whose clock is behind does not refuse them as issued in the future.
ISSUED_EARLIER_S = 1800

INSTITUTION = 1
"""Of the elders of calm places."""


@dataclass(frozen=True)
class Person:
    id: int
    token: str = field(repr=False)
    home: LatLon
    name: str = ""
    phone: str = ""


@dataclass(frozen=True)
class Place:
    spot: LatLon
    elders: Sequence[Person]
    students: Sequence[Person]


@dataclass(frozen=True)
class People:
    busy: Sequence[Place]
    calm: Sequence[Place]
    coordinators: Sequence[Person]
    admin: Person
    of_institution: Person
    """A coordinator who sees the elders of calm places only."""
    institution_id: int = INSTITUTION

    @property
    def places(self) -> Sequence[Place]:
        return [*self.busy, *self.calm]


def north(spot: LatLon, metres: float) -> LatLon:
    return LatLon(spot.lat + metres * METRE, spot.lon)


SPOT = LatLon(40.9870, 29.0280)


class PeopleCreator:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._tokens = LocalTokens(SECRET, now=lambda: time.time() - ISSUED_EARLIER_S)
        self._number = 0

    def create(self, *, busy: int, elders: int, students: int, calm: int, calm_students: int) -> People:
        """Busy places are 700 m apart, so that students are within the radius of elders in the next place."""
        return People(
            [self._place(north(SPOT, 700 * number), elders, students) for number in range(busy)],
            [self._place(north(SPOT, 20_000 * (number + 1)), 1, calm_students, INSTITUTION) for number in range(calm)],
            [self._person(Role.COORDINATOR, SPOT) for _ in range(2)],
            self._person(Role.ADMIN, SPOT),
            self._person(Role.COORDINATOR, SPOT, INSTITUTION),
        )

    def separate_places(self, number: int, students: int) -> list[Place]:
        """Places of one elder each, so far apart that no two share a student."""
        return [self._place(LatLon(36 + index * 0.02, 34.0), 1, students) for index in range(number)]

    def consumer_token(self, kind: str, by: Person) -> str:
        with self._db.transaction() as conn:
            return roster.create_consumer(conn, kind, "torture", ConsumerScope.READ, by.id).token

    def _place(self, spot: LatLon, elders: int, students: int, institution_id: int | None = None) -> Place:
        return Place(
            spot,
            [self._person(Role.ELDER, north(spot, 3 * index), institution_id) for index in range(elders)],
            [self._person(Role.STUDENT, north(spot, 60 + 70 * index)) for index in range(students)],
        )

    def _person(self, role: Role, home: LatLon, institution_id: int | None = None) -> Person:
        self._number += 1
        name, phone = f"{role.title()}{self._number} Yılmaz", f"+90555{self._number:07}"
        new = users.NewUser(role, name, phone, location=home, institution_id=institution_id)
        with self._db.transaction() as conn:
            id_ = users.create_user(conn, new).id
            # A third of the users have no device, a third have one, a third two.
            for number in range(self._number % 3):
                device = users.DeviceRegistration(f"phone-{id_}-{number}", f"token-{id_}-{number}", Platform.ANDROID)
                users.put_device(conn, id_, device)
        return Person(id_, self._tokens.issue(id_), home, new.name, new.phone or "")
