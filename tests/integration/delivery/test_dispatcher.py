"""The dispatcher with real threads, a real database and, in some tests, real processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from structlog.testing import capture_logs

from app.db.database import Database, psycopg_url
from app.db.wake import Announcer
from app.delivery.actions.redrive import redrive_dead_letters
from app.delivery.channels.base import Channel, MayBegin, OutgoingMessage
from app.delivery.channels.memory import MemoryChannel
from app.delivery.channels.recording import RecordingChannel
from app.delivery.channels.registry import Channels
from app.delivery.messages.claims import claim
from app.delivery.messages.dead_letter_views import DeadLetterCriteria, count_open_dead_letters
from app.delivery.messages.outcomes import Report, Try, Verdict
from app.delivery.messages.retry import SendResult
from app.delivery.messages.submit import NewSubmission, submit
from app.delivery.messages.values import NotificationStatus as S
from app.delivery.messages.values import NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.channel_worker import ChannelWorkerOptions
from app.delivery.sending.dispatcher import Dispatcher
from app.delivery.sending.metrics import DeliveryMetrics
from app.delivery.sending.recorder import Recorder
from app.foundation.clock import DatabaseClock
from app.foundation.ids import uuid7
from app.settings.settings import Settings
from tests.support.breakers import MemoryBreakers
from tests.support.delivery import add_user, attempts, change, everything_stored, make_due, post, row, shown, statuses
from tests.support.depth import size

SENT = SendResult(Outcome.SENT)
DOWN = SendResult(Outcome.TRANSIENT, "UNREACHABLE")
MakeDispatcher = Callable[..., Dispatcher]


@pytest.fixture
def dispatcher(db: Database, settings: Settings) -> MakeDispatcher:
    def make(channel: Channel, **options: Any) -> Dispatcher:
        clock = DatabaseClock(db.now)
        chosen = ChannelWorkerOptions(**({"threads": 4, "poll_s": 0.2} | options))
        return Dispatcher(
            db,
            clock,
            Channels([channel]),
            announcer=Announcer(settings.database_url),
            options=chosen,
            types=[NotificationType.PUSH],
            drain_s=5,
            followers=FOLLOWERS,
            breakers=MemoryBreakers(),
        )

    return make


@contextmanager
def running(*dispatchers: Dispatcher) -> Iterator[None]:
    stop = threading.Event()
    threads = [threading.Thread(target=one.run, args=(stop,)) for one in dispatchers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(15)
    assert not any(thread.is_alive() for thread in threads)


def wait_until(condition: Callable[[], bool], timeout_s: float = 10) -> None:
    """Waits for a condition that another thread or process brings about."""
    paused = threading.Event()
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until, f"the condition was not met within {timeout_s} s"
        paused.wait(0.01)


def metric(dispatcher: Dispatcher, name: str, **labels: str) -> float | None:
    return dispatcher.metrics.registry.get_sample_value(name, {"type": "PUSH", **labels})


# ---- single runs --------------------------------------------------------------------------------------


def test_push_reaches_every_device_of_its_user(db: Database, dispatcher: MakeDispatcher) -> None:
    [id_] = post(db, [add_user(db, "phone", "tablet")])
    one = dispatcher(RecordingChannel(db))
    assert one.run_once() == 1
    assert [(push.device_id, push.title, push.data["notificationId"]) for push in shown(db)] == [
        ("phone", "Yeni talep", str(id_)),
        ("tablet", "Yeni talep", str(id_)),
    ]
    assert row(db, id_).status == "SENT"
    assert attempts(db, id_) == [(1, "phone", "SENT", None), (1, "tablet", "SENT", None)]
    assert metric(one, "yaninda_delivery_sent_total") == 1
    assert metric(one, "yaninda_delivery_latency_seconds_count") == 1


def test_recording_channel_records_pushes_of_users_without_a_device(db: Database, dispatcher: MakeDispatcher) -> None:
    user_id = add_user(db)
    post(db, [user_id])
    dispatcher(RecordingChannel(db)).run_once()
    assert [(push.user_id, push.device_id) for push in shown(db)] == [(user_id, None)]
    assert statuses(db) == {"SENT": 1}


def test_push_is_shown_once_although_the_record_was_lost(db: Database, dispatcher: MakeDispatcher) -> None:
    ids = post(db, [add_user(db, "phone"), add_user(db)])
    dispatcher(RecordingChannel(db)).run_once()
    with db.transaction() as conn:
        conn.execute(text("DELETE FROM notification_attempts"))
        conn.execute(
            text("UPDATE notifications SET status = 'SENDING', due_at = clock_timestamp(), finished_at = NULL")
        )
    dispatcher(RecordingChannel(db)).run_once()
    assert len(shown(db)) == len(ids)
    assert statuses(db) == {"SENT": 2}


def test_push_without_a_device_is_given_up_at_once_and_only_counted(db: Database, dispatcher: MakeDispatcher) -> None:
    [id_] = post(db, [add_user(db)])
    one = dispatcher(MemoryChannel())
    one.run_once()
    assert (row(db, id_).status, row(db, id_).error_code) == ("DEAD", "NO_DEVICE")
    assert metric(one, "yaninda_delivery_dead_total", error_code="NO_DEVICE") == 1
    with db.transaction() as conn:
        assert count_open_dead_letters(conn, 10) == 0


def test_failing_device_gets_three_attempts_and_a_reached_one_gets_one(
    db: Database, dispatcher: MakeDispatcher
) -> None:
    [id_] = post(db, [add_user(db, "phone", "tablet")])
    channel = MemoryChannel(lambda message: DOWN if message.device and message.device.device_id == "tablet" else SENT)
    one = dispatcher(channel)
    for _ in range(3):
        assert one.run_once() == 1
        make_due_if_waiting(db, id_)
    assert one.run_once() == 0
    assert Counter(message.device.device_id for message in channel.sent if message.device) == {"phone": 1, "tablet": 3}
    assert row(db, id_).status == "SENT"


def test_notification_that_always_fails_becomes_a_dead_letter(db: Database, dispatcher: MakeDispatcher) -> None:
    [id_] = post(db, [add_user(db, "phone")])
    one = dispatcher(MemoryChannel(lambda message: DOWN))
    for _ in range(4):
        one.run_once()
        make_due_if_waiting(db, id_)
    stored = row(db, id_)
    assert (stored.status, stored.error_code, stored.attempts, stored.failures) == ("DEAD", "UNREACHABLE", 3, 3)
    assert metric(one, "yaninda_delivery_retried_total", error_code="UNREACHABLE") == 2


def test_the_life_of_a_message_is_logged_by_its_id(db: Database, dispatcher: MakeDispatcher, logs: Any) -> None:
    recipient = f"user:{add_user(db, 'phone')}"
    answers = iter([DOWN, SENT, DOWN, DOWN, DOWN])
    one = dispatcher(MemoryChannel(lambda message: next(answers)))
    lives: list[list[Any]] = []
    for _ in range(2):
        with db.transaction() as conn:
            id_ = submit(conn, NewSubmission(NotificationType.PUSH, recipient, "Kabul eder misin?")).id
        while row(db, id_).finished_at is None:
            one.run_once()
            make_due_if_waiting(db, id_)
        mine = [line for line in logs if line.get("notification_id") == str(id_)]
        lives.append([(line["log_level"], line["event"], line.get("attempt")) for line in mine])
    accepted = ("debug", "notification_accepted", None)
    assert lives == [
        [accepted, ("debug", "notification_retried", 1), ("debug", "notification_sent", 2)],
        [
            accepted,
            ("debug", "notification_retried", 1),
            ("debug", "notification_retried", 2),
            ("info", "notification_given_up", 3),
        ],
    ]
    assert "Kabul" not in str(logs) and recipient not in str(logs)


def test_every_try_counts_for_its_channel_and_a_redriven_message_apart(
    db: Database, dispatcher: MakeDispatcher
) -> None:
    [id_] = post(db, [add_user(db, "phone")])
    answers = iter([DOWN, DOWN, DOWN, SENT])
    one = dispatcher(MemoryChannel(lambda message: next(answers)))
    for _ in range(3):
        one.run_once()
        make_due_if_waiting(db, id_)
    with db.transaction() as conn:
        assert redrive_dead_letters(conn, DeadLetterCriteria(), by=None).redriven == 1
    one.run_once()
    read = one.metrics.registry.get_sample_value
    tries = {
        outcome: read("yaninda_delivery_tries_total", {"handler": "memory", "outcome": outcome}) for outcome in Outcome
    }
    assert (tries[Outcome.SENT], tries[Outcome.TRANSIENT]) == (1, 3)
    assert read("yaninda_delivery_try_seconds_count", {"handler": "memory"}) == 4
    assert metric(one, "yaninda_delivery_redriven_total", status="SENT") == 1
    assert metric(one, "yaninda_delivery_sent_total") is None


def make_due_if_waiting(db: Database, id_: Any) -> None:
    if row(db, id_).status == "RETRYING":
        make_due(db, id_)


def test_claim_of_a_redriven_message_is_not_counted_with_the_others(db: Database, dispatcher: MakeDispatcher) -> None:
    [id_] = post(db, [add_user(db, "phone")])
    change(db, id_, "attempts = 3, fresh_from = 3")
    one = dispatcher(MemoryChannel())
    with running(one):
        wait_until(lambda: statuses(db) == {"SENT": 1})
    assert metric(one, "yaninda_delivery_claimed_total") == 0
    assert metric(one, "yaninda_delivery_redriven_total", status="SENT") == 1


def test_notification_that_expired_before_the_claim_is_not_sent(db: Database, dispatcher: MakeDispatcher) -> None:
    post(db, [add_user(db, "phone")], expires_at=datetime.now(UTC) - timedelta(seconds=1))
    channel = MemoryChannel()
    one = dispatcher(channel)
    assert one.run_once() == 1
    assert channel.sent == []
    assert statuses(db) == {"EXPIRED": 1}
    assert metric(one, "yaninda_delivery_expired_total") == 1


def test_notification_that_expires_after_the_claim_is_not_sent(db: Database, dispatcher: MakeDispatcher) -> None:
    """The send of the first notification lasts until the second has expired."""
    user_id = add_user(db, "phone")
    expires_at = datetime.now(UTC) + timedelta(seconds=0.5)
    first, second = post(db, [user_id, user_id], expires_at=expires_at)

    def slow(message: OutgoingMessage) -> SendResult:
        wait_until(lambda: db.now() > expires_at)
        return SENT

    channel = MemoryChannel(slow)
    dispatcher(channel).run_once()
    assert [message.id for message in channel.sent] == [first]
    assert row(db, second).status == "EXPIRED"


def test_stored_rows_hold_no_token(db: Database, dispatcher: MakeDispatcher) -> None:
    post(db, [add_user(db, "phone")])

    def fail(message: OutgoingMessage) -> SendResult:
        raise RuntimeError(f"could not reach {message.device.token if message.device else None}")

    dispatcher(MemoryChannel(fail)).run_once()
    assert statuses(db) == {"RETRYING": 1}
    assert "token-phone" not in everything_stored(db)


# ---- with threads -------------------------------------------------------------------------------------------------


def test_message_behind_many_to_one_person_is_sent_among_the_first(db: Database, dispatcher: MakeDispatcher) -> None:
    many, another = add_user(db, "phone"), add_user(db, "tablet")
    post(db, [many] * 60)

    def answer(message: OutgoingMessage) -> SendResult:
        if len(channel.sent) == 1:
            post(db, [another])
        return SENT

    channel = MemoryChannel(answer)
    with running(dispatcher(channel, threads=1)):
        wait_until(lambda: statuses(db) == {"SENT": 61})
    order = [message.notification.recipient_user_id for message in channel.sent]
    assert order.index(another) <= 3


def test_announced_notification_is_sent_before_the_next_poll(db: Database, dispatcher: MakeDispatcher) -> None:
    channel = MemoryChannel()
    user_id = add_user(db, "phone")
    one = dispatcher(channel, poll_s=60)
    with running(one):
        post(db, [user_id])
        wait_until(lambda: len(channel.sent) == 1)
        listens = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'yaninda-delivery-listen'"
        wait_until(lambda: count(db, listens) >= 1)
        post(db, [user_id])
        wait_until(lambda: len(channel.sent) == 2, 5)
    assert statuses(db) == {"SENT": 2}


def count(db: Database, query: str) -> int:
    with db.transaction() as conn:
        return conn.execute(text(query)).scalar_one()


def test_unannounced_notification_is_found_by_polling(db: Database, dispatcher: MakeDispatcher) -> None:
    channel = MemoryChannel()
    user_id = add_user(db, "phone")
    with running(dispatcher(channel)), db.transaction() as conn:
        conn.execute(
            text(
                "INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body)"
                " VALUES (gen_random_uuid(), 'PUSH', 'user', :id, '', '')"
            ),
            {"id": user_id},
        )
        conn.commit()
        wait_until(lambda: len(channel.sent) == 1)
    assert [message.notification.recipient_user_id for message in channel.sent] == [user_id]


def test_four_dispatchers_send_each_of_many_notifications_once(db: Database, settings: Settings) -> None:
    user_ids = [add_user(db, f"phone-{number}") for number in range(20)]
    handled: list[Any] = []
    lock = threading.Lock()

    class Counting(RecordingChannel):
        batch_size = 10

        def handle(self, messages: Any) -> list[SendResult]:
            with lock:
                handled.extend(message.id for message in messages)
            return super().handle(messages)

    with ExitStack() as stack:
        dispatchers: list[Dispatcher] = []
        for _ in range(4):
            own = Database(settings.database_url, pool_size=7)
            stack.callback(own.close)
            options = ChannelWorkerOptions(threads=4, poll_s=0.1, claim_limit=50)
            dispatchers.append(
                Dispatcher(
                    own,
                    DatabaseClock(own.now),
                    Channels([Counting(own)]),
                    announcer=Announcer(settings.database_url),
                    options=options,
                    followers=FOLLOWERS,
                    breakers=MemoryBreakers(),
                )
            )
        with running(*dispatchers), ThreadPoolExecutor(4) as pool:
            batches = list(pool.map(lambda _: post(db, user_ids), range(size(suite=25, deep=100))))
            ids = [id_ for batch in batches for id_ in batch]
            wait_until(lambda: statuses(db) == {"SENT": len(ids)}, 60)
    assert sorted(handled) == sorted(ids)
    assert sorted(push.notification_id for push in shown(db)) == sorted(ids)
    assert count(db, "SELECT max(attempts) FROM notifications") == 1
    assert count(db, "SELECT count(*) FROM notification_attempts") == len(ids)
    assert sum(metric(one, "yaninda_delivery_sent_total") or 0 for one in dispatchers) == len(ids)


def test_hanging_send_does_not_delay_other_notifications(db: Database, dispatcher: MakeDispatcher) -> None:
    hanging, user_id = add_user(db, "slow"), add_user(db, "phone")
    release = threading.Event()

    def answer(message: OutgoingMessage) -> SendResult:
        if message.notification.recipient_user_id == hanging:
            release.wait(10)
        return SENT

    with running(dispatcher(MemoryChannel(answer))):
        post(db, [hanging, *[user_id] * 30])
        wait_until(lambda: statuses(db).get("SENT") == 30)
        assert statuses(db) == {"SENT": 30, "SENDING": 1}
        release.set()
    assert statuses(db) == {"SENT": 31}


def test_hanging_channel_does_not_delay_other_channels(db: Database, settings: Settings) -> None:
    """All threads of one worker hang and its queue is full. The worker of the other channel goes on."""
    release, user_id = threading.Event(), add_user(db, "phone")

    def hang(message: OutgoingMessage) -> SendResult:
        release.wait(30)
        return SENT

    stuck = MemoryChannel(hang, type_=NotificationType.WHATSAPP, needs_device=False)
    well = MemoryChannel(type_=NotificationType.SMS, needs_device=False)
    one = Dispatcher(
        db,
        DatabaseClock(db.now),
        Channels([stuck, well]),
        announcer=Announcer(settings.database_url),
        options=ChannelWorkerOptions(threads=2, capacity=5, poll_s=0.2),
        types=[NotificationType.WHATSAPP, NotificationType.SMS],
        followers=FOLLOWERS,
        breakers=MemoryBreakers(),
    )
    with running(one):
        post(db, [user_id] * 50, notification_type=NotificationType.WHATSAPP)
        wait_until(lambda: len(stuck.sent) == 2)
        post(db, [user_id] * 50, notification_type=NotificationType.SMS)
        wait_until(lambda: count(db, SENT_BY_SMS) == 50, 5)
        assert len(stuck.sent) == 2
        release.set()
        wait_until(lambda: statuses(db) == {"SENT": 100})


SENT_BY_SMS = "SELECT count(*) FROM notifications WHERE notification_type = 'SMS' AND status = 'SENT'"


def test_type_without_a_channel_is_given_up_at_once(db: Database, settings: Settings) -> None:
    [id_] = post(db, [add_user(db)], notification_type=NotificationType.SMS)
    Dispatcher(
        db,
        DatabaseClock(db.now),
        Channels([MemoryChannel()]),
        announcer=Announcer(settings.database_url),
        followers=FOLLOWERS,
        breakers=MemoryBreakers(),
    ).run_once()
    assert (row(db, id_).status, row(db, id_).error_code) == ("DEAD", "NO_CHANNEL")


def test_hanging_channel_delays_the_stop_only_for_its_limit(db: Database, settings: Settings) -> None:
    """Its running send is left to its lease, its queued one is returned, and sends of other channels are recorded."""
    release, stop, user_id = threading.Event(), threading.Event(), add_user(db)

    def hang(message: OutgoingMessage) -> SendResult:
        release.wait(30)
        return SENT

    stuck = MemoryChannel(hang, type_=NotificationType.WHATSAPP, needs_device=False)
    well = MemoryChannel(type_=NotificationType.SMS, needs_device=False)
    one = Dispatcher(
        db,
        DatabaseClock(db.now),
        Channels([stuck, well]),
        announcer=Announcer(settings.database_url),
        options=ChannelWorkerOptions(threads=1, poll_s=0.2),
        types=[NotificationType.WHATSAPP, NotificationType.SMS],
        drain_s=0.3,
        abort_s=0.2,
        followers=FOLLOWERS,
        breakers=MemoryBreakers(),
    )
    thread = threading.Thread(target=one.run, args=(stop,))
    thread.start()
    whatsapp = post(db, [user_id] * 2, notification_type=NotificationType.WHATSAPP)
    post(db, [user_id] * 5, notification_type=NotificationType.SMS)
    wait_until(lambda: len(stuck.sent) == 1 and len(well.sent) == 5)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert count(db, SENT_BY_SMS) == 5
    assert sorted(row(db, id_).status for id_ in whatsapp) == ["ACCEPTED", "SENDING"]
    release.set()


class _OneAfterTheOther(MemoryChannel):
    """Gives the next answer of a batch only after the one before is recorded, as seen from outside."""

    def __init__(self, db: Database, batch_size: int) -> None:
        super().__init__(batch_size=batch_size)
        self._db = db
        self.batches: list[int] = []

    def answers(
        self, messages: Sequence[OutgoingMessage], may_begin: MayBegin
    ) -> Iterator[tuple[int, SendResult | None]]:
        self.batches.append(len(messages))
        for place, message in enumerate(messages):
            yield place, SENT
            wait_until(lambda id_=message.id: row(self._db, id_).status == "SENT")


def test_each_answer_is_recorded_while_its_batch_is_still_being_sent(db: Database, dispatcher: MakeDispatcher) -> None:
    """So a kill repeats what was in flight, and not the batch."""
    post(db, [add_user(db, f"phone {number}") for number in range(6)])
    channel = _OneAfterTheOther(db, 6)
    with running(dispatcher(channel, threads=1)):
        wait_until(lambda: statuses(db) == {"SENT": 6})
    assert max(channel.batches) > 1


def test_slow_batch_is_left_unfinished_at_the_stop(db: Database, settings: Settings) -> None:
    begun, release, stop = threading.Event(), threading.Event(), threading.Event()
    phones = [f"phone-{number}" for number in range(3)]

    def slow(message: OutgoingMessage) -> SendResult:
        begun.set()
        release.wait(10)
        return SENT

    one = Dispatcher(
        db,
        DatabaseClock(db.now),
        Channels([MemoryChannel(slow)]),
        announcer=Announcer(settings.database_url),
        options=ChannelWorkerOptions(threads=1, poll_s=0.2),
        types=[NotificationType.PUSH],
        drain_s=0.2,
        abort_s=10,
        followers=FOLLOWERS,
        breakers=MemoryBreakers(),
    )
    thread = threading.Thread(target=one.run, args=(stop,))
    with capture_logs() as logs:
        thread.start()
        [id_] = post(db, [add_user(db, *phones)])
        assert begun.wait(10)
        stop.set()
        wait_until(lambda: any(line["event"] == "delivery_leaves_off" for line in logs))
        release.set()
        thread.join(10)
    assert [device for _, device, outcome, _ in attempts(db, id_) if outcome == "SENT"] == phones[:1]
    assert row(db, id_).status == "ACCEPTED"


def test_drain_finishes_running_sends_and_returns_the_rest(db: Database, dispatcher: MakeDispatcher) -> None:
    user_id = add_user(db, "phone")
    post(db, [user_id] * 20)
    begun, release, stop = threading.Semaphore(0), threading.Event(), threading.Event()

    def slow(message: OutgoingMessage) -> SendResult:
        begun.release()
        release.wait(10)
        return SENT

    thread = threading.Thread(target=dispatcher(MemoryChannel(slow), threads=2).run, args=(stop,))
    thread.start()
    for _ in range(2):
        assert begun.acquire(timeout=10)
    stop.set()
    wait_until(lambda: statuses(db) == {"ACCEPTED": 18, "SENDING": 2})
    release.set()
    thread.join(10)
    assert statuses(db) == {"ACCEPTED": 18, "SENT": 2}
    assert count(db, "SELECT count(*) FROM notifications WHERE due_at > clock_timestamp()") == 0
    assert count(db, "SELECT count(*) FROM delivery_workers") == 0, "nobody waits for a worker that has left"


def test_worker_that_was_replaced_sends_nothing_that_it_claimed_before(
    db: Database, dispatcher: MakeDispatcher
) -> None:
    user_id = add_user(db, "phone")
    first, second = post(db, [user_id] * 2)
    with capture_logs() as logs:

        def answer(message: OutgoingMessage) -> SendResult:
            if message.id == first:
                with db.transaction() as conn:
                    conn.execute(text("DELETE FROM delivery_workers"))
                wait_until(lambda: any(one["event"] == "delivery_worker_was_replaced" for one in logs))
            return SENT

        channel = MemoryChannel(answer)
        with running(dispatcher(channel, threads=1)):
            wait_until(lambda: statuses(db) == {"SENT": 2})
    assert [message.id for message in channel.sent] == [first, second]
    assert (row(db, first).attempts, row(db, second).attempts) == (1, 2)


def test_lost_database_connections_lose_no_notification(db: Database, dispatcher: MakeDispatcher) -> None:
    channel = MemoryChannel()
    user_id = add_user(db, "phone")
    with running(dispatcher(channel)):
        for round_ in range(1, 4):
            post(db, [user_id] * 10)
            wait_until(lambda expected=round_ * 10: len(channel.sent) >= expected)
            end_all_connections(db)
        wait_until(lambda: statuses(db) == {"SENT": 30})
    assert len(channel.sent) == len({message.id for message in channel.sent}) == 30


def end_all_connections(db: Database) -> None:
    """Ends all connections, as a restart of the server does."""
    engine = create_engine(db.engine.url)
    with engine.connect() as conn:
        conn.execute(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    engine.dispose()


def test_record_waits_for_a_database_that_is_away(db: Database, dispatcher: MakeDispatcher) -> None:
    """PostgreSQL refuses connections during a send. The result is recorded when it accepts them again."""
    user_id = add_user(db, "phone")
    sending, release = threading.Event(), threading.Event()

    def answer(message: OutgoingMessage) -> SendResult:
        sending.set()
        release.wait(10)
        return SENT

    name = db.engine.url.database
    outside = create_engine(psycopg_url(os.environ["TEST_DATABASE_URL"]), isolation_level="AUTOCOMMIT")
    channel = MemoryChannel(answer)
    with capture_logs() as logs, running(dispatcher(channel)), outside.connect() as admin:
        [id_] = post(db, [user_id])
        assert sending.wait(10)
        try:
            admin.execute(text(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false'))
            admin.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"), {"name": name}
            )
            release.set()
            wait_until(lambda: any(one["event"] == "delivery_record_waits" for one in logs))
        finally:
            admin.execute(text(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true'))
        wait_until(lambda: row(db, id_).status == "SENT")
    outside.dispose()
    assert len(channel.sent) == 1


def test_record_that_cannot_be_written_does_not_stop_the_others(db: Database) -> None:
    user_id = add_user(db, "phone")
    post(db, [user_id] * 2)
    with db.transaction() as conn:
        first, second = claim(conn, NotificationType.PUSH, 10, 30, followers=FOLLOWERS).taken
    # PostgreSQL refuses the character NUL.
    gone = Try(first.devices[0], SendResult(Outcome.RECIPIENT_GONE, "UNREGISTERED\0"))
    impossible = Report(replace(first, notification=replace(first.notification, id=uuid7())), Verdict(S.SENT), [gone])
    freed: list[list[Report]] = []
    recorder = Recorder(db, DeliveryMetrics(), FOLLOWERS)
    recorder.put([Report(first, Verdict(S.SENT)), impossible, Report(second, Verdict(S.SENT))], freed.append)
    with capture_logs() as logs:
        recorder.start()
        assert recorder.close(5)
    assert statuses(db) == {"SENT": 2}
    assert [len(reports) for reports in freed] == [3]
    assert [one.get("notification_id") for one in logs] == [None, str(impossible.claimed.id)]
    assert "token-phone" not in repr(logs)


# ---- other processes -----------------------------------------------------------------------------------------

DIES_WHILE_SENDING = """
import sys, threading
from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.channels.memory import MemoryChannel
from app.delivery.channels.registry import Channels
from app.delivery.messages.retry import RetryPolicy
from app.delivery.messages.values import NotificationType
from app.delivery.role import FOLLOWERS
from app.delivery.sending.channel_worker import ChannelWorkerOptions
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.clock import DatabaseClock
from tests.support.breakers import MemoryBreakers

