"""Who may be asked, in the order in which they are asked.

Order: tasks completed this month, then distance, then id. The distance is the exact geodesic one; `circle.py`
explains how a flat map decides about all but a few. `EXACT` is the same question put plainly: it serves where the
map does not reach, and tests hold the fast answer against it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from app.matching.circle import Circle
from app.matching.store.postgres.connected import Connected
from app.matching.store.records import Candidate, Ranking
from app.users.models import LatLon

SPARE = 8
"""So many more than asked for are measured exactly; nearly always that settles the order at the end of the list."""

# A count belongs to its month, so it is over at local midnight without anybody resetting it.
THIS_MONTH = "(SELECT date_trunc('month', clock_timestamp() AT TIME ZONE {zone})::date)"

COMPLETED = f"CASE WHEN s.month = {THIS_MONTH.format(zone='%(time_zone)s')} THEN s.completed ELSE 0 END"

SPOT = "ST_SetSRID(ST_MakePoint(%(lon)s, %(lat)s), 4326)::geography"

# As an array, because PostgreSQL would otherwise compare every candidate with a plan of its own.
NEVER_ASKED = "s.id <> ALL (ARRAY(SELECT o.student_id FROM offers o WHERE o.task_id = %(task_id)s))"

BUSY_UNTIL = "(SELECT o.deadline FROM offers o WHERE o.student_id = short.id AND o.state = 'PENDING') AS busy_until"

# The index holds all that the inner part reads, so rows are visited only where they changed since the last VACUUM,
# and for those few that are measured exactly. OFFSET 0 keeps the planner from measuring each distance twice. Both
# statements answer with the columns of `Row`.
FAST = f"""
SELECT short.completed, ST_Distance(place.location, {SPOT}) AS distance_m, short.id, {BUSY_UNTIL}, eligible,
       map_distance
FROM (
    SELECT id, completed, map_distance, count(*) OVER () AS eligible
    FROM (SELECT s.id, {COMPLETED} AS completed, s.plane <-> point(%(x)s, %(y)s) AS map_distance
          FROM students s
          WHERE s.available AND s.plane <@ circle(point(%(x)s, %(y)s), %(outer)s) AND {NEVER_ASKED}
          OFFSET 0) near
    WHERE map_distance <= %(inner)s
       OR (SELECT ST_Distance(edge.location, {SPOT}) FROM students edge WHERE edge.id = near.id) <= %(radius_m)s
    ORDER BY completed, map_distance LIMIT %(most)s
) short JOIN students place ON place.id = short.id"""

EXACT = f"""
SELECT completed, distance_m, id, {BUSY_UNTIL}, eligible, 0::float8
FROM (
    SELECT id, completed, distance_m, count(*) OVER () AS eligible
    FROM (SELECT s.id, {COMPLETED} AS completed, ST_Distance(s.location, {SPOT}) AS distance_m
          FROM students s WHERE s.available AND {NEVER_ASKED}
          OFFSET 0) everybody
    WHERE distance_m <= %(radius_m)s
    ORDER BY completed, distance_m, id LIMIT %(most)s
) short"""

# Tasks completed, distance, id: the order of candidates is the order of these tuples.
Row = tuple[int, float, int, datetime | None, int, float]


def _beyond_doubt(circle: Circle, rows: Sequence[Row], last: Row) -> bool:
    """Whoever was not fetched is at least as far on the map as the farthest who was; is that behind `last`?"""
    completed, map_distance = max((row[0], row[5]) for row in rows)
    return completed > last[0] or circle.least_ground(map_distance) > last[1]


class PostgresCandidates(Connected):
    def rank(
        self, task_id: UUID, spot: LatLon, *, radius_m: float, cap: int, time_zone: str, exact: bool = False
    ) -> Ranking:
        """The first `cap` candidates for a task that never asked them."""
        circle = Circle(spot.lat, spot.lon, radius_m)
        values = {"task_id": task_id, "lat": spot.lat, "lon": spot.lon, "radius_m": radius_m, "time_zone": time_zone}
        if exact or not circle.on_the_map:
            rows = self._fetch(EXACT, values | {"most": cap})
        else:
            rows = self._rank_on_the_map(circle, values, cap)
        found = [Candidate(row[2], row[0], row[1], row[3]) for row in rows]
        return Ranking(found, rows[0][4] if rows else 0)

    def _rank_on_the_map(self, circle: Circle, values: dict[str, Any], cap: int) -> Sequence[Row]:
        values |= {"x": circle.x, "y": circle.y, "inner": circle.inner, "outer": circle.outer}
        most = cap + SPARE
        while True:
            rows = self._fetch(FAST, values | {"most": most})
            ranked = rows[:cap]
            if len(rows) < most or _beyond_doubt(circle, rows, ranked[-1]):
                return ranked
            most *= 2

    def _fetch(self, statement: str, values: dict[str, Any]) -> list[Row]:
        """Straight to the driver: on a query of a millisecond, SQLAlchemy's share is a quarter."""
        driver: Any = self.conn.connection
        with driver.cursor(binary=True) as cursor:
            return sorted(cast(list[Row], cursor.execute(statement, values).fetchall()))
