"""Races for one notification, and failures of our stores during a send: a recipient gets no notification twice, and a
cancelled one is not retried."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, text
from structlog.testing import capture_logs

from app.db.database import Database
from app.delivery.actions import service
from app.delivery.channels.memory import MemoryChannel
from app.delivery.messages.claims import Claimed, claim, put_back
from app.delivery.messages.dead_letter_views import EVERY
from app.delivery.messages.dead_letters import discard_dead_letters
from app.delivery.messages.outcomes import Report, Try, Verdict, record
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import Device, NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.channel_worker import ChannelWorker, ChannelWorkerOptions
from app.delivery.sending.heartbeat import Heartbeat
from app.delivery.sending.metrics import DeliveryMetrics
from app.delivery.sending.recorder import Recorder
from app.delivery.sending.sender import Sender
from app.foundation.clock import DatabaseClock
from app.foundation.errors import Unavailable
from app.foundation.ids import uuid7
from app.users.models import AddressKind
from tests.support.actions import SOMEBODY_WAITS, ActionHarness, S
from tests.support.breakers import new_gate
from tests.support.delivery import add_user, change, post, statuses

PUSH = {"channel_type": "push"}
PUSH_THEN_SMS = {"channel_type": "push", "fallback": ["sms"], "within_s": 60}
PHONE, TABLET = Device("phone", "token-phone", AddressKind.TOKEN), Device("tablet", "token-tablet", AddressKind.TOKEN)
SENT = SendResult(Outcome.SENT, provider_message_id="provider:1")
DOWN = SendResult(Outcome.TRANSIENT, "UNREACHABLE")


@pytest.fixture
def harness(db: Database) -> ActionHarness:
    return ActionHarness(db)


def later(harness: ActionHarness, seconds: float) -> Any:
    return harness.sql("SELECT clock_timestamp() + make_interval(secs => :seconds) AS at", seconds=seconds)[0].at


def retrying(harness: ActionHarness, claimed: Claimed, *tries: Try, seconds: float = 0.0) -> Report:
    return Report(claimed, Verdict(S.RETRYING, later(harness, seconds), "UNREACHABLE", failed=True), list(tries))


def test_push_shown_on_one_of_two_phones_gets_no_sms_fallback(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    [claimed] = harness.claim("push")
    with harness.db.transaction() as conn:
        record(conn, [retrying(harness, claimed, Try(PHONE, SENT), Try(TABLET, DOWN), seconds=90)], FOLLOWERS)
    harness.pass_time(id_, 61)
    harness.settle()
    assert harness.sent_to(id_) == [("PUSH", "RETRYING")]
    harness.sql("UPDATE notifications SET due_at = clock_timestamp()")
    harness.deliver("push")
    assert (harness.sent_to(id_), harness.status(id_)) == ([("PUSH", "SENT")], "DONE")


def test_late_record_of_an_attempt_does_not_stop_a_withdrawal(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    [late] = harness.claim("push")
    harness.sql("UPDATE notifications SET due_at = clock_timestamp()")
    [claimed] = harness.claim("push")
    with harness.db.transaction() as conn:
        record(conn, [retrying(harness, claimed, Try(None, DOWN), seconds=90)], FOLLOWERS)
    harness.pass_time(id_, 61)
    with harness.db.transaction() as conn:
        record(conn, [retrying(harness, late, Try(None, DOWN))], FOLLOWERS)
        assert harness.conductor.run_once() == 1
    harness.settle()
    assert harness.sent_to(id_) == [("PUSH", "CANCELLED"), ("SMS", "ACCEPTED")]


def test_push_that_fails_after_its_fallback_leaves_no_dead_letter(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    hanging = harness.claim("push")
    harness.pass_time(id_, 61)
    harness.settle()
    harness.deliver("sms")
    harness.record(hanging, S.DEAD, Outcome.TRANSIENT, "UNREACHABLE")
    harness.settle()
    assert (harness.status(id_), harness.dead_letters()) == ("DONE", [])
    assert harness.sent_to(id_) == [("PUSH", "EXPIRED"), ("SMS", "SENT")]


@pytest.mark.parametrize("worker_does", ["records a failure", "claims", "puts back"])
def test_notification_cancelled_during_a_claim_is_not_retried(harness: ActionHarness, worker_does: str) -> None:
    task_id, person = uuid7(), harness.user()
    harness.ask(harness.plan(PUSH), person, task_id=task_id, data={"type": "OFFER"})
    claimed = harness.claim("push") if worker_does != "claims" else []
    with harness.db.transaction() as worker, harness.db.transaction() as matcher:
        match worker_does:
            case "claims":
                claimed = claim(worker, NotificationType.PUSH, 10, 30, followers=FOLLOWERS).taken
            case "puts back":
                put_back(worker, claimed)
            case _:
                record(worker, [retrying(harness, claimed[0], Try(None, DOWN))], FOLLOWERS)
        assert service.cancel_actions(matcher, [(task_id, person)], "OFFER") == 1
    if worker_does == "claims":
        with harness.db.transaction() as conn:
            record(conn, [retrying(harness, claimed[0], Try(None, DOWN))], FOLLOWERS)
    assert harness.claim("push") == []
    assert [status for _, status in harness.sent_to()] == ["EXPIRED"]


def sent(db: Database, number: int) -> list[Claimed]:
    post(db, [add_user(db, "phone")] * number)
    with db.transaction() as conn:
        return claim(conn, NotificationType.PUSH, 100, 30, followers=FOLLOWERS).taken


@pytest.mark.parametrize("provider_id", ["a\0b", "a\ud800b"])
def test_unstorable_provider_id_does_not_cause_a_second_send(db: Database, provider_id: str) -> None:
    [claimed] = sent(db, 1)
    recorder = Recorder(db, DeliveryMetrics(), FOLLOWERS)
    recorder.put(
        [Report(claimed, Verdict(S.SENT), [Try(PHONE, SendResult(Outcome.SENT, provider_message_id=provider_id))])],
        print,
    )
    recorder.start()
    assert recorder.close(5)
    assert statuses(db) == {"SENT": 1}


class FailingRecorder(Recorder):
    """The database refuses the whole group, and is away once when the first report is written singly."""

    failures = 2

    def write(self, reports: list[Report]) -> None:
        self.failures -= 1
        if self.failures == 1:
            raise ValueError("One report is wrong.")
        if self.failures == 0:
            raise Unavailable("Away.")
        super().write(reports)


def test_single_records_wait_for_the_database(db: Database) -> None:
    recorder = FailingRecorder(db, DeliveryMetrics(), FOLLOWERS)
    recorder.put([Report(one, Verdict(S.SENT), [Try(PHONE, SENT)]) for one in sent(db, 3)], print)
    recorder.start()
    assert recorder.close(5)
    assert statuses(db) == {"SENT": 3}


class InterruptedDatabase(Database):
    """A database that can be away for claims, for records, or for both."""

    is_away_for_claims = False
    is_away_for_records = False
    records_refused = 0

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        if self.is_away_for_claims:
            raise Unavailable("Away.")
        with super().transaction() as conn:
            yield conn

    @contextmanager
    def autocommit(self) -> Generator[Connection]:
        if self.is_away_for_records:
            self.records_refused += 1
            raise Unavailable("Away.")
        with super().autocommit() as conn:
            yield conn


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until, "the condition was not met within 10 s"
        time.sleep(0.01)


def test_claims_wait_until_sends_before_an_outage_are_recorded(db: Database, database_url: str) -> None:
    interrupted = InterruptedDatabase(database_url)
    [id_] = post(db, [add_user(db, "phone")])
    channel = MemoryChannel(lambda _: SENT)
    metrics = DeliveryMetrics()
    recorder = Recorder(interrupted, metrics, FOLLOWERS)
    sender = Sender(channel, DatabaseClock(db.now), new_gate(), rng=lambda: 0.0)
    options = ChannelWorkerOptions(poll_s=0.05, lease_s=channel.longest_s + 1)
    worker = ChannelWorker(
        interrupted, NotificationType.PUSH, channel, sender, recorder, metrics, options, FOLLOWERS, Heartbeat(db)
    )
    interrupted.is_away_for_records = True
    recorder.start()
    worker.start()
    try:
        wait_until(lambda: interrupted.records_refused > 0)
        interrupted.is_away_for_claims = True
        change(db, id_, "due_at = clock_timestamp()")
        wait_until(lambda: interrupted.records_refused > 4)
        interrupted.is_away_for_claims = False
        # Longer than a worker pauses after a failed claim and then waits for the recorders of other processes.
        time.sleep(2.5)
        interrupted.is_away_for_records = False
        wait_until(lambda: statuses(db) == {"SENT": 1})
    finally:
        worker.stop()
        assert worker.join(time.monotonic() + 10)
        assert recorder.close(5)
        interrupted.close()
    assert len(channel.sent) == 1


def test_covering_and_discarding_dead_letters_do_not_deadlock(harness: ActionHarness) -> None:
    plan = harness.plan({"channel_type": "push", "fallback": ["sms"]})
    first, second = (harness.ask(plan, harness.user()) for _ in range(2))
    harness.fail("push")
    [early, _late] = harness.sql("SELECT id, action_id FROM dead_letters ORDER BY id")
    harness.record(harness.claim("sms"), S.SENT, Outcome.SENT, None)
    # The action with the later dead letter is due first, so the conductor takes it first.
    earlier = "UPDATE actions SET due_at = due_at - interval '1 minute' WHERE id = :id"
    harness.sql(earlier, id=second if early.action_id == first else first)

    def discard() -> None:
        with harness.db.transaction() as conn:
            discard_dead_letters(conn, EVERY, None)

    def somebody_waits(number: int) -> bool:
        return len(harness.sql(SOMEBODY_WAITS)) == number

    discarding, conductor = threading.Thread(target=discard), threading.Thread(target=harness.conductor.run_once)
    with capture_logs() as logs:
        with harness.db.transaction() as other:
            other.execute(text("SELECT FROM dead_letters WHERE id = :id FOR UPDATE"), {"id": early.id})
            discarding.start()
            wait_until(lambda: somebody_waits(1))
            conductor.start()
            wait_until(lambda: somebody_waits(2))
        discarding.join(10)
        conductor.join(10)
    assert [harness.status(one) for one in (first, second)] == ["DONE", "DONE"], logs
