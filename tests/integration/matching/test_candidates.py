"""Which students are candidates, and in which order."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from app.db.database import Database
from app.foundation.ids import uuid7
from app.matching.rules.eligibility import month
from app.matching.rules.map_distance import SearchCircle
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.records import Ranking
from app.matching.store.stores import Store
from app.users.models import LatLon
from tests.support.depth import size
from tests.support.matching import SPOT, Neighbourhood

ISTANBUL = "Europe/Istanbul"


def ranked(town: Neighbourhood, *, radius_m: float = 1000.0, cap: int = 50, exact: bool = False) -> Ranking:
    with town.db.transaction() as conn:
        return Store(conn).rank(uuid7(), SPOT, MatchingRules(radius_m=radius_m, cap=cap), exact=exact)


def ids(ranking: Ranking) -> list[int]:
    return [candidate.student_id for candidate in ranking.candidates]


def test_order_is_by_tasks_of_this_month_then_distance_then_id(town: Neighbourhood) -> None:
    busy_and_near = town.student(10, completed=5)
    far = town.student(900)
    near = town.student(100)
    some = town.student(300, completed=2)
    twin = town.student(100)
    assert ids(ranked(town)) == [near.id, twin.id, far.id, some.id, busy_and_near.id]


def test_candidate_has_the_values_that_decide_its_rank(town: Neighbourhood) -> None:
    town.student(250, completed=3)
    [candidate] = ranked(town).candidates
    assert (candidate.completed, candidate.busy_until) == (3, None)
    assert candidate.distance_m == pytest.approx(250, abs=0.001)


def test_tasks_completed_in_an_earlier_month_do_not_count(town: Neighbourhood) -> None:
    this_month = town.student(10, completed=1)
    last_month = town.student(500, completed=9, months_ago=1)
    last_year = town.student(400, completed=7, months_ago=12)
    found = ranked(town)
    assert ids(found) == [last_year.id, last_month.id, this_month.id]
    assert [candidate.completed for candidate in found.candidates] == [0, 0, 1]


@pytest.mark.parametrize(
    ("now", "first_day"),
    [
        ("2026-03-31 20:59:59.999999+00", "2026-03-01"),
        ("2026-03-31 21:00:00+00", "2026-04-01"),
        ("2026-12-31 20:59:59+00", "2026-12-01"),
        ("2026-12-31 21:00:00+00", "2027-01-01"),
        ("2028-02-29 20:59:59+00", "2028-02-01"),
        ("2028-02-29 21:00:00+00", "2028-03-01"),
    ],
)
def test_month_begins_at_midnight_in_istanbul(db: Database, now: str, first_day: str) -> None:
    at_that_time = month(":time_zone", f"timestamptz '{now}'")
    with db.transaction() as conn:
        found = conn.execute(text(f"SELECT {at_that_time}"), {"time_zone": ISTANBUL}).scalar_one()
    assert str(found) == first_day


def test_only_eligible_students_are_ranked(town: Neighbourhood) -> None:
    fine = town.student(500)
    town.student(10, active=False)
    town.student(20, on_duty=False)
    town.student(30, located=False)
    with_a_task = town.student(40)
    task_id = town.press(town.elder(at=SPOT))
    town.matching.accept(with_a_task, task_id)
    found = ranked(town)
    assert ids(found) == [fine.id]
    assert found.eligible == 1


@pytest.mark.parametrize("exact", [False, True])
def test_radius_includes_999_5_m_and_excludes_1000_5_m(town: Neighbourhood, exact: bool) -> None:
    inside = [town.student(999.5, bearing=bearing).id for bearing in range(0, 360, 15)]
    for bearing in range(0, 360, 15):
        town.student(1000.5, bearing=bearing)
    assert sorted(ids(ranked(town, exact=exact))) == inside


def test_student_at_exactly_the_radius_is_eligible(town: Neighbourhood) -> None:
    """Points projected to 1,000 m are off by up to ten nanometres; the distance that PostGIS measures decides."""
    for bearing in range(0, 360, 5):
        town.student(1000.0, bearing=bearing)
    measured = town.all(
        "SELECT id, ST_Distance(location, ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography) AS metres"
        " FROM students ORDER BY id",
        lat=SPOT.lat,
        lon=SPOT.lon,
    )
    exactly = [row.id for row in measured if row.metres == 1000.0]
    assert exactly, "no student is at exactly 1,000.0 m"
    found = ids(ranked(town, cap=100))
    assert set(exactly) <= set(found)
    assert set(found) == {row.id for row in measured if row.metres <= 1000.0}


def test_student_beyond_the_radius_is_never_asked(town: Neighbourhood) -> None:
    town.student(1000.5)
    inside = town.student(999.5)
    task_id = town.press()
    assert town.asked(task_id) == inside.id
    town.matching.reject(inside, task_id)
    assert town.asked_in_order(task_id) == [inside.id]


def test_candidates_are_capped_but_all_eligible_students_are_counted(town: Neighbourhood) -> None:
    everybody = town.students(*range(10, 80, 10))
    found = ranked(town, cap=3)
    assert ids(found) == [student.id for student in everybody[:3]]
    assert found.eligible == 7


@pytest.mark.parametrize("exact", [False, True])
def test_cap_keeps_the_students_with_the_fewest_tasks(town: Neighbourhood, exact: bool) -> None:
    town.student(10, completed=2)
    town.student(20, completed=1)
    far, near = town.student(900), town.student(800)
    assert ids(ranked(town, cap=1, exact=exact)) == [near.id]
    assert ids(ranked(town, cap=2, exact=exact)) == [near.id, far.id]


@pytest.mark.parametrize("environ", [{"candidate_cap": 2}])
def test_candidates_beyond_the_cap_are_asked_later(town: Neighbourhood) -> None:
    everybody = town.students(*range(10, 80, 10))
    elder = town.elder()
    task_id = town.press(elder)
    for number, student in enumerate(everybody, 1):
        view = town.matching.task(elder, task_id)
        assert (town.asked(task_id), view.asked, view.remaining) == (student.id, number, len(everybody) - number)
        assert len(town.keys(task_id).candidates) <= 2
        town.matching.reject(student, task_id)
    assert town.status(task_id) == "TIMED_OUT"


@pytest.mark.parametrize("environ", [{"candidate_cap": 2}])
def test_candidate_beyond_the_cap_is_asked_if_all_within_it_are_busy(town: Neighbourhood) -> None:
    students = town.students(10, 20, 30)
    tasks = [town.press(elder) for elder in town.elders(3)]
    assert [town.asked(task_id) for task_id in tasks] == [student.id for student in students]


def test_student_who_was_asked_is_not_ranked_again(town: Neighbourhood) -> None:
    asked, other = town.students(10, 20)
    task_id = town.press()
    with town.db.transaction() as conn:
        found = Store(conn).rank(task_id, SPOT, MatchingRules())
    assert (ids(found), town.asked(task_id)) == ([other.id], asked.id)


def test_candidate_with_a_live_offer_has_its_deadline_as_busy_until(town: Neighbourhood) -> None:
    student = town.student(10)
    task_id = town.press()
    [candidate] = ranked(town).candidates
    assert candidate.student_id == student.id
    assert candidate.busy_until == town.task(task_id).next_step_at


# ---- the fast ranking on the map projection equals the exact ranking ----


@pytest.fixture(scope="module")
def scratch(database_url: str) -> Iterator[Database]:
    """For transactions that are rolled back, one for each city: much faster than cleaned tables."""
    database = Database(database_url, pool_size=1)
    yield database
    database.close()


def build_city(conn: Connection, spot: LatLon, radius_m: float, students: int, rng: random.Random) -> None:
    """Inserts students: some at random distances, some within a metre of the rim of the circle, some on a ring, where
    the projection and the true distance order them differently, and some in dorms, where many share a spot or are
    centimetres apart."""
    places: list[tuple[float, float, float, float]] = []
    while len(places) < students:
        kind = rng.random()
        bearing = rng.uniform(0, 360)
        if kind < 0.4:
            places.append((radius_m * rng.uniform(0, 1.4), bearing, 0.0, 0.0))
        elif kind < 0.6:
            places.append((radius_m + rng.choice([-1, 1]) * 10 ** rng.uniform(-6, 0), bearing, 0.0, 0.0))
        elif kind < 0.7:
            ring, unlike = radius_m * rng.uniform(0, 1.0), 10 ** rng.uniform(-9, -3)
            places += [
                (ring * (1 + rng.uniform(0, unlike)), rng.uniform(0, 360), 0.0, 0.0) for _ in range(rng.randint(5, 40))
            ]
        else:
            dorm = radius_m * rng.uniform(0, 1.001)
            apart = rng.choice([0.0, 0.0001, 0.01, 0.5])
            places += [(dorm, bearing, rng.uniform(0, apart), rng.uniform(0, 360)) for _ in range(rng.randint(2, 12))]
    ids = list(range(1_000_000, 1_000_000 + len(places)))
    rng.shuffle(ids)
    conn.execute(
        text("INSERT INTO users (id, role, name) SELECT id, 'STUDENT', 'S' FROM unnest(CAST(:ids AS bigint[])) AS id"),
        {"ids": ids},
    )
    statement = """
    INSERT INTO students (id, month, completed, location)
    SELECT id, (date_trunc('month', clock_timestamp() AT TIME ZONE 'Europe/Istanbul')
                - make_interval(months => months_ago))::date, completed,
           ST_Project(ST_Project(ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography, metres, radians(bearing)),
                      apart, radians(aside))
    FROM unnest(CAST(:ids AS bigint[]), CAST(:months_ago AS int[]), CAST(:completed AS int[]),
                CAST(:metres AS float8[]), CAST(:bearings AS float8[]), CAST(:aparts AS float8[]),
                CAST(:asides AS float8[])) AS s (id, months_ago, completed, metres, bearing, apart, aside)"""
    values: dict[str, Any] = {
        "ids": ids,
        "months_ago": [rng.choice([0, 0, 0, 1]) for _ in ids],
        "completed": [rng.choice([0, 0, 0, 1, 2]) for _ in ids],
        "metres": [place[0] for place in places],
        "bearings": [place[1] for place in places],
        "aparts": [place[2] for place in places],
        "asides": [place[3] for place in places],
    }
    conn.execute(text(statement), {"lat": spot.lat, "lon": spot.lon} | values)


def fast_and_exact(
    scratch: Database, spot: LatLon, radius_m: float, cap: int, students: int, seed: int
) -> tuple[Ranking, Ranking]:
    with scratch.engine.connect() as conn, conn.begin() as transaction:
        build_city(conn, spot, radius_m, students, random.Random(seed))
        answers = [
            Store(conn).rank(uuid7(), spot, MatchingRules(radius_m=radius_m, cap=cap), exact=exact)
            for exact in (False, True)
        ]
        transaction.rollback()
    return answers[0], answers[1]


def assert_same(fast: Ranking, exact: Ranking, circle: SearchCircle) -> None:
    """The same students in the same order with the same counts, and distances within the error bound of the map."""
    assert fast.eligible == exact.eligible
    assert [(item.student_id, item.completed) for item in fast.candidates] == [
        (item.student_id, item.completed) for item in exact.candidates
    ]
    for quick, true in zip(fast.candidates, exact.candidates, strict=True):
        assert abs(quick.distance_m - true.distance_m) <= circle.doubt_m


EVERYWHERE = st.one_of(st.floats(-180, 180), st.floats(179.5, 180), st.floats(-180, -179.5))
LATITUDES = st.one_of(st.floats(-85, 85), st.floats(82.5, 85), st.floats(-85, -82.5), st.floats(36, 42), st.just(0.0))


@settings(max_examples=size(suite=80, deep=250), derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    lat=LATITUDES,
    lon=EVERYWHERE,
    radius_m=st.sampled_from([1.0, 50.0, 1000.0, 5000.0, 100_000.0]),
    cap=st.sampled_from([1, 2, 5, 20, 50]),
    students=st.integers(1, 60),
    seed=st.integers(0, 2**32),
)
def test_map_ranking_equals_exact_ranking_anywhere(
    scratch: Database, clean_stores: None, lat: float, lon: float, radius_m: float, cap: int, students: int, seed: int
) -> None:
    fast, exact = fast_and_exact(scratch, LatLon(lat, lon), radius_m, cap, students, seed)
    assert_same(fast, exact, SearchCircle(lat, lon, radius_m))


def test_map_ranking_equals_exact_ranking_for_4000_students(scratch: Database, clean_stores: None) -> None:
    fast, exact = fast_and_exact(scratch, SPOT, 1000.0, 50, 4000, 7)
    assert_same(fast, exact, SearchCircle(SPOT.lat, SPOT.lon, 1000.0))
    assert fast.eligible > 1000
