"""`demo`: loads a small demo neighbourhood in Kadıköy. Running it again changes nothing."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.cli.command import CommandFailed, command_database, fail, print_table
from app.cli.demo_lists import leave_demo_lists
from app.settings.settings import Settings
from app.users import service as users
from app.users.models import LatLon, Role

HOME = LatLon(40.9870, 29.0280)
INSTITUTION = 1


@dataclass(frozen=True)
class Neighbour:
    role: Role
    name: str
    phone: str | None = None
    metres: float | None = None
    """A student's distance to the north of Ayşe's home."""


NEIGHBOURS = (
    Neighbour(Role.ADMIN, "Yönetici"),
    Neighbour(Role.COORDINATOR, "Zeynep Koç", "+905550100001"),
    Neighbour(Role.ELDER, "Ayşe Yılmaz", "+905550100002"),
    Neighbour(Role.ELDER, "Hüseyin Öztürk", "+905550100003"),
    Neighbour(Role.STUDENT, "Ahmet Çelik", "+905550100011", 120),
    Neighbour(Role.STUDENT, "Berat Şahin", "+905550100012", 350),
    Neighbour(Role.STUDENT, "Ceren Güneş", "+905550100013", 600),
    Neighbour(Role.STUDENT, "Deniz Işık", "+905550100014", 900),
    Neighbour(Role.STUDENT, "Emre Doğan", "+905550100015", 1600),
)

_NORTH_OF_HOME = text(
    """
    SELECT ST_Y(p::geometry) AS lat, ST_X(p::geometry) AS lon
      FROM ST_Project(ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography, :metres, 0) AS p
    """
)


def main(settings: Settings, argv: list[str]) -> int:
    if argv:
        return fail("usage: demo")
    try:
        with command_database(settings, "demo") as db, db.transaction() as conn:
            conn.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('demo neighbourhood', 0))"))
            rows = [(_find_or_add(conn, person), person.role, person.name, _distance(person)) for person in NEIGHBOURS]
        if settings.roster_dir is not None:
            leave_demo_lists(settings)
    except CommandFailed as failure:
        return fail(str(failure))
    except OSError as error:
        return fail(f"The lists of the demo cannot be written: {error}. Check ROSTER_DIR.")
    print_table(("ID", "ROLE", "NAME", "FROM AYŞE"), rows)
    return 0


def _find_or_add(conn: Connection, neighbour: Neighbour) -> int:
    found = conn.execute(
        text("SELECT id FROM users WHERE role = :role AND name = :name ORDER BY id LIMIT 1"),
        {"role": neighbour.role.value, "name": neighbour.name},
    ).scalar_one_or_none()
    return found or _add(conn, neighbour)


def _add(conn: Connection, neighbour: Neighbour) -> int:
    is_staff = neighbour.role in (Role.ADMIN, Role.COORDINATOR)
    return users.create_user(
        conn,
        users.NewUser(
            role=neighbour.role,
            name=neighbour.name,
            phone=neighbour.phone,
            location=None if is_staff else _location(conn, neighbour.metres or 0),
            institution_id=None if neighbour.role is Role.ADMIN else INSTITUTION,
        ),
    ).id


def _location(conn: Connection, metres: float) -> LatLon:
    row = conn.execute(_NORTH_OF_HOME, {"lat": HOME.lat, "lon": HOME.lon, "metres": metres}).one()
    return LatLon(row.lat, row.lon)


def _distance(neighbour: Neighbour) -> str:
    return f"{neighbour.metres:.0f} m" if neighbour.metres is not None else ""
