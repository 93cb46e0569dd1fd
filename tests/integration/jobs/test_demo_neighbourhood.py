"""The people that `demo` loads, and their past."""

from typing import Any

from sqlalchemy import Row, text

from app.db.database import Database
from app.jobs.checks.count_drift import find_students
from app.jobs.city.settle_neighbourhood import settle_neighbourhood
from app.users import service as users
from app.users.models import Role

ISTANBUL = "Europe/Istanbul"
EVERYTHING = """
    SELECT (SELECT json_agg(u ORDER BY id) FROM users u)::text AS users,
           (SELECT json_agg(s ORDER BY id) FROM students s)::text AS students,
           (SELECT count(*) FROM tasks) AS tasks, (SELECT count(*) FROM offers) AS offers
"""
REACHED = """
    SELECT count(*) FROM users elder JOIN students s ON ST_DWithin(s.location, elder.home, 1200)
      JOIN users student ON student.id = s.id
     WHERE elder.role = 'ELDER'
       AND (student.firebase_uid LIKE 'demo/yours/%') <> (elder.firebase_uid LIKE 'demo/yours/%')
"""
ALONE = """
    SELECT count(*) FROM users elder WHERE elder.firebase_uid LIKE 'demo/others/elder/%'
       AND (SELECT count(*) FROM students s WHERE s.on_duty AND ST_DWithin(s.location, elder.home, 1000)) < 4
"""
WITH_A_PAST = """
    SELECT count(*) FROM offers JOIN users u ON u.id = student_id WHERE u.firebase_uid LIKE 'demo/yours/%'
"""
PAST = """
    SELECT count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
           count(*) FILTER (WHERE status = 'TIMED_OUT') AS unmet, max(ended_at) < clock_timestamp() AS over
      FROM tasks
"""


def settle(db: Database) -> dict[str, int]:
    with db.transaction() as conn:
        return settle_neighbourhood(conn, ISTANBUL)


def one(db: Database, statement: str) -> Row[Any]:
    with db.reading() as conn:
        return conn.execute(text(statement)).one()


def test_a_second_run_changes_nothing_and_a_third_adds_who_was_forgotten(db: Database) -> None:
    ids = settle(db)
    assert len(ids) == sum(users.DEMO_COUNTS.values())
    before = one(db, EVERYTHING)
    assert settle(db) == ids
    assert one(db, EVERYTHING) == before
    with db.transaction() as conn:
        users.forget_user(conn, ids["demo/yours/student/1"])
    assert settle(db).keys() == ids.keys()
    assert one(db, EVERYTHING).tasks == before.tasks


def test_nobody_who_is_kept_for_the_reader_is_asked_by_others_or_has_a_past(db: Database) -> None:
    settle(db)
    assert (one(db, REACHED).count, one(db, WITH_A_PAST).count) == (0, 0)
    assert one(db, ALONE).count == 0, "each other elder has students to ask"


def test_the_past_is_over_and_counts_for_the_students(db: Database) -> None:
    settle(db)
    past = one(db, PAST)
    assert past.completed > 400
    assert past.unmet > 10
    assert past.over
    assert find_students(db, ISTANBUL) == []


def test_people_of_an_older_copy_get_their_keys_and_real_people_do_not(db: Database) -> None:
    with db.transaction() as conn:
        student = users.NewUser(Role.STUDENT, "Ahmet Çelik", "+905550100011")
        namesake = users.create_user(conn, users.NewUser(Role.STUDENT, "Berat Şahin", "+905321112233"))
        old = users.create_user(conn, student)
    ids = settle(db)
    assert ids["demo/yours/student/1"] == old.id
    assert namesake.id not in ids.values()
