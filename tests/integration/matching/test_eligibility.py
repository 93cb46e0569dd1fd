"""The SQL conditions of eligibility agree with each other."""

import itertools
from uuid import UUID

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.foundation.ids import uuid7
from app.matching.rules.eligibility import (
    AVAILABLE,
    IN_COLUMN,
    REQUIRED,
    CandidateVerdict,
    Obstacle,
    first_obstacle,
    near,
    none_of,
)
from app.matching.rules.liveness import answerable, live, overdue
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.records import NewSearch, Pick, Ranking, Skip
from app.matching.store.stores import Store
from app.users.models import Caller, LatLon
from tests.support.matching import SPOT, Neighbourhood

RULES = MatchingRules()
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
            f"SELECT {AVAILABLE} AS available, {none_of(*IN_COLUMN)} AS fine,"
            f" {first_obstacle(near('1', '2'))} AS obstacle"
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
    assert (
        town.one(f"SELECT {first_obstacle(near(distance_m, '1000.0'))} AS obstacle FROM students s").obstacle
        == obstacle
    )


def everybody(store: Store, town: Neighbourhood, task_id: UUID) -> list[Caller]:
    """A student for each mixture of obstacles, inside the circle and outside, seen before or not, busy or not."""
    found: list[Caller] = []
    for missing in [set[Obstacle](), *({obstacle} for obstacle in OWN)]:
        for metres, seen, busy in itertools.product((999.5, 1000.5), (False, True), (False, True)):
            student = town.student(metres, active=Obstacle.INACTIVE not in missing)
            store.conn.execute(
                text(
                    "UPDATE students SET on_duty = :on_duty, open_task_id = :open,"
                    " location = CASE WHEN :located THEN location END WHERE id = :id"
                ),
                {
                    "id": student.id,
                    "on_duty": Obstacle.OFF_DUTY not in missing,
                    "open": uuid7() if Obstacle.HAS_A_TASK in missing else None,
                    "located": Obstacle.NO_LOCATION not in missing,
                },
            )
            if seen:
                store.insert_skips([Skip(task_id, student.id, Obstacle.OFF_DUTY, 0, None)])
            if busy:
                store.insert_offers([Pick(insert_task(store, town), student.id, 1, 0, 1.0)], RULES.offer_ttl)
            found.append(student)
    return found


def insert_task(store: Store, town: Neighbourhood, spot: LatLon = SPOT) -> UUID:
    task_id = uuid7()
    new = NewSearch(task_id, town.elder().id, None, spot, None, None, Ranking((), 0))
    assert store.make_task(new, None, RULES.offer_ttl, RULES.search_limit)
    return task_id


def test_all_statements_and_the_verdict_agree_on_who_may_be_asked(town: Neighbourhood) -> None:
    with town.db.engine.connect() as conn:
        store = Store(conn)
        task_id = insert_task(store, town)
        ids = [student.id for student in everybody(store, town, task_id)]
        conn.execute(text("UPDATE tasks SET waiting = true WHERE id = :id"), {"id": task_id})
        read = {student_id: store.candidates([(task_id, student_id)], RULES)[task_id, student_id] for student_id in ids}
        by_verdict = {verdict: {id_ for id_ in ids if read[id_].verdict is verdict} for verdict in CandidateVerdict}
        listed = store.rank(task_id, SPOT, RULES).candidates
        exactly = store.rank(task_id, SPOT, RULES, exact=True).candidates
        asked = {student_id for student_id in ids if store.oldest_waiting_tasks([student_id], RULES)}
        later = {student_id for student_id in ids if store.tasks_waiting_for([student_id], RULES)}
        conn.rollback()
    assert len(by_verdict[CandidateVerdict.ASK]) == len(by_verdict[CandidateVerdict.WAIT]) == 1
    assert {item.student_id for item in listed} == by_verdict[CandidateVerdict.ASK] | by_verdict[CandidateVerdict.WAIT]
    assert {item.student_id: item.verdict for item in listed} == {item.student_id: item.verdict for item in exactly}
    assert (
        {item.student_id for item in listed if item.verdict is CandidateVerdict.ASK}
        == by_verdict[CandidateVerdict.ASK]
        == asked
    )
    assert asked < later
    assert by_verdict[CandidateVerdict.DROP] == {student_id for student_id in ids if read[student_id].seen_before}


@pytest.mark.parametrize(("lat", "moved"), [(SPOT.lat, True), (SPOT.lat, False), (84.99, True)])
def test_all_statements_agree_on_who_is_near_a_task_that_waits(town: Neighbourhood, lat: float, moved: bool) -> None:
    """Also where the map of the search ends."""
    home = LatLon(lat, SPOT.lon)
    ids = {town.student(metres, at=home, bearing=metres).id: metres for metres in range(900, 1500, 20)}
    with town.db.engine.connect() as conn:
        store = Store(conn)
        task_id = insert_task(store, town, home)
        conn.execute(text("UPDATE tasks SET waiting = true"))
        if moved:
            conn.execute(text("UPDATE students SET location_at = clock_timestamp()"))
        [task] = store.read_tasks([task_id])
        read = store.candidates([(task_id, student_id) for student_id in ids], RULES)
        near_by = {id_ for _, id_ in read if read[task_id, id_].verdict is CandidateVerdict.ASK}
        ranked = [item.student_id for item in store.rank_for(task, RULES).candidates]
        assert near_by == set(ranked) == {id_ for id_ in ids if store.oldest_waiting_tasks([id_], RULES)}
        conn.rollback()
    assert ranked == sorted(ranked, key=lambda id_: ids[id_]), "the exact distance orders them"
    farthest = max(ids[id_] for id_ in near_by)
    assert {id_ for id_, metres in ids.items() if metres <= 1000} <= near_by
    assert (farthest > 1000) is moved and farthest < 1300


def test_unknown_student_is_inactive(db: Database) -> None:
    statement = f"SELECT {first_obstacle(near('1', '2'))} FROM (SELECT 1) one LEFT JOIN students s ON s.id = 0"
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
