"""Without grouping, each report is recorded by itself, and many are on their way at once."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from app.db.database import Database
from app.delivery.messages.claims import Claimed, claim
from app.delivery.messages.outcomes import Report, Try, Verdict
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import NotificationStatus, NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.metrics import DeliveryMetrics
from app.delivery.sending.recorder import Recorder
from app.settings.settings import Settings
from tests.support.delivery import add_user, attempts, post, row, statuses

S = NotificationStatus
SENT = SendResult(Outcome.SENT)


def take(db: Database, count: int) -> list[Claimed]:
    post(db, [add_user(db, "phone")] * count)
    with db.transaction() as conn:
        return claim(conn, NotificationType.PUSH, count, 30, followers=FOLLOWERS).taken


def sent(claimed: Claimed, result: SendResult = SENT) -> Report:
    return Report(claimed, Verdict(S.SENT), [Try(claimed.devices[0], result)])


@pytest.fixture(params=["first", "prepared"])
def recorder(request: pytest.FixtureRequest, db: Database, settings: Settings) -> Iterator[Recorder]:
    """Its connections are its own. So after three records, the statement is prepared on the one that it gets next."""
    own = Database(settings.database_url)
    recorder = Recorder(own, DeliveryMetrics(), FOLLOWERS, group_s=0)
    recorder.start()
    if request.param == "prepared":
        for claimed in take(db, 3):
            recorder.put([sent(claimed)], lambda _: None)
            recorder.wait_until_written(5)
        with db.transaction() as conn:
            conn.execute(text("TRUNCATE notifications, notification_attempts, users CASCADE"))
    yield recorder
    recorder.close(5)
    own.close()


def put(recorder: Recorder, *reports: Report) -> list[UUID]:
    """Returns a list that gets the ids of those that were recorded or given up."""
    freed: list[UUID] = []
    recorder.put(reports, lambda some: freed.extend(one.claimed.id for one in some))
    return freed


@contextmanager
def locked(db: Database, id_: UUID) -> Iterator[None]:
    with db.transaction() as conn:
        conn.execute(text("SELECT FROM notifications WHERE id = :id FOR UPDATE"), {"id": id_})
        yield


def wait_for_lock(db: Database) -> int:
    """Returns the process of PostgreSQL that waits for a lock."""
    waiting = text("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    paused = threading.Event()
    for _ in range(500):
        with db.reading() as conn:
            pid = conn.execute(waiting).scalar()
        if pid is not None:
            return pid
        paused.wait(0.01)
    raise AssertionError("no process waits for a lock")


def test_a_record_that_cannot_be_written_leaves_the_others_alone(db: Database, recorder: Recorder) -> None:
    first, second, third, gone = take(db, 4)
    # PostgreSQL refuses the character NUL, and an attempt without its notification.
    refused = sent(second, SendResult(Outcome.SENT, "CODE\0"))
    unknown = replace(gone, notification=replace(gone.notification, id=UUID(int=1)))
    with capture_logs() as logs:
        freed = put(recorder, sent(first), refused, sent(unknown), sent(third))
        recorder.wait_until_written(5)
    assert [row(db, one.id).status for one in (first, second, third)] == ["SENT", "SENDING", "SENT"]
    assert [len(attempts(db, one.id)) for one in (first, second, third)] == [1, 0, 1]
    assert sorted(freed) == sorted(one.id for one in (first, second, unknown, third))
    assert str(second.id) in {one.get("notification_id") for one in logs}


def test_a_report_that_no_record_can_have_leaves_the_others_alone(db: Database, recorder: Recorder) -> None:
    first, wrong, third = take(db, 3)
    with capture_logs() as logs:
        impossible = replace(sent(wrong), verdict=Verdict(S.CANCELLED))
        freed = put(recorder, sent(first), impossible, sent(third))
        recorder.wait_until_written(5)
    assert [row(db, one.id).status for one in (first, wrong, third)] == ["SENT", "SENDING", "SENT"]
    assert len(freed) == 3
    assert [one.get("notification_id") for one in logs if one["log_level"] == "error"] == [None, str(wrong.id)]


def test_what_a_worker_has_lost_is_refused_and_the_others_are_not(db: Database, recorder: Recorder) -> None:
    first, lost, third = take(db, 3)
    with db.transaction() as conn:
        conn.execute(text("UPDATE notifications SET attempts = 2 WHERE id = :id"), {"id": lost.id})
    with capture_logs() as logs:
        put(recorder, sent(first), sent(lost), sent(third))
        recorder.wait_until_written(5)
    assert [row(db, one.id).status for one in (first, lost, third)] == ["SENT", "SENDING", "SENT"]
    assert [(one["event"], one["count"]) for one in logs if "count" in one] == [("delivery_records_refused", 1)]


def test_reports_of_more_than_one_statement_are_recorded_among_the_others(db: Database, recorder: Recorder) -> None:
    first, given_up, third = take(db, 3)
    dead = Report(given_up, Verdict(S.DEAD, error_code="REFUSED", failed=True), [Try(None, SENT)])
    put(recorder, sent(first), dead, sent(third))
    recorder.wait_until_written(5)
    assert statuses(db) == {"SENT": 2, "DEAD": 1}
    with db.reading() as conn:
        assert conn.execute(text("SELECT error_code FROM dead_letters")).scalars().all() == ["REFUSED"]


def end(db: Database, pid: int) -> None:
    with db.reading() as conn:
        conn.execute(text("SELECT pg_terminate_backend(CAST(:pid AS int))"), {"pid": pid})


@pytest.mark.parametrize("meanwhile", [lambda db, pid: None, end])
def test_a_stop_waits_for_records_on_their_way_also_if_their_connection_breaks(
    db: Database, recorder: Recorder, meanwhile: Callable[[Database, int], Any]
) -> None:
    first, held, third = take(db, 3)
    closed: list[bool] = []
    stop = threading.Thread(target=lambda: closed.append(recorder.close(10)))
    with locked(db, held.id):
        freed = put(recorder, sent(first), sent(held), sent(third))
        pid = wait_for_lock(db)
        stop.start()
        meanwhile(db, pid)
    stop.join(15)
    assert closed == [True]
    assert statuses(db) == {"SENT": 3}
    assert [len(attempts(db, one.id)) for one in (first, held, third)] == [1, 1, 1]
    assert len(freed) == 3


def test_a_record_that_is_held_up_does_not_hold_up_those_of_later_answers(db: Database, recorder: Recorder) -> None:
    held, later = take(db, 2)
    recorded = threading.Event()
    with locked(db, held.id):
        put(recorder, sent(held))
        wait_for_lock(db)
        recorder.put([sent(later)], lambda _: recorded.set())
        assert recorded.wait(2)
    recorder.wait_until_written(5)
    assert statuses(db) == {"SENT": 2}
