"""What users know of a person, and how it is forgotten. The row and its id stay, because counts refer to them."""

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from app.users.contract import LastAdmin, UserNotFound
from app.users.models import Role

FORGOTTEN = "Silinmiş kişi"
"""The name of everybody who was forgotten."""


@dataclass(frozen=True)
class KnownPerson:
    id: int
    role: Role
    name: str = field(repr=False)
    phone: str | None = field(repr=False)
    firebase_uid: str | None = field(repr=False)
    active: bool
    tokens: tuple[str, ...] = field(repr=False)
    device_ids: tuple[str, ...] = field(repr=False)

    @property
    def is_forgotten(self) -> bool:
        return self.name == FORGOTTEN and self.phone is None and self.firebase_uid is None and not self.active


_KNOWN = text(
    """
    SELECT u.id, u.role, u.name, u.phone, u.firebase_uid, u.active,
           array(SELECT token FROM devices WHERE user_id = u.id) AS tokens,
           array(SELECT device_id FROM devices WHERE user_id = u.id) AS device_ids
      FROM users u WHERE u.id = :id
    """
)
_NAMESAKES = text("SELECT id, phone FROM users WHERE name = :name AND name <> :forgotten AND id <> :id ORDER BY id")
_SHARE_PHONE = text("SELECT EXISTS (SELECT FROM users WHERE phone = ANY(:spellings) AND id <> :id)")
_OTHER_ADMINS = text("SELECT EXISTS (SELECT FROM users WHERE role = 'ADMIN' AND active AND id <> :id)")
_FORGET_USER = text(
    """
    UPDATE users SET name = :name, phone = NULL, firebase_uid = NULL, home = NULL, active = false,
                     updated_at = clock_timestamp()
     WHERE id = :id AND (name <> :name OR phone IS NOT NULL OR firebase_uid IS NOT NULL OR home IS NOT NULL OR active)
    """
)
_FORGET_STUDENT = text(
    """
    UPDATE students SET location = NULL, location_at = NULL, next_location = NULL, next_location_from = NULL,
                        ahead_m = NULL, withdrew_at = NULL, on_duty = false
     WHERE id = :id AND (location IS NOT NULL OR location_at IS NOT NULL OR withdrew_at IS NOT NULL OR on_duty)
    """
)
_FORGET_DEVICES = text("DELETE FROM devices WHERE user_id = :id")


def known_person(conn: Connection, user_id: int) -> KnownPerson:
    row = conn.execute(_KNOWN, {"id": user_id}).one_or_none()
    if row is None:
        raise UserNotFound(f"There is no user with the id {user_id}.")
    tokens, device_ids = tuple(row.tokens), tuple(row.device_ids)
    return KnownPerson(row.id, Role(row.role), row.name, row.phone, row.firebase_uid, row.active, tokens, device_ids)


def namesakes(conn: Connection, person: KnownPerson) -> dict[int, str | None]:
    """Other users with the same full name: their ids and phones."""
    values = {"id": person.id, "name": person.name, "forgotten": FORGOTTEN}
    return {row.id: row.phone for row in conn.execute(_NAMESAKES, values)}


def is_phone_of_others(conn: Connection, spellings: Collection[str], user_id: int) -> bool:
    """Couples often share one phone."""
    return conn.execute(_SHARE_PHONE, {"id": user_id, "spellings": sorted(spellings)}).scalar_one()


def check_not_last_admin(conn: Connection, person: KnownPerson) -> None:
    if person.role is not Role.ADMIN or not person.active:
        return
    if not conn.execute(_OTHER_ADMINS, {"id": person.id}).scalar_one():
        raise LastAdmin("This is the only active administrator. Add another one first: `users add --role ADMIN`.")


def forget_user(conn: Connection, user_id: int) -> dict[str, int]:
    """The user is not active any more. Returns the number of rows by table."""
    values = {"id": user_id, "name": FORGOTTEN}
    return {
        "users": conn.execute(_FORGET_USER, values).rowcount,
        "students": conn.execute(_FORGET_STUDENT, values).rowcount,
        "devices": conn.execute(_FORGET_DEVICES, values).rowcount,
    }
