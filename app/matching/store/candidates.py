"""Ranks the candidates for a task by tasks completed this month, then distance, then id.

The distance is the exact geodesic distance. `map_distance.py` explains how a flat map gives it to the micrometre.
`MEASURED` is the plain query, with distances by PostGIS. It is used where the order on the map is in doubt or the place
is not on the map, and tests compare the fast answer with it.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, text

from app.db.plain_statements import execute_binary
from app.matching.rules.eligibility import (
    CELLS_AROUND,
    WIDER,
    Candidate,
    busy_until,
    cell_is_near,
    completed_this_month,
    distance_m,
    may_be_listed,
    middle_on_the_map,
    middles_are_near,
    near,
    seen_or_spared_by_one_task,
)
from app.matching.rules.map_distance import SearchCircle
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.connected import Connected
from app.matching.store.records import HelpTask, Ranking
from app.matching.store.students import VERSION
from app.users.models import LatLon

COMPLETED = completed_this_month(":time_zone")

PLACE = "ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography"
MEASURED_M = distance_m(PLACE)

NEAR_ON_THE_MAP = "s.plane <@ circle(point(:x, :y), :outer)"

NEAR_WHILE_WAITING = f"""
CASE WHEN s.location_at > :moved_since THEN {middles_are_near(PLACE, ":radius_m", ":cell_m")}
     ELSE {near(MEASURED_M, ":radius_m")} END"""

NEAR_BY_CELL = f"{NEAR_ON_THE_MAP} AND {cell_is_near('CAST(:area AS circle)', ':cell_m')}"

RULED_OUT = seen_or_spared_by_one_task(":task_id", ":elder_id", ":cancels")

# The index holds all columns of the query on the map, so PostgreSQL visits only rows that changed since the last
# VACUUM. OFFSET 0 keeps the planner from computing each distance twice. Only the row of the first candidate who is free
# is visited for its version, because that one is asked.
STATEMENT = f"""
SELECT listed.*, CASE WHEN row_number() OVER (PARTITION BY busy_until IS NULL ORDER BY completed, distance_m, id) = 1
                      THEN (SELECT {VERSION} FROM students s WHERE s.id = listed.id) END AS version
