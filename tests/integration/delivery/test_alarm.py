"""The alarm: coordinators get one notification when many dead letters are open."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.alarm import Alarm
from app.delivery.channels import fcm
from app.delivery.messages import dead_letters
from app.delivery.messages.claims import claim
from app.delivery.messages.dead_letters import NewDeadLetter
from app.delivery.messages.outcomes import Report, record
from app.delivery.messages.values import NotificationType
from app.delivery.plans import shipped_plans
from app.delivery.role import FOLLOWERS
from app.delivery.sending.sender import judge
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


def add_dead_letters(db: Database, number: int) -> None:
    with db.transaction() as conn:
        dead_letters.write(conn, [NewDeadLetter("sms", "TIMEOUT", retryable=True) for _ in range(number)])


def close_all_but(db: Database, number: int) -> None:
    with db.transaction() as conn:
        conn.execute(
            text(
                "UPDATE dead_letters SET status = 'REDRIVEN', closed_at = now() WHERE id IN"
                " (SELECT id FROM dead_letters WHERE status = 'OPEN' ORDER BY id OFFSET :number)"
            ),
            {"number": number},
        )


def notified(db: Database) -> list[tuple[str, str]]:
    found = rows(
        db,
        "SELECT u.name, n.body FROM notifications n JOIN users u ON u.id = n.recipient_user_id ORDER BY n.id",
    )
    return [tuple(row) for row in found]


def move_last_alarm_to_an_hour_ago(db: Database) -> None:
    with db.transaction() as conn:
        conn.execute(text("UPDATE delivery_alarms SET raised_at = raised_at - interval '61 minutes'"))


def test_no_alarm_below_the_threshold(db: Database):
    add_dead_letters(db, 3)
    assert not Alarm(db, 4).run_once()
    assert notified(db) == []


def test_alarm_at_the_threshold_notifies_each_coordinator(db: Database):
    add_dead_letters(db, 5)
    assert Alarm(db, 4).run_once()
    words = "5 mesaj yerine ulaşmadı. Lütfen ulaşmayan mesajlara bakın."
    assert notified(db) == [("Zeynep", words), ("Y", words)]


def test_alarm_is_not_repeated_until_the_count_has_halved(db: Database):
    alarm = Alarm(db, 4)
    add_dead_letters(db, 4)
    assert [alarm.run_once() for _ in range(3)] == [True, False, False]
    move_last_alarm_to_an_hour_ago(db)
    close_all_but(db, 2)
    assert not alarm.run_once(), "the alarm was raised again at half of the count"
    add_dead_letters(db, 10)
    assert not alarm.run_once()
    close_all_but(db, 1)
    assert not alarm.run_once()
    add_dead_letters(db, 3)
    assert alarm.run_once()
    assert len(notified(db)) == 4


def test_alarm_is_raised_once_an_hour_at_most(db: Database):
    alarm = Alarm(db, 4)
    for _ in range(3):
        add_dead_letters(db, 4)
        alarm.run_once()
        close_all_but(db, 0)
        alarm.run_once()
    assert len(notified(db)) == 2
    move_last_alarm_to_an_hour_ago(db)
    add_dead_letters(db, 4)
    assert alarm.run_once()


def test_threshold_of_one(db: Database):
    alarm = Alarm(db, 1)
    assert not alarm.run_once()
    add_dead_letters(db, 1)
    assert alarm.run_once()
    move_last_alarm_to_an_hour_ago(db)
    assert not alarm.run_once()
    close_all_but(db, 0)
    assert not alarm.run_once()
    add_dead_letters(db, 1)
    assert alarm.run_once()


def test_dead_letters_that_nobody_can_mend_raise_no_alarm(db: Database):
    over = [NewDeadLetter("push", "HTTP_503", retryable=True, expires_at=db.now()) for _ in range(4)]
    with db.transaction() as conn:
        dead_letters.write(conn, over)
    assert not Alarm(db, 4).run_once()
    assert [row.status for row in rows(db, "SELECT status FROM dead_letters")] == ["EXPIRED"] * 4


def test_alarm_to_staff_without_the_app_adds_no_dead_letter(db: Database):
    add_dead_letters(db, 4)
    assert Alarm(db, 4).run_once()
    with db.transaction() as conn:
        taken = claim(conn, NotificationType.PUSH, 10, 30, followers=FOLLOWERS).taken
        verdict = judge(fcm.POLICY, taken[0], [], 0, db.now(), lambda: 0.0)
        record(conn, [Report(one, verdict) for one in taken], FOLLOWERS)
    assert (len(taken), verdict.error_code) == (2, "NO_DEVICE")
    assert len(rows(db, "SELECT FROM dead_letters")) == 4


@pytest.mark.parametrize("looked_before", [True, False])
def test_parallel_processes_raise_one_alarm(db: Database, looked_before: bool):
    if looked_before:
        Alarm(db, 4).run_once()
    for round_ in range(1, 6):
        add_dead_letters(db, 4)
        together = threading.Barrier(8)

        def look(_: int, together: threading.Barrier = together) -> bool:
            together.wait()
            return Alarm(db, 4).run_once()

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(look, range(8))) == 1
        assert len(notified(db)) == 2 * round_
        close_all_but(db, 0)
        Alarm(db, 4).run_once()
        move_last_alarm_to_an_hour_ago(db)


def test_alarm_without_its_plan_notifies_nobody_and_raises_no_error(db: Database):
    with db.transaction() as conn:
        conn.execute(text("UPDATE action_plans SET status = false"))
    add_dead_letters(db, 4)
    assert Alarm(db, 4).run_once()
    assert notified(db) == []
    with db.transaction() as conn:
        conn.execute(text("TRUNCATE action_plans, delivery_alarms CASCADE"))
    add_dead_letters(db, 4)
    assert Alarm(db, 4).run_once()
    assert not Alarm(db, 4).run_once()


def test_alarm_thread_checks_regularly_and_stops(db: Database):
    stop = threading.Event()
    worker = threading.Thread(target=Alarm(db, 4, every_s=0.02).run, args=(stop,))
    worker.start()
    try:
        add_dead_letters(db, 4)
        wait_until(lambda: len(notified(db)) == 2)
    finally:
        stop.set()
        worker.join(10)
    assert not worker.is_alive()
