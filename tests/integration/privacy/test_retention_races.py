"""Retention beside all other work: it waits for nobody, and nobody waits for it."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.db.bites import LIMIT_MS
from app.db.database import Database
from app.db.months import TableBusy, in_short_locks, partitions
from app.delivery.service import MONTHLY
from app.privacy.service import RetentionRun, run_retention
from app.settings.settings import Settings
from tests.support.actions import ActionHarness
from tests.support.matching import Neighbourhood, at_once, broken_promises
from tests.support.old_rows import OldRows

NOTE = "Kalp ilacım bitti"


@pytest.fixture
def old(db: Database) -> Iterator[OldRows]:
    rows = OldRows(db)
    yield rows
    rows.drop_months()


@pytest.fixture
def own_database(settings: Settings) -> Iterator[Database]:
    """Of the job, as it has one connection and the name by which its locks are found."""
    db = Database(settings.database_url, pool_size=1, application_name="yaninda-retention")
    yield db
    db.close()


LOCKS = """
SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE a.application_name = 'yaninda-retention' AND l.locktype <> 'virtualxid'
"""
# The longest time that somebody has been waiting for a lock of the job.
WAITS = """
SELECT extract(epoch FROM max(clock_timestamp() - l.waitstart)) AS s
FROM pg_locks l JOIN pg_stat_activity job ON job.pid = ANY(pg_blocking_pids(l.pid))
WHERE NOT l.granted AND job.application_name = 'yaninda-retention'
"""


def test_no_lock_is_held_between_two_bites(
    services: Services, own_database: Database, db: Database, old: OldRows
) -> None:
    """So a process that stands still there keeps nobody waiting."""
    old.many_notifications(2_000, days=40)
    held: list[int] = []

    def stand_still() -> bool:
        with db.reading() as conn:
            held.append(conn.execute(text(LOCKS)).scalar_one())
        return False

    run_retention(own_database, services.settings, kinds=["messages"], cancelled=stand_still)
    assert len(held) > 5
    assert set(held) == {0}


def test_bite_that_takes_too_long_is_ended_and_made_smaller(
    services: Services, own_database: Database, old: OldRows
) -> None:
    old.many_notifications(300, days=40)
    old.run(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END';"
    )
    old.run("CREATE TRIGGER slow BEFORE UPDATE ON notifications FOR EACH ROW EXECUTE FUNCTION slow()")
    try:
        done = run_retention(own_database, services.settings, kinds=["messages"])["kinds"]["messages"]
    finally:
        old.run("DROP FUNCTION slow() CASCADE")
    assert done["rows"] == 300
    assert LIMIT_MS <= done["longest_ms"] < 10 * LIMIT_MS
    assert old.rows("SELECT count(*) AS n FROM notifications WHERE body <> ''")[0].n == 0


def test_locked_rows_are_skipped_and_forgotten_by_the_next_run(
    services: Services, own_database: Database, db: Database, old: OldRows
) -> None:
    locked, free = old.notification(days=50, body="biri tutuyor"), old.notification(days=40, body="serbest")
    town = Neighbourhood(services)
    task_id = town.press(note=NOTE)
    assert town.status(task_id) == "TIMED_OUT"
    old.age_task(task_id, days=31)
    with db.transaction() as conn:
        conn.execute(text("SELECT FROM notifications WHERE id = :id FOR UPDATE"), {"id": locked})
        conn.execute(text("SELECT FROM tasks WHERE id = :id FOR UPDATE"), {"id": task_id})
        began = time.monotonic()
        done = run_retention(own_database, services.settings, kinds=["messages", "notes"])["kinds"]
        assert time.monotonic() - began < 3
    assert (done["messages"]["rows"], done["messages"]["skipped"]) == (1, 1)
    assert done["notes"]["skipped"] == 1
    assert [row.body for row in old.notifications(locked, free)] == ["biri tutuyor", ""]
    done = run_retention(own_database, services.settings, kinds=["messages", "notes"])["kinds"]
    assert (done["messages"]["rows"], done["notes"]["rows"]) == (1, 1)
    assert old.notifications(locked)[0].body == ""
    town.close()


def test_dropping_a_month_gives_way_to_a_long_transaction(own_database: Database, db: Database, old: OldRows) -> None:
    old.notification(days=300)
    with db.reading() as conn:
        month = partitions(conn, MONTHLY[0])[0].name
    slowest = 0.0
    give_up = threading.Event()

    def drop() -> None:
        with pytest.raises(TableBusy):
            in_short_locks(own_database, [f"DROP TABLE {month}"], lambda _conn: False, tries=8)
        give_up.set()

    with db.transaction() as conn:
        conn.execute(text("SELECT count(*) FROM notifications"))
        thread = threading.Thread(target=drop)
        thread.start()
        while not give_up.is_set():
            began = time.monotonic()
            old.notification(days=0)
            slowest = max(slowest, time.monotonic() - began)
        thread.join()
    assert old.count(month) == 1
    assert 0 < slowest < 2


def test_month_that_is_in_use_all_night_does_not_keep_the_rest(
    services: Services, own_database: Database, db: Database, old: OldRows
) -> None:
    """As during a backup."""
    old.notification(days=300)
    run = RetentionRun(own_database, services.settings, db.now(), lambda *_: None, lambda: False, drop_tries=2)
    with db.transaction() as conn:
        conn.execute(text("SELECT count(*) FROM notification_attempts"))
        attempts, notifications, devices = run.forget(["attempts", "notifications", "devices"])
    assert (len(attempts.busy), attempts.months, devices.busy) == (1, [], [])
    assert (notifications.busy, notifications.rows) == ([], 1)
    assert run.forget(["attempts"])[0].months == attempts.busy


def test_presses_accepts_and_messages_go_on_beside_retention(
    services: Services, own_database: Database, db: Database, old: OldRows
) -> None:
    town, harness = Neighbourhood(services), ActionHarness(db)
    for months in range(1, 9):
        old.many_notifications(1_500, days=30 * months + 10)
    elders, students = town.elders(6), town.students(*range(100, 700, 100))
    stop = threading.Event()
    runs: list[Any] = []
    waits: list[float] = []

    def forget() -> None:
        while not stop.is_set():
            # Fresh work for every run.
            old.many_notifications(500, days=45)
            old.run("DELETE FROM retention_marks")
            runs.append(run_retention(own_database, services.settings))

    def watch() -> None:
        while not stop.is_set():
            with db.reading() as conn:
                waits.append(float(conn.execute(text(WAITS)).scalar_one() or 0))

    def serve(number: int) -> None:
        for turn in range(6):
            task_id = town.press(elders[number], f"{NOTE} {turn}")
            asked = town.asked(task_id)
            for student in (one for one in students if one.id == asked):
                for deed in (town.matching.accept, town.matching.start, town.matching.complete):
                    deed(student, task_id)
                old.age_task(task_id, days=40)

    def send() -> None:
        while not stop.is_set():
            harness.deliver()

    background = [threading.Thread(target=work) for work in (forget, watch, send)]
    for thread in background:
        thread.start()
    try:
        answers = at_once(*[lambda number=number: serve(number) for number in range(len(elders))])
    finally:
        stop.set()
        for thread in background:
            thread.join()
    assert answers == [None] * len(elders)
    assert runs
    assert sum(run["kinds"]["messages"]["rows"] for run in runs) > 0
    # Far from the second that a deadlock would take. `scripts/bench retention` measures it on a quiet machine.
    assert max(waits) < 0.5
    run_retention(own_database, services.settings)
    with db.transaction() as conn:
        assert broken_promises(conn) == {}
    town.close()
