"""What happens where two hands of delivery are on the same message at the same moment, and where our own stores fail in
the middle: nothing is sent to somebody who has it, and nothing that was called off is tried again."""

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
from app.delivery.messages.retry import Result
from app.delivery.messages.values import Device, NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.channel_worker import ChannelWorker, ChannelWorkerOptions
from app.delivery.sending.metrics import DeliveryMetrics
from app.delivery.sending.recorder import Recorder
from app.delivery.sending.sender import Sender
from app.foundation.clock import DatabaseClock
from app.foundation.errors import Unavailable
from app.foundation.ids import uuid7
from app.users.models import AddressKind
from tests.support.actions import SOMEBODY_WAITS, ActionHarness, S
from tests.support.delivery import add_user, change, post, statuses

PUSH = {"channel_type": "push"}
PUSH_THEN_SMS = {"channel_type": "push", "fallback": ["sms"], "within_s": 60}
PHONE, TABLET = Device("phone", "token-phone", AddressKind.TOKEN), Device("tablet", "token-tablet", AddressKind.TOKEN)
SENT = Result(Outcome.SENT, provider_message_id="provider:1")
DOWN = Result(Outcome.TRANSIENT, "UNREACHABLE")


@pytest.fixture
def harness(db: Database) -> ActionHarness:
    return ActionHarness(db)


def later(harness: ActionHarness, seconds: float) -> Any:
    return harness.sql("SELECT clock_timestamp() + make_interval(secs => :seconds) AS at", seconds=seconds)[0].at


def retrying(harness: ActionHarness, claimed: Claimed, *tries: Try, seconds: float = 0.0) -> Report:
    return Report(claimed, Verdict(S.RETRYING, later(harness, seconds), "UNREACHABLE", failed=True), list(tries))


def test_who_has_it_on_one_phone_gets_no_sms_because_the_other_phone_is_not_reached(harness: ActionHarness) -> None:
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


def test_an_attempt_that_a_late_worker_notes_down_keeps_no_message_from_being_withdrawn(harness: ActionHarness) -> None:
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


def test_what_fails_after_it_gave_way_leaves_no_dead_letter_that_nobody_can_redrive(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    hanging = harness.claim("push")
    harness.pass_time(id_, 61)
    harness.settle()
    harness.deliver("sms")
    harness.record(hanging, S.DEAD, Outcome.TRANSIENT, "UNREACHABLE")
    harness.settle()
    assert (harness.status(id_), harness.dead_letters()) == ("DONE", [])
    assert harness.sent_to(id_) == [("PUSH", "EXPIRED"), ("SMS", "SENT")]


@pytest.mark.parametrize("hand", ["records a failure", "claims", "puts back"])
def test_what_was_in_a_workers_hands_when_it_was_called_back_is_not_tried_again(
    harness: ActionHarness, hand: str
) -> None:
    task_id, person = uuid7(), harness.user()
    harness.ask(harness.plan(PUSH), person, task_id=task_id, data={"type": "OFFER"})
    claimed = harness.claim("push") if hand != "claims" else []
    with harness.db.transaction() as worker, harness.db.transaction() as matcher:
        match hand:
            case "claims":
                claimed = claim(worker, NotificationType.PUSH, 10, 30, followers=FOLLOWERS).taken
            case "puts back":
                put_back(worker, claimed)
            case _:
                record(worker, [retrying(harness, claimed[0], Try(None, DOWN))], FOLLOWERS)
        assert service.cancel_actions(matcher, task_id, [person], "OFFER") == 1
    if hand == "claims":
        with harness.db.transaction() as conn:
            record(conn, [retrying(harness, claimed[0], Try(None, DOWN))], FOLLOWERS)
    assert harness.claim("push") == []
    assert [status for _, status in harness.sent_to()] == ["EXPIRED"]


def sent(db: Database, number: int) -> list[Claimed]:
    post(db, [add_user(db, "phone")] * number)
    with db.transaction() as conn:
        return claim(conn, NotificationType.PUSH, 100, 30, followers=FOLLOWERS).taken


@pytest.mark.parametrize("said", ["a\0b", "a\ud800b"])
def test_whatever_a_provider_says_what_it_took_is_not_sent_again(db: Database, said: str) -> None:
    [claimed] = sent(db, 1)
    recorder = Recorder(db, DeliveryMetrics(), FOLLOWERS)
    recorder.put(
        [Report(claimed, Verdict(S.SENT), [Try(PHONE, Result(Outcome.SENT, provider_message_id=said))])], print
    )
    recorder.start()
    assert recorder.close(5)
    assert statuses(db) == {"SENT": 1}


class Faltering(Recorder):
    """The database refuses the group as a whole, and is away for a moment when the first is tried by itself."""

    failures = 2

    def write(self, reports: list[Report]) -> None:
        self.failures -= 1
        if self.failures == 1:
            raise ValueError("One of them is wrong.")
        if self.failures == 0:
            raise Unavailable("Away.")
        super().write(reports)


def test_what_is_written_down_one_by_one_waits_for_the_database_too(db: Database) -> None:
    recorder = Faltering(db, DeliveryMetrics(), FOLLOWERS)
    recorder.put([Report(one, Verdict(S.SENT), [Try(PHONE, SENT)]) for one in sent(db, 3)], print)
    recorder.start()
    assert recorder.close(5)
    assert statuses(db) == {"SENT": 3}


class Interrupted(Database):
    """A database that is away, for claims and for records by themselves."""

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
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.01)