def hang(message):
    print("sending", flush=True)
    threading.Event().wait()

url = sys.argv[1]
db = Database(url)
channel = MemoryChannel(hang, policy=RetryPolicy(timeout_s=0.2, retries=2))
options = ChannelWorkerOptions(lease_s=1)
types = [NotificationType.PUSH]
one = Dispatcher(
    db, DatabaseClock(db.now), Channels([channel]),
    announcer=Announcer(url), followers=FOLLOWERS, options=options, types=types, breakers=MemoryBreakers(),
)
one.run(threading.Event())
"""


def test_notification_of_a_killed_worker_is_claimed_when_its_lease_ends(
    db: Database, settings: Settings, dispatcher: MakeDispatcher
) -> None:
    [id_] = post(db, [add_user(db, "phone")])
    command = [sys.executable, "-c", DIES_WHILE_SENDING, settings.database_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        line = worker.stdout.readline()
        worker.kill()
    assert line == "sending\n"
    held_until = row(db, id_).due_at
    channel = MemoryChannel()
    with running(dispatcher(channel)):
        wait_until(lambda: row(db, id_).status == "SENT", 20)
    stored = row(db, id_)
    assert len(channel.sent) == 1
    assert stored.finished_at >= held_until
    assert (stored.attempts, stored.failures) == (2, 0)


def test_role_sends_and_stops_on_sigterm(db: Database, settings: Settings) -> None:
    user_id = add_user(db, "phone")
    worker = subprocess.Popen([sys.executable, "-m", "app", "delivery"], env=environment(settings))
    try:
        post(db, [user_id] * 5)
        wait_until(lambda: statuses(db) == {"SENT": 5}, 20)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0
    finally:
        worker.kill()
        worker.wait()
    assert len(shown(db)) == 5


def environment(settings: Settings, **more: str) -> dict[str, str]:
    stores = {"DATABASE_URL": settings.database_url, "REDIS_URL": settings.redis_url}
    return {**os.environ, **stores, "AUTH_SECRET": settings.auth_secret or "", **more}


def test_role_refuses_to_start_with_invalid_credentials(settings: Settings, tmp_path: Path) -> None:
    broken = tmp_path / "account.json"
    broken.write_text('{"type": "service_account", "private_key": "very secret"}')
    variables = environment(settings, PUSH="fcm", FIREBASE_CREDENTIALS=str(broken))
    ended = subprocess.run(
        [sys.executable, "-m", "app", "delivery"], env=variables, capture_output=True, text=True, timeout=20
    )
    assert ended.returncode == 78
    assert "FIREBASE_CREDENTIALS" in ended.stderr
    assert "very secret" not in ended.stderr
