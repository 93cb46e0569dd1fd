"""Users and their devices. Matching changes the availability, the activity and the location of students."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, text
from sqlalchemy.exc import IntegrityError

from app.foundation.pages import Page, page_of, parse_number
from app.users.contract import DeviceNotFound, DeviceTaken, FirebaseUidTaken, UserDeactivated, UserNotFound
from app.users.demo_people import DEMO_COUNTS as DEMO_COUNTS
from app.users.demo_people import DEMO_KEYS as DEMO_KEYS
from app.users.demo_people import DEMO_OTHERS as DEMO_OTHERS
from app.users.demo_people import DEMO_RESERVED as DEMO_RESERVED
from app.users.demo_people import DemoPerson as DemoPerson
from app.users.demo_people import demo_key as demo_key
from app.users.demo_people import find_demo_person as find_demo_person
from app.users.demo_people import list_demo_people as list_demo_people
from app.users.forget_user import FORGOTTEN as FORGOTTEN
from app.users.forget_user import KnownPerson as KnownPerson
from app.users.forget_user import check_not_last_admin as check_not_last_admin
from app.users.forget_user import forget_user as forget_user
from app.users.forget_user import is_phone_of_others as is_phone_of_others
from app.users.forget_user import known_person as known_person
from app.users.forget_user import namesakes as namesakes
from app.users.models import AddressKind, Caller, LatLon, Platform, Role
from app.users.old_devices import OLD_USERS as OLD_USERS
from app.users.people_search import PeopleSearch


@dataclass(frozen=True)
class NewUser:
    role: Role
    name: str
    phone: str | None = None
    locale: str = "tr"
    location: LatLon | None = None
    institution_id: int | None = None
    firebase_uid: str | None = None
    active: bool = True


@dataclass(frozen=True)
class User:
    id: int
    role: Role
    name: str
    phone: str | None
    locale: str
    location: LatLon | None
    institution_id: int | None
    firebase_uid: str | None
    active: bool
    on_duty: bool | None
    """None for users who are not students."""
    created_at: datetime


@dataclass(frozen=True)
class DeviceRegistration:
    device_id: str
    token: str
    platform: Platform
    address_kind: AddressKind = AddressKind.TOKEN


# The location of a student is in `students`, other users have a home. Both are shown as `location`.
_USER = """
    SELECT u.id, u.role, u.name, u.phone, u.locale, u.institution_id, u.firebase_uid, u.active, u.created_at, s.on_duty,
           ST_Y(coalesce(s.location, s.next_location, u.home)::geometry) AS lat,
           ST_X(coalesce(s.location, s.next_location, u.home)::geometry) AS lon
      FROM users u LEFT JOIN students s ON s.id = u.id
"""
_POINT = "ST_SetSRID(ST_MakePoint(CAST(:lon AS float8), CAST(:lat AS float8)), 4326)::geography"
# The registrations of one user come one after the other.
_IS_ACTIVE = text("SELECT active FROM users WHERE id = :id FOR NO KEY UPDATE")
_CALLER = """
    SELECT id, role, name, locale, institution_id, active, firebase_uid, ST_Y(home::geometry) AS lat,
           ST_X(home::geometry) AS lon
      FROM users"""
_BY_ID, _BY_FIREBASE_UID = text(f"{_CALLER} WHERE id = :id"), text(f"{_CALLER} WHERE firebase_uid = :uid")
_ACTIVE_CALLERS = text(f"""{_CALLER}
     WHERE (id = ANY(CAST(:ids AS bigint[])) OR firebase_uid = ANY(CAST(:firebase_uids AS text[]))) AND active
