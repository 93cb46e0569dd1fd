"""Users, students and devices. `students` has few columns on purpose, because the search for candidates reads it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.types import UserDefinedType

from app.db.schema import GeographyPoint, metadata, one_of
from app.users.people_search import WORDS


class Role(StrEnum):
    ELDER = "ELDER"
    STUDENT = "STUDENT"
    COORDINATOR = "COORDINATOR"
    ADMIN = "ADMIN"


class Platform(StrEnum):
    ANDROID = "ANDROID"
    IOS = "IOS"
    WEB = "WEB"


class AddressKind(StrEnum):
    """FCM is replacing registration tokens by Firebase installation ids; both are in use. WEB_PUSH is the subscription
    of a browser."""

    TOKEN = "TOKEN"
    FID = "FID"
    WEB_PUSH = "WEB_PUSH"


users = Table(
    "users",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("phone", Text),
    Column("locale", Text, nullable=False, server_default="tr"),
    Column("institution_id", BigInteger),
    Column("firebase_uid", Text),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column[Any]("home", GeographyPoint()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    CheckConstraint(one_of("role", Role), name="role"),
    CheckConstraint("locale IN ('tr', 'en')", name="locale"),
    Index("users_firebase_uid_key", "firebase_uid", unique=True, postgresql_where=text("firebase_uid IS NOT NULL")),
    Index("users_role_idx", "role", "id"),
    Index("users_elders_idx", "institution_id", "id", postgresql_where=text("role = 'ELDER'")),
    Index("users_students_idx", "institution_id", "id", postgresql_where=text("role = 'STUDENT'")),
    Index("users_search_idx", text(f"({WORDS})"), postgresql_using="gin"),
    Index("users_phone_idx", "phone", postgresql_where=text("phone IS NOT NULL")),
    Index(
        "users_staff_idx",
        "institution_id",
        postgresql_where=text("role IN ('COORDINATOR', 'ADMIN') AND active"),
    ),
)


class PointColumn(UserDefinedType[Any]):
    """PostgreSQL's own point type. Unlike a PostGIS geometry, an index can return it, so a search need not read the
    table."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "POINT"


ON_THE_MAP = (
    "ST_Transform(ST_SetSRID(ST_MakePoint(ST_X(location::geometry),"
    " greatest(-85::float8, least(85::float8, ST_Y(location::geometry)))), 4326), 3395)"
)

# `available` is generated from the columns that make a student eligible for lists, so it always agrees with them. The
# partial index on it excludes all other students from the search. `plane` is the location on an ellipsoidal Mercator
# map, where the search for a circle needs no trigonometry; `matching/rules/map_distance.py` has the arithmetic.
students = Table(
    "students",
    metadata,
    Column("id", BigInteger, ForeignKey("users.id"), primary_key=True, autoincrement=False),
    Column("month", Date, nullable=False, server_default=text("'-infinity'")),
    Column("completed", Integer, nullable=False, server_default=text("0")),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column("on_duty", Boolean, nullable=False, server_default=text("true")),
    Column("open_task_id", Uuid),
    Column[Any]("location", GeographyPoint()),
    Column("location_at", DateTime(timezone=True)),
    Column[Any]("plane", PointColumn, Computed(f"point(ST_X({ON_THE_MAP}), ST_Y({ON_THE_MAP}))", persisted=True)),
    Column(
        "available",
        Boolean,
        Computed("active AND on_duty AND open_task_id IS NULL AND location IS NOT NULL", persisted=True),
    ),
    # A place that counts only later, because the student moved there faster than anybody can. Until then `location` is
    # empty.
    Column[Any]("next_location", GeographyPoint()),
    Column("next_location_from", DateTime(timezone=True)),
    # How far the reports are ahead of the fastest movement that is believed; null is 0.
    Column("ahead_m", Double),
    # The withdrawals of the last 24 hours.
    Column("withdrew_at", ARRAY(DateTime(timezone=True))),
    # Off duty until a coordinator says otherwise.
    Column("suspended_at", DateTime(timezone=True)),
    CheckConstraint("suspended_at IS NULL OR NOT on_duty", name="suspended_is_off_duty"),
    CheckConstraint(
        "(next_location IS NULL) = (next_location_from IS NULL) AND (next_location IS NULL OR location IS NULL)",
        name="one_location_counts",
    ),
    Index(
        "students_next_location_idx",
        "next_location_from",
        postgresql_where=text("next_location_from IS NOT NULL"),
    ),
    Index(
        "students_available_idx",
        "plane",
        postgresql_using="gist",
        postgresql_include=["id", "month", "completed"],
        postgresql_where=text("available"),
    ),
    # For coordinators, who may assign these students as well. Each active student is in one of the two indexes.
    Index(
        "students_unavailable_idx",
        "plane",
        postgresql_using="gist",
        postgresql_where=text("active AND NOT available"),
    ),
    # Vacuumed often, because a search skips the table only for pages that were vacuumed since their last change.
    postgresql_with={"autovacuum_vacuum_scale_factor": "0.02"},
)

devices = Table(
    "devices",
    metadata,
    Column("device_id", Text, primary_key=True),
    Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("token", Text, nullable=False, unique=True),
    Column("platform", Text, nullable=False),
    Column("address_kind", Text, nullable=False, server_default="TOKEN"),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    CheckConstraint(one_of("platform", Platform), name="platform"),
    CheckConstraint(one_of("address_kind", AddressKind), name="address_kind"),
    Index("devices_user_id_idx", "user_id"),
)


@dataclass(frozen=True)
class LatLon:
    lat: float
    lon: float


@dataclass(frozen=True)
class Caller:
    """The active user who sent a request, identified by a verified token."""

    id: int
    role: Role
    name: str
    locale: str
    institution_id: int | None
    home: LatLon | None = field(default=None, repr=False)

    @property
    def is_coordinator(self) -> bool:
        """An admin may do what a coordinator may."""
        return self.role in (Role.COORDINATOR, Role.ADMIN)
