"""Settles the demo neighbourhood in a copy: its people, and the tasks that they have finished."""

from collections.abc import Mapping
from datetime import timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, text

from app.jobs.city import finished_tasks
from app.jobs.city.add_residents import add_residents
from app.jobs.city.finished_tasks import History
from app.jobs.city.neighbours import HOME, ON_DUTY, YOURS, Neighbour, others
from app.users import service as users
from app.users.models import LatLon, Role

SEED = 1
TASKS = 600
LONGEST_TASK = timedelta(hours=3)
"""All tasks of the past have to be over now."""

_KNOWN = "SELECT firebase_uid AS key, id FROM users WHERE firebase_uid = ANY(:keys)"
# A copy that was made before the people had keys. The administrator has no phone that would prove who it is.
_WITHOUT_KEY = """
    UPDATE users SET firebase_uid = :key
     WHERE role = :role AND name = :name AND phone = :phone AND firebase_uid IS NULL RETURNING id
"""
_NORTH_OF_HOME = """
    SELECT ST_Y(p::geometry) AS lat, ST_X(p::geometry) AS lon
      FROM ST_Project(ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography, :metres, 0) AS p
"""


def settle_neighbourhood(conn: Connection, time_zone: str) -> dict[str, int]:
    """Adds whoever is missing. Returns the ids of all by their keys."""
    conn.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('demo neighbourhood', 0))"))
    elsewhere = list(others())
    keys = [one.key for one in (*YOURS, *elsewhere)]
    known = _known(conn, keys)
    if len(known) == len(keys):
        return known
    for neighbour in YOURS:
        if neighbour.key not in known:
            _add(conn, neighbour)
    for role in (Role.ELDER, Role.STUDENT):
        add_residents(conn, role, [one for one in elsewhere if one.role is role], ON_DUTY)
    # Made-up tasks would change the figures of a copy that somebody uses.
    if not conn.execute(text("SELECT EXISTS (SELECT FROM tasks)")).scalar_one():
        _add_past(conn, time_zone)
    return _known(conn, keys)


def _known(conn: Connection, keys: list[str]) -> dict[str, int]:
    return {row.key: row.id for row in conn.execute(text(_KNOWN), {"keys": keys})}


def _add(conn: Connection, neighbour: Neighbour) -> None:
    values: Mapping[str, object] = {
        "key": neighbour.key,
        "role": neighbour.role.value,
        "name": neighbour.name,
        "phone": neighbour.phone,
    }
    if conn.execute(text(_WITHOUT_KEY), values).first() is None:
        users.create_user(
            conn,
            users.NewUser(
                role=neighbour.role,
                name=neighbour.name,
                phone=neighbour.phone,
                location=_location(conn, neighbour.metres),
                institution_id=neighbour.institution_id,
                firebase_uid=neighbour.key,
            ),
        )


def _location(conn: Connection, metres: float | None) -> LatLon | None:
    if metres is None:
        return None
    row = conn.execute(text(_NORTH_OF_HOME), {"lat": HOME.lat, "lon": HOME.lon, "metres": metres}).one()
    return LatLon(row.lat, row.lon)


def _add_past(conn: Connection, time_zone: str) -> None:
    """From the first day of the last month until now, so that both months have something to show."""
    now = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
    today = now.astimezone(ZoneInfo(time_zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    since = (today.replace(day=1) - timedelta(days=1)).replace(day=1)
    finished_tasks.add_finished_tasks(
        conn, History(users.DEMO_OTHERS, SEED, TASKS, since, now - LONGEST_TASK), 1, TASKS
    )
    finished_tasks.count_completed(conn, users.DEMO_OTHERS, time_zone)
