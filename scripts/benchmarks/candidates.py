"""Ranking: the first 50 of about 1,000 students within the radius, in order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from app.foundation.ids import uuid7
from app.matching.rules.map_distance import SearchCircle
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.records import Ranking
from app.matching.store.stores import Store
from app.users.models import LatLon
from benchmarks import city
from benchmarks.attempts import keeping
from benchmarks.bench import TIME_ZONE, Bench, Connection, fetch, say
from benchmarks.city import City
from benchmarks.figures import in_turns, spread
from benchmarks.report import Row, Section

CAP = 50
MOVED = "city_moved"
RIVAL_GOAL, FLOOR_GOAL = 10.0, 2.0

RIVAL = """
SELECT u.id
FROM rival_users u
CROSS JOIN LATERAL (
    SELECT count(*) AS completed FROM rival_tasks t
    WHERE t.student_id = u.id AND t.status = 'COMPLETED'
      AND t.ended_at >= date_trunc('month', now() AT TIME ZONE %(time_zone)s) AT TIME ZONE %(time_zone)s
) month
WHERE u.role = 'STUDENT' AND u.is_active
  AND ST_DWithin(u.location, ST_SetSRID(ST_MakePoint(%(lon)s, %(lat)s), 4326)::geography, %(radius_m)s)
  AND NOT EXISTS (SELECT FROM rival_tasks t WHERE t.student_id = u.id AND t.status IN ('ASSIGNED', 'STARTED'))
ORDER BY month.completed, ST_Distance(u.location, ST_SetSRID(ST_MakePoint(%(lon)s, %(lat)s), 4326)::geography), u.id
LIMIT %(cap)s
"""

FLOOR = """
SELECT id FROM floor_students
WHERE ST_DWithin(plane, ST_SetSRID(ST_MakePoint(%(x)s, %(y)s), 3395), %(outer)s)
ORDER BY completed, ST_Distance(plane, ST_SetSRID(ST_MakePoint(%(x)s, %(y)s), 3395)) LIMIT %(cap)s
"""

TITLE = (
    f"candidates: the first {CAP} for a new task, ms, p50 / p99; floor: planar geometry on a narrow clustered table,"
    " without a check of eligibility; rival: geography on users, with completed tasks counted from tasks"
)


def measure(bench: Bench) -> Section:
    sizes = [2_000, 10_000] if bench.quick else [10_000, 100_000, 1_000_000]
    rows: list[Row] = []
    notes = [
        "Every size is the same city with fewer students. Caches were warm. Ours and the rival gave the same ids in the"
        " same order for every spot.",
    ]
    with keeping(lambda: Section("candidates", TITLE, rows, notes)):
        for students in sizes:
            database = f"city_{students}"
            built = city.find_or_build(bench, database, students)
            largest = students == sizes[-1]
            rows.append(_measure_city(bench, database, built, "", goal=largest))
            if largest:
                # On a copy, because later measurements use the city itself.
                bench.copy(database, MOVED)
                city.move_students(bench, MOVED, every=20)
                rows.append(_measure_city(bench, MOVED, built, ", 5 % moved since VACUUM", goal=False))
                bench.drop(MOVED)
            else:
                bench.drop(database)
    return Section("candidates", TITLE, rows, notes)


def _measure_city(bench: Bench, database: str, built: City, state: str, *, goal: bool) -> Row:
    with (
        bench.database(database) as db,
        bench.connect(database, autocommit=False) as plain,
        db.transaction() as conn,
    ):
        spots = city.spots(plain, built, bench.size(40, 10))

        def ours(spot: LatLon) -> Ranking:
            return Store(conn).rank(uuid7(), spot, MatchingRules(radius_m=city.RADIUS_M, cap=CAP))

        in_circle = _same_answers(spots, ours, lambda spot: rival(plain, spot))
        name = f"{built.students:,} students, {in_circle:,} in the circle{state}"
        say(f"candidates: {name}")
        samples = in_turns(
            {"ours": ours, "floor": lambda spot: floor(plain, spot), "rival": lambda spot: rival(plain, spot)},
            spots,
            bench.size(25, 2),
        )
    row = Row(name, spread(samples["ours"]), spread(samples["floor"]), spread(samples["rival"]))
    assert row.times_rival is not None and row.times_floor is not None, "floor and rival were measured"
    if not goal:
        return row
    met = row.times_rival >= RIVAL_GOAL and row.times_floor <= FLOOR_GOAL
    return replace(row, goal="rival ≥10x, floor ≤2x", met=None if bench.quick else met)


def _same_answers(
    spots: Sequence[LatLon],
    ours: Callable[[LatLon], Ranking],
    theirs: Callable[[LatLon], list[int]],
) -> int:
    """The median number of eligible students in a circle. Raises if ours and the rival disagree about a spot."""
    eligible: list[int] = []
    for spot in spots:
        ranking = ours(spot)
        mine = [item.student_id for item in ranking.candidates]
        if mine != theirs(spot):
            raise AssertionError(f"ours and the plain query disagree at {spot}: {mine} and {theirs(spot)}")
        eligible.append(ranking.eligible)
    return sorted(eligible)[len(eligible) // 2]


def rival(conn: Connection, spot: LatLon) -> list[int]:
    values = {"lat": spot.lat, "lon": spot.lon, "radius_m": city.RADIUS_M, "cap": CAP, "time_zone": TIME_ZONE}
    return [row[0] for row in fetch(conn, RIVAL, values)]


def floor(conn: Connection, spot: LatLon) -> list[Any]:
    circle = SearchCircle(spot.lat, spot.lon, city.RADIUS_M)
    return fetch(conn, FLOOR, {"x": circle.x, "y": circle.y, "outer": circle.outer, "cap": CAP})
