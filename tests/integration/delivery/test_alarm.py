"""Coordinators hear of it once when messages that did not arrive pile up."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.alarm import Alarm
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letters import NewDeadLetter
from app.delivery.plans import shipped_plans
from tests.support.streams import rows, wait_until


@pytest.fixture(autouse=True)
def staff(db: Database) -> Iterator[None]:
    with db.transaction() as conn:
        shipped_plans.install_shipped(conn)
        conn.execute(
            text(
                "INSERT INTO users (role, name, active) VALUES ('COORDINATOR', 'Zeynep', true), ('ADMIN', 'Y', true),"
                " ('COORDINATOR', 'Gone', false), ('STUDENT', 'Ahmet', true), ('ELDER', 'Ayşe', true)"
            )
        )
    yield


def pile_up(db: Database, number: int) -> None:
    with db.transaction() as conn:
        dead_letters.write(conn, [NewDeadLetter("sms", "TIMEOUT", retryable=True) for _ in range(number)])


def leave_open(db: Database, number: int) -> None:
    with db.transaction() as conn:
        conn.execute(
            text(
                "UPDATE dead_letters SET status = 'REDRIVEN', closed_at = now() WHERE id IN"
                " (SELECT id FROM dead_letters WHERE status = 'OPEN' ORDER BY id OFFSET :number)"
            ),
            {"number": number},
        )


def told(db: Database) -> list[tuple[str, str]]:
    found = rows(
        db,
        "SELECT u.name, n.body FROM notifications n JOIN users u ON u.id = n.recipient_user_id ORDER BY n.id",
    )
    return [tuple(row) for row in found]


def forget_the_hour(db: Database) -> None:
    with db.transaction() as conn:
        conn.execute(text("UPDATE delivery_alarms SET raised_at = raised_at - interval '61 minutes'"))


def test_below_the_threshold_nobody_is_told(db: Database):
    pile_up(db, 3)
    assert not Alarm(db, 4).run_once()
    assert told(db) == []


def test_at_the_threshold_every_coordinator_is_told_how_many_there_are(db: Database):
    pile_up(db, 5)
    assert Alarm(db, 4).run_once()
    words = "5 mesaj yerine ulaşmadı. Lütfen ulaşmayan mesajlara bakın."
    assert told(db) == [("Zeynep", words), ("Y", words)]


def test_it_is_told_once_until_the_pile_has_halved(db: Database):
    alarm = Alarm(db, 4)
    pile_up(db, 4)
    assert [alarm.run_once() for _ in range(3)] == [True, False, False]
    forget_the_hour(db)
    leave_open(db, 2)
    assert not alarm.run_once(), "half is not below half"
    pile_up(db, 10)
    assert not alarm.run_once()
    leave_open(db, 1)
    assert not alarm.run_once()
    pile_up(db, 3)
    assert alarm.run_once()
    assert len(told(db)) == 4


def test_it_is_told_once_an_hour_at_most(db: Database):
    alarm = Alarm(db, 4)
    for _ in range(3):
        pile_up(db, 4)
        alarm.run_once()
        leave_open(db, 0)
        alarm.run_once()
    assert len(told(db)) == 2
    forget_the_hour(db)
    pile_up(db, 4)
    assert alarm.run_once()


def test_a_threshold_of_one(db: Database):
    alarm = Alarm(db, 1)
    assert not alarm.run_once()
    pile_up(db, 1)
    assert alarm.run_once()
    forget_the_hour(db)
    assert not alarm.run_once()
    leave_open(db, 0)
    assert not alarm.run_once()
    pile_up(db, 1)
    assert alarm.run_once()


@pytest.mark.parametrize("looked_before", [True, False])
def test_many_processes_raise_it_once(db: Database, looked_before: bool):
    if looked_before:
        Alarm(db, 4).run_once()
    for round_ in range(1, 6):
        pile_up(db, 4)
        together = threading.Barrier(8)

        def look(_: int, together: threading.Barrier = together) -> bool:
            together.wait()
            return Alarm(db, 4).run_once()

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(look, range(8))) == 1
        assert len(told(db)) == 2 * round_
        leave_open(db, 0)
        Alarm(db, 4).run_once()
        forget_the_hour(db)


def test_without_its_plan_it_is_silent_and_not_in_the_way(db: Database):
    with db.transaction() as conn:
        conn.execute(text("UPDATE action_plans SET status = false"))
    pile_up(db, 4)
    assert Alarm(db, 4).run_once()
    assert told(db) == []
    with db.transaction() as conn:
        conn.execute(text("TRUNCATE action_plans, delivery_alarms CASCADE"))
    pile_up(db, 4)
    assert Alarm(db, 4).run_once()
    assert not Alarm(db, 4).run_once()


def test_at_work_it_looks_by_itself_and_leaves_when_told(db: Database):
    stop = threading.Event()
    worker = threading.Thread(target=Alarm(db, 4, every_s=0.02).run, args=(stop,))
    worker.start()
    try:
        pile_up(db, 4)
        wait_until(lambda: len(told(db)) == 2)
    finally:
        stop.set()
        worker.join(10)
    assert not worker.is_alive()
