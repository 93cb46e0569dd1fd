"""The people of the demo neighbourhood, who can be told from everybody else by their key.

The key is kept as the Firebase uid, where it is unique. Only the command `demo` writes such keys: the API and the
command `users add` refuse them. A copy in local mode may let anybody sign in as these people, so a key counts only if
the demo has a person of that number, and only together with the role in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Row, text

from app.users.models import Role

DEMO_KEYS = "demo/"
"""What all keys of demo people begin with."""
DEMO_OTHERS = f"{DEMO_KEYS}others/"
"""What the keys of all others begin with: they have finished tasks, and `demo --live` acts for them."""
DEMO_COUNTS: Mapping[Role, int] = MappingProxyType(
    {Role.ADMIN: 1, Role.COORDINATOR: 2, Role.ELDER: 40, Role.STUDENT: 200}
)
DEMO_RESERVED: Mapping[Role, int] = MappingProxyType(
    {Role.ADMIN: 1, Role.COORDINATOR: 2, Role.ELDER: 2, Role.STUDENT: 5}
)
"""The first so many of each role belong to whoever tries the demo. They begin without a past."""


@dataclass(frozen=True)
class DemoPerson:
    id: int
    number: int
    role: Role
    name: str
    institution_id: int | None
    distance_m: float | None
    """From the home of the first elder; None for staff, and for whoever has no place now."""

    @property
    def reserved(self) -> bool:
        return self.number <= DEMO_RESERVED[self.role]


def demo_key(role: Role, number: int) -> str:
    return f"{f'{DEMO_KEYS}yours/' if number <= DEMO_RESERVED[role] else DEMO_OTHERS}{role.lower()}/{number}"


_ALL_KEYS = [demo_key(role, number) for role, how_many in DEMO_COUNTS.items() for number in range(1, how_many + 1)]
_PEOPLE = """
    SELECT u.id, u.role, u.name, u.institution_id, split_part(u.firebase_uid, '/', 4)::int AS number,
           CASE WHEN u.role IN ('ELDER', 'STUDENT')
                THEN ST_Distance(coalesce(s.location, s.next_location, u.home),
                                 (SELECT home FROM users WHERE firebase_uid = :first_elder)) END AS distance_m
      FROM users u LEFT JOIN students s ON s.id = u.id
     WHERE u.firebase_uid = ANY(:keys) AND split_part(u.firebase_uid, '/', 3) = lower(u.role) AND u.active
"""
_VALUES = {"keys": _ALL_KEYS, "first_elder": demo_key(Role.ELDER, 1)}


def list_demo_people(conn: Connection) -> list[DemoPerson]:
    """All who are active, in the order of their ids, which begins with those who are reserved."""
    return [_person(row) for row in conn.execute(text(f"{_PEOPLE} ORDER BY u.id"), _VALUES)]


def find_demo_person(conn: Connection, user_id: int) -> DemoPerson | None:
    row = conn.execute(text(f"{_PEOPLE} AND u.id = :id"), {**_VALUES, "id": user_id}).one_or_none()
    return _person(row) if row else None


def _person(row: Row[Any]) -> DemoPerson:
    return DemoPerson(row.id, row.number, Role(row.role), row.name, row.institution_id, row.distance_m)