FROM (
    SELECT short.completed, short.distance_m, short.id, {busy_until("short.id")} AS busy_until, short.eligible,
           short.on_the_rim
    FROM (
        SELECT id, completed, distance_m, count(*) OVER () AS eligible,
               bool_or(distance_m > :inner_m) OVER () AS on_the_rim
        FROM (SELECT s.id, {COMPLETED} AS completed, {{distance}} AS distance_m
              FROM students s
              WHERE {{listed}}
              OFFSET 0) near
        WHERE {near("distance_m", ":at_most_m")}
        ORDER BY completed, distance_m, id LIMIT :most
    ) short
    OFFSET 0
) listed"""

ON_THE_MAP_M = "(s.plane <-> point(:x, :y)) / (:stretch + :stretch_northwards * s.plane[1])"
CELL_M_AWAY = f"({middle_on_the_map(':cell_m')} <-> point(:x, :y)) / :stretch"
ON_THE_MAP = text(STATEMENT.format(distance=ON_THE_MAP_M, listed=may_be_listed(NEAR_ON_THE_MAP, RULED_OUT)))
MEASURED = text(STATEMENT.format(distance=MEASURED_M, listed=may_be_listed(NEAR_ON_THE_MAP, RULED_OUT)))
MEASURED_EVERYWHERE = text(STATEMENT.format(distance=MEASURED_M, listed=may_be_listed("true", RULED_OUT)))
# For a task with an area, which decides who is near. Cells order the candidates, too, because an elder reads who is
# asked: with a student of their own at a known place, an exact order would tell how far away another one is.
IN_AREA = text(STATEMENT.format(distance=CELL_M_AWAY, listed=may_be_listed(NEAR_BY_CELL, RULED_OUT)))
WAITING_ON_THE_MAP = text(
    STATEMENT.format(
        distance=MEASURED_M, listed=may_be_listed(f"{NEAR_ON_THE_MAP} AND {NEAR_WHILE_WAITING}", RULED_OUT)
    )
)
WAITING_EVERYWHERE = text(STATEMENT.format(distance=MEASURED_M, listed=may_be_listed(NEAR_WHILE_WAITING, RULED_OUT)))

# The columns of STATEMENT. The first three make the order of these tuples the order of the candidates.
Row = tuple[int, float, int, datetime | None, int, bool, int | None]


def _in_doubt(rows: Sequence[Row], doubt_m: float) -> bool:
    """True if the map may have put a student on the wrong side of the rim, or in the wrong order with the next student
    of the list.

    Students at exactly the same distance are at the same place, as in a dormitory, so their order is not in doubt.
    """
    too_close_m = 2 * doubt_m
    return bool(rows) and (
        rows[0][5] or any(a[0] == b[0] and 0 < b[1] - a[1] <= too_close_m for a, b in pairwise(rows))
    )


def _candidate(row: Row, distance_m: float | None) -> Candidate:
    return Candidate(row[2], row[0], distance_m, row[3], version=row[6])


def _on_map(circle: SearchCircle) -> dict[str, float]:
    stretch, northwards = circle.halfway_stretch
    here = {"x": circle.x, "y": circle.y, "outer": circle.outer}
    return here | {"stretch": stretch, "stretch_northwards": northwards}


class CandidateStatements(Connected):
    def rank_for(self, task: HelpTask, rules: MatchingRules, *, cap: int | None = None) -> Ranking:
        return self.rank(
            task.id, task.spot, rules, elder_id=task.elder_id, area=task.area, moved_since=task.moved_since, cap=cap
        )

    def rank(
        self,
        task_id: UUID,
        spot: LatLon,
        rules: MatchingRules,
        *,
        elder_id: int | None = None,
        area: str | None = None,
        moved_since: datetime | None = None,
        cap: int | None = None,
        exact: bool = False,
    ) -> Ranking:
        """The first `cap` candidates for a task at this spot. Without `cap`, as many as a list holds. `moved_since` is
        the time of the press, for a task that waits."""
        cap = rules.cap if cap is None else cap
        values: dict[str, Any] = rules.parameters | {
            "task_id": task_id,
            "elder_id": elder_id,
            "area": area,
            "moved_since": moved_since,
            "lat": spot.lat,
            "lon": spot.lon,
            "most": cap + 1,
        }
        circle = SearchCircle(spot.lat, spot.lon, values["radius_m"])
        if area is not None:
            rows = self._in_area(spot, values)
        elif moved_since is not None:
            rows = self._while_waiting(spot, values)
        elif circle.on_the_map and not exact:
            rows = self._on_the_map(circle, values)
        else:
            rows = self._measured(MEASURED_EVERYWHERE, circle, values)
        found = [_candidate(row, None if area else row[1]) for row in rows[:cap]]
        return Ranking(found, rows[0][4] if rows else 0)

    def _in_area(self, spot: LatLon, values: dict[str, Any]) -> list[Row]:
        circle = SearchCircle(spot.lat, spot.lon, values["radius_m"] * WIDER + CELLS_AROUND * values["cell_m"])
        return self._fetch(IN_AREA, values | _on_map(circle) | {"inner_m": math.inf, "at_most_m": math.inf})

    def _while_waiting(self, spot: LatLon, values: dict[str, Any]) -> list[Row]:
        circle = SearchCircle(spot.lat, spot.lon, values["radius_m"] * WIDER + CELLS_AROUND * values["cell_m"])
        values |= {"inner_m": math.inf, "at_most_m": math.inf}
        if circle.on_the_map:
            return self._fetch(WAITING_ON_THE_MAP, values | _on_map(circle))
        return self._fetch(WAITING_EVERYWHERE, values)

    def _on_the_map(self, circle: SearchCircle, values: dict[str, Any]) -> list[Row]:
        doubt_m = circle.doubt_m
        values |= _on_map(circle)
        rim = {"inner_m": circle.radius_m - doubt_m, "at_most_m": circle.radius_m + doubt_m}
        rows = self._fetch(ON_THE_MAP, values | rim)
        return self._measured(MEASURED, circle, values) if _in_doubt(rows, doubt_m) else rows

    def _measured(self, statement: TextClause, circle: SearchCircle, values: dict[str, Any]) -> list[Row]:
        return self._fetch(statement, values | {"inner_m": circle.radius_m, "at_most_m": circle.radius_m})

    def _fetch(self, statement: TextClause, values: dict[str, Any]) -> list[Row]:
        return sorted(execute_binary(self.conn, statement, values))
