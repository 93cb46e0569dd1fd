"""Who may be asked, in the order in which they are asked.

Order: tasks completed this month, then distance, then id. The distance is the exact geodesic one; `circle.py`
explains how a flat map decides about all but a few. `EXACT` is the same question put plainly: it serves where the
map does not reach, and tests hold the fast answer against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from app.matching.circle import SLACK_M, Circle
from app.users.models import LatLon


@dataclass(frozen=True)
class Candidate:
    student_id: int
    completed: int
    distance_m: float
    busy_until: datetime | None
    """Deadline of the offer this student is considering elsewhere."""


@dataclass(frozen=True)
class Ranking:
    candidates: Sequence[Candidate]
    eligible: int
    """How many there are altogether, the list being cut at its cap."""


MONTH = "(SELECT date_trunc('month', clock_timestamp() AT TIME ZONE :time_zone)::date)"
NEVER_ASKED = "NOT EXISTS (SELECT FROM offers o WHERE o.task_id = :task_id AND o.student_id = s.id)"
SPOT = "ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography"

_TAIL = """
SELECT s.student_id, s.completed, s.distance_m, (SELECT count(*) FROM inside) AS eligible, o.deadline AS busy_until
FROM short s LEFT JOIN offers o ON o.student_id = s.student_id AND o.state = 'PENDING'
ORDER BY s.completed, s.distance_m, s.student_id
"""


FAST = text(f"""
WITH inside AS MATERIALIZED (
    SELECT id, CASE WHEN month = {MONTH} THEN completed ELSE 0 END AS completed, map_distance
    FROM (SELECT s.id, s.month, s.completed, s.location, ST_Distance(s.plane, here.map) AS map_distance
          FROM students s, (SELECT ST_SetSRID(ST_MakePoint(:x, :y), 3395) AS map) here
          WHERE s.available AND s.plane && ST_MakeEnvelope(:x - :outer, :y - :outer, :x + :outer, :y + :outer, 3395)
            AND {NEVER_ASKED}
          OFFSET 0) near
    WHERE map_distance <= :outer
      AND (map_distance <= :inner OR ST_Distance(location, {SPOT}) <= :radius_m)
), last AS (
    SELECT completed, map_distance FROM inside ORDER BY completed, map_distance OFFSET :cap - 1 LIMIT 1
), short AS (
    SELECT i.id AS student_id, i.completed, ST_Distance(s.location, {SPOT}) AS distance_m
    FROM inside i JOIN students s USING (id)
    WHERE (i.completed, i.map_distance) <=
          (coalesce((SELECT completed FROM last), 2147483647),
           coalesce((SELECT map_distance * :doubt + :slack FROM last), 'infinity'))
)
{_TAIL}
LIMIT :cap""")


EXACT = text(f"""
WITH inside AS MATERIALIZED (
    SELECT s.id AS student_id, CASE WHEN s.month = {MONTH} THEN s.completed ELSE 0 END AS completed,
           ST_Distance(s.location, {SPOT}) AS distance_m
    FROM students s
    WHERE s.available AND ST_Distance(s.location, {SPOT}) <= :radius_m
      AND {NEVER_ASKED}
), short AS (
    SELECT * FROM inside ORDER BY completed, distance_m, student_id LIMIT :cap
)
{_TAIL}""")


def rank(
    conn: Connection,
    task_id: UUID,
    spot: LatLon,
    *,
    radius_m: float,
    cap: int,
    time_zone: str,
    exact: bool = False,
) -> Ranking:
    """The first `cap` candidates for a task that never asked them."""
    circle = Circle(spot.lat, spot.lon, radius_m)
    where = {"task_id": task_id, "lat": spot.lat, "lon": spot.lon, "radius_m": radius_m, "cap": cap}
    if exact or not circle.on_the_map:
        rows = conn.execute(EXACT, where | {"time_zone": time_zone}).all()
    else:
        on_map = {
            "x": circle.x,
            "y": circle.y,
            "inner": circle.inner,
            "outer": circle.outer,
            "doubt": circle.doubt,
            "slack": SLACK_M,
        }
        rows = conn.execute(FAST, where | on_map | {"time_zone": time_zone}).all()
    found = [Candidate(row.student_id, row.completed, row.distance_m, row.busy_until) for row in rows]
    return Ranking(found, rows[0].eligible if rows else 0)