""")


def create_user(conn: Connection, new: NewUser) -> User:
    point = _point(new.location)
    row: dict[str, Any] = {
        "role": new.role.value,
        "name": new.name,
        "phone": new.phone,
        "locale": new.locale,
        "institution_id": new.institution_id,
        "firebase_uid": new.firebase_uid,
        "active": new.active,
    }
    is_student = new.role is Role.STUDENT
    home = "NULL" if is_student else _POINT
    try:
        user_id = conn.execute(
            text(
                "INSERT INTO users (role, name, phone, locale, institution_id, firebase_uid, active, home) VALUES"
                f" (:role, :name, :phone, :locale, :institution_id, :firebase_uid, :active, {home}) RETURNING id"
            ),
            row if is_student else row | point,
        ).scalar_one()
    except IntegrityError as error:
        raise _translate(error) from None
    if is_student:
        conn.execute(
            text(
                "INSERT INTO students (id, active, location, location_at) VALUES"
                f" (:id, :active, {_POINT}, CASE WHEN CAST(:lat AS float8) IS NOT NULL THEN clock_timestamp() END)"
            ),
            {"id": user_id, "active": new.active} | point,
        )
    return get_user(conn, user_id)


def active_callers(conn: Connection, ids: Collection[int], firebase_uids: Collection[str]) -> dict[int | str, Caller]:
    """Those of these users who are active, by the id or the Firebase uid by which they were asked for."""
    found = conn.execute(_ACTIVE_CALLERS, {"ids": list(ids), "firebase_uids": list(firebase_uids)}).all()
    by_id: dict[int | str, Caller] = {row.id: _caller(row) for row in found if row.id in ids}
    return by_id | {row.firebase_uid: _caller(row) for row in found if row.firebase_uid in firebase_uids}


def get_user(conn: Connection, user_id: int) -> User:
    row = conn.execute(text(f"{_USER} WHERE u.id = :id"), {"id": user_id}).mappings().one_or_none()
    if row is None:
        raise UserNotFound("There is no user with this id.")
    return _user(row)


def list_users(
    conn: Connection,
    *,
    role: Role | None,
    active: bool | None = None,
    search: PeopleSearch | None = None,
    cursor: str | None,
    limit: int,
) -> Page[User]:
    """Newest first: later users have higher ids."""
    conditions: list[str] = []
    values: dict[str, Any] = {"limit": limit + 1}
    if active is not None:
        conditions.append("u.active = :active")
        values["active"] = active
    if role is not None:
        conditions.append("u.role = :role")
        values["role"] = role.value
    if cursor is not None:
        conditions.append("u.id < :before")
        values["before"] = parse_number(cursor)
    where, found = f"WHERE {' AND '.join(conditions)}" if conditions else "", ""
    if search is not None:
        which = " AND ".join([*conditions, search.condition])
        found = f"WITH found AS MATERIALIZED (SELECT u.id FROM users u WHERE {which})"
        where = "WHERE u.id IN (SELECT id FROM found)"
        values |= search.values
    rows = conn.execute(text(f"{found} {_USER} {where} ORDER BY u.id DESC LIMIT :limit"), values).mappings().all()
    return page_of(rows, limit, _user)


_PLAIN_COLUMNS = ("name", "phone", "locale", "institution_id", "firebase_uid")


def patch_user(conn: Connection, user_id: int, changes: Mapping[str, Any]) -> User:
    """Sets plain columns, and `home` for users who are not students. A student's activity and location affect offers,
    so matching changes them.
    """
    unknown = changes.keys() - {*_PLAIN_COLUMNS, "home"}
    assert not unknown, f"patch_user does not change {unknown}"
    sets = [f"{column} = :{column}" for column in _PLAIN_COLUMNS if column in changes]
    values: dict[str, Any] = {"id": user_id, **{column: changes[column] for column in changes if column != "home"}}
    if "home" in changes:
        sets.append(f"home = {_POINT}")
        values |= _point(changes["home"])
    if sets:
        sets.append("updated_at = clock_timestamp()")
        try:
            conn.execute(text(f"UPDATE users SET {', '.join(sets)} WHERE id = :id"), values)
        except IntegrityError as error:
            raise _translate(error) from None
    return get_user(conn, user_id)


def find_caller(conn: Connection, user_id: int) -> Caller | None:
    row = conn.execute(_BY_ID, {"id": user_id}).one_or_none()
    return _caller(row) if row else None


def find_caller_by_firebase_uid(conn: Connection, firebase_uid: str) -> Caller | None:
    row = conn.execute(_BY_FIREBASE_UID, {"uid": firebase_uid}).one_or_none()
    return _caller(row) if row else None


def is_on_duty(conn: Connection, student_id: int) -> bool:
    found = conn.execute(text("SELECT on_duty FROM students WHERE id = :id"), {"id": student_id})
    return bool(found.scalar_one_or_none())


_PUT_DEVICE = text(
    """
    INSERT INTO devices (device_id, user_id, token, platform, address_kind)
    VALUES (:device_id, :user_id, :token, :platform, :address_kind)
    ON CONFLICT (device_id) DO UPDATE
       SET user_id = excluded.user_id, token = excluded.token, platform = excluded.platform,
           address_kind = excluded.address_kind, updated_at = clock_timestamp()
     WHERE devices.user_id = excluded.user_id OR devices.token = excluded.token
    """
)
_KEEP_NEWEST = text(
    """
    DELETE FROM devices WHERE device_id IN (
        SELECT device_id FROM devices WHERE user_id = :user_id ORDER BY updated_at DESC OFFSET :most)
    """
)


def put_device(conn: Connection, user_id: int, device: DeviceRegistration, most: int = 10) -> None:
    """A token belongs to the phone that registered it last, and a phone to the user who signed in last. To take over
    the phone of another user, one has to know its token, because its id is no secret. A user keeps the `most` phones
    that were registered last."""
    # The caller was active when the request came. The lock keeps that so until the commit.
    if not conn.execute(_IS_ACTIVE, {"id": user_id}).scalar_one():
        raise UserDeactivated("This user is not active any more.")
    conn.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:token, 7))"), {"token": device.token})
    conn.execute(
        text("DELETE FROM devices WHERE token = :token AND device_id <> :device_id"),
        {"token": device.token, "device_id": device.device_id},
    )
    values = {
        "device_id": device.device_id,
        "user_id": user_id,
        "token": device.token,
        "platform": device.platform.value,
        "address_kind": device.address_kind.value,
    }
    if not conn.execute(_PUT_DEVICE, values).rowcount:
        raise DeviceTaken("This device is registered for another user with another token. Choose a new device id.")
    conn.execute(_KEEP_NEWEST, {"user_id": user_id, "most": most})


def delete_device(conn: Connection, user_id: int, device_id: str) -> None:
    deleted = conn.execute(
        text("DELETE FROM devices WHERE device_id = :device_id AND user_id = :user_id"),
        {"device_id": device_id, "user_id": user_id},
    ).rowcount
    if not deleted:
        raise DeviceNotFound("You have no such device.")


def _point(location: LatLon | None) -> dict[str, float | None]:
    return {"lat": location.lat if location else None, "lon": location.lon if location else None}


def _translate(error: IntegrityError) -> Exception:
    constraint = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
    if constraint == "users_firebase_uid_key":
        return FirebaseUidTaken("Another user has this Firebase uid.")
    return error


def _caller(row: Any) -> Caller:
    if not row.active:
        raise UserDeactivated("This user is not active any more.")
    home = None if row.lat is None else LatLon(row.lat, row.lon)
    return Caller(row.id, Role(row.role), row.name, row.locale, row.institution_id, home)


def _user(row: RowMapping) -> User:
    return User(
        id=row["id"],
        role=Role(row["role"]),
        name=row["name"],
        phone=row["phone"],
        locale=row["locale"],
        location=None if row["lat"] is None else LatLon(row["lat"], row["lon"]),
        institution_id=row["institution_id"],
        firebase_uid=row["firebase_uid"],
        active=row["active"],
        on_duty=row["on_duty"],
        created_at=row["created_at"],
    )
