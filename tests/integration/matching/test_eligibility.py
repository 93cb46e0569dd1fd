"""The SQL conditions of eligibility agree with each other."""

import itertools

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.matching.eligibility import AVAILABLE, REQUIRED, Obstacle, first_obstacle, without
from app.matching.liveness import answerable, live, overdue
from tests.support.matching import SPOT, Neighbourhood

OWN = list(REQUIRED)
"""Every obstacle but the distance, in the order in which they are named."""


@pytest.mark.parametrize("missing", [set(some) for n in range(5) for some in itertools.combinations(OWN, n)])
def test_student_without_an_obstacle_is_available(town: Neighbourhood, missing: set[Obstacle]) -> None:
    student = town.student(
        10,
        active=Obstacle.INACTIVE not in missing,
        on_duty=Obstacle.OFF_DUTY not in missing,
        located=Obstacle.NO_LOCATION not in missing,
    )
    try:
        if Obstacle.HAS_A_TASK in missing:
            town.run("UPDATE students SET open_task_id = :id", id="00000000-0000-7000-8000-000000000001")
        row = town.one(
            f"SELECT {AVAILABLE} AS available, {without(*OWN)} AS fine, {first_obstacle('1', '2')} AS obstacle"
            " FROM students s WHERE id = :id",
            id=student.id,
        )
        assert row.available is row.fine is (not missing)
        assert row.obstacle == next((obstacle for obstacle in OWN if obstacle in missing), None)
    finally:
        town.run("UPDATE students SET open_task_id = NULL")


@pytest.mark.parametrize(("distance_m", "obstacle"), [("999.9", None), ("1000.0", None), ("1000.1", "TOO_FAR")])
def test_student_on_the_rim_of_the_circle_is_within_it(
    town: Neighbourhood, distance_m: str, obstacle: str | None
) -> None:
    town.student(10, at=SPOT)
    assert town.one(f"SELECT {first_obstacle(distance_m, '1000.0')} AS obstacle FROM students s").obstacle == obstacle


def test_unknown_student_is_inactive(db: Database) -> None:
    statement = f"SELECT {first_obstacle('1', '2')} FROM (SELECT 1) one LEFT JOIN students s ON s.id = 0"
    with db.transaction() as conn:
        assert conn.execute(text(statement)).scalar_one() == "INACTIVE"


@pytest.mark.parametrize("state", ["PENDING", "ACCEPTED", "REJECTED", "EXPIRED", "WITHDRAWN", "RELEASED", "SKIPPED"])
@pytest.mark.parametrize("left_s", [-1, 0, 1])
def test_live_offer_is_either_answerable_or_overdue(db: Database, state: str, left_s: int) -> None:
    now = "timestamptz '2026-03-12 09:00+00'"
    statement = f"""
    SELECT {live("o")} AS live, {answerable("o", now)} AS answerable, {overdue("o", now)} AS overdue
    FROM (SELECT CAST(:state AS text) AS state, {now} + make_interval(secs => :left_s) AS deadline) o"""
    with db.transaction() as conn:
        row = conn.execute(text(statement), {"state": state, "left_s": left_s}).one()
    assert row.live is (state == "PENDING")
    assert (row.answerable, row.overdue) == (row.live and left_s > 0, row.live and left_s <= 0)
