"""Writes residents with COPY. Those whose key is there already are left as they are."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.db.database import driver
from app.jobs.city.residents import Resident
from app.users.models import Role

STAGE = """
CREATE TEMPORARY TABLE new_residents (
    key text, name text, phone text, institution_id bigint, lat float8, lon float8, on_duty boolean
) ON COMMIT DROP
"""
COPY = "COPY new_residents (key, name, phone, institution_id, lat, lon, on_duty) FROM STDIN"
SPOT = "ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geography"

ADD = f"""
WITH added AS (
    INSERT INTO users (role, name, phone, institution_id, firebase_uid, home)
    SELECT :role, name, phone, institution_id, key, CASE WHEN :role = '{Role.ELDER}' THEN {SPOT} END
      FROM new_residents
    ON CONFLICT (firebase_uid) WHERE firebase_uid IS NOT NULL DO NOTHING
    RETURNING id, firebase_uid
), enrolled AS (
    INSERT INTO students (id, on_duty, location, location_at)
    SELECT added.id, on_duty, {SPOT}, clock_timestamp()
      FROM added JOIN new_residents ON key = firebase_uid WHERE :role = '{Role.STUDENT}'
)
SELECT count(*) FROM added
"""


def add_residents(conn: Connection, role: Role, people: Sequence[Resident], on_duty: float) -> int:
    """All of one role. Returns how many were added."""
    conn.execute(text(STAGE))
    with driver(conn).cursor() as cursor, cursor.copy(COPY) as copy:
        for one in people:
            spot = one.home
            copy.write_row((one.key, one.name, one.phone, one.institution_id, spot.lat, spot.lon, one.draw < on_duty))
    added = conn.execute(text(ADD), {"role": role.value}).scalar_one()
    conn.execute(text("DROP TABLE new_residents"))
    return added