def test_after_the_database_was_away_nothing_is_claimed_before_what_was_sent_is_written_down(
    db: Database, database_url: str
) -> None:
    interrupted = Interrupted(database_url)
    [id_] = post(db, [add_user(db, "phone")])
    channel = MemoryChannel(lambda _: SENT)
    metrics = DeliveryMetrics()
    recorder = Recorder(interrupted, metrics, FOLLOWERS)
    sender = Sender(channel, DatabaseClock(db.now), rng=lambda: 0.0)
    options = ChannelWorkerOptions(poll_s=0.05, lease_s=channel.longest_s + 1)
    worker = ChannelWorker(interrupted, NotificationType.PUSH, channel, sender, recorder, metrics, options, FOLLOWERS)
    interrupted.is_away_for_records = True
    recorder.start()
    worker.start()
    try:
        wait_until(lambda: interrupted.records_refused > 0)
        interrupted.is_away_for_claims = True
        change(db, id_, "due_at = clock_timestamp()")
        wait_until(lambda: interrupted.records_refused > 4)
        interrupted.is_away_for_claims = False
        # Longer than the worker goes on waiting for a database that is away.
        time.sleep(2.5)
        interrupted.is_away_for_records = False
        wait_until(lambda: statuses(db) == {"SENT": 1})
    finally:
        worker.stop()
        assert worker.join(time.monotonic() + 10)
        assert recorder.close(5)
        interrupted.close()
    assert len(channel.sent) == 1


def test_covering_dead_letters_and_putting_them_aside_do_not_lock_each_other_out(harness: ActionHarness) -> None:
    plan = harness.plan({"channel_type": "push", "fallback": ["sms"]})
    first, second = (harness.ask(plan, harness.user()) for _ in range(2))
    harness.fail("push")
    [early, _late] = harness.sql("SELECT id, action_id FROM dead_letters ORDER BY id")
    harness.record(harness.claim("sms"), S.SENT, Outcome.SENT, None)
    # The conductor comes to the one with the later dead letter first.
    earlier = "UPDATE actions SET due_at = due_at - interval '1 minute' WHERE id = :id"
    harness.sql(earlier, id=second if early.action_id == first else first)

    def put_aside() -> None:
        with harness.db.transaction() as conn:
            discard_dead_letters(conn, EVERY, None)

    def somebody_waits(number: int) -> bool:
        return len(harness.sql(SOMEBODY_WAITS)) == number

    aside, conductor = threading.Thread(target=put_aside), threading.Thread(target=harness.conductor.run_once)
    with capture_logs() as logs:
        with harness.db.transaction() as other:
            other.execute(text("SELECT FROM dead_letters WHERE id = :id FOR UPDATE"), {"id": early.id})
            aside.start()
            wait_until(lambda: somebody_waits(1))
            conductor.start()
            wait_until(lambda: somebody_waits(2))
        aside.join(10)
        conductor.join(10)
    assert [harness.status(one) for one in (first, second)] == ["DONE", "DONE"], logs
