"""A redriven dead letter of an action: its step runs again, the plan goes on, and no recipient is notified twice."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import text

from app.db.database import Database
from app.db.wake import WAKE_CHANNEL
from app.delivery.actions import queries
from app.delivery.actions.redrive import (
    DeadLetterTooLate,
    NothingToRedrive,
    Redriven,
    redrive_dead_letter,
    redrive_dead_letters,
)
from app.delivery.actions.run import Decision
from app.delivery.actions.states import ActionStatus
from app.delivery.actions.transitions import ActionTransition, write
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letter_views import EVERY
from app.delivery.messages.dead_letters import DeadLetterClosed
from app.delivery.messages.values import ACTION_TOPIC, NotificationStatus, Outcome
from app.foundation.errors import AppError
from app.foundation.ids import earliest_id
from app.foundation.state_machine import IllegalTransition
from app.users.contract import EVERYTHING
from tests.support.actions import ActionHarness

SENT = (NotificationStatus.SENT, Outcome.SENT, None)
PUSH, SMS = {"channel_type": "push"}, {"channel_type": "sms"}


@pytest.fixture
def harness(db: Database) -> ActionHarness:
    return ActionHarness(db)


def open_dead_letters(harness: ActionHarness) -> list[UUID]:
    return [row.id for row in harness.sql("SELECT id FROM dead_letters WHERE status = 'OPEN' ORDER BY id")]


def again(harness: ActionHarness, id_: UUID) -> None:
    with harness.db.transaction() as conn:
        redrive_dead_letter(conn, EVERYTHING, id_, None)


def all_again(harness: ActionHarness) -> Redriven:
    with harness.db.transaction() as conn:
        return redrive_dead_letters(conn, EVERY, None)


def test_redriven_notification_continues_its_plan(harness: ActionHarness):
    id_ = harness.ask(harness.plan(PUSH, SMS), harness.user())
    harness.fail()
    assert (harness.status(id_), harness.states(id_)) == ("FAILED", ["FAILED", "CANCELLED"])
    again(harness, open_dead_letters(harness)[0])
    assert (harness.status(id_), harness.states(id_)) == ("RUNNING", ["RUNNING", "WAITING"])
    harness.deliver()
    harness.deliver("sms")
    assert (harness.status(id_), harness.states(id_)) == ("DONE", ["SENT", "SENT"])
    assert harness.sent_to(id_) == [("PUSH", "SENT"), ("SMS", "SENT")]
    assert harness.dead_letters(id_) == [("HTTP_500", "REDRIVEN")]


def test_redriven_step_finds_recipients_that_were_added_later(harness: ActionHarness):
    plan = harness.plan({"channel_type": "email", "audience": "ROUTES"})
    profile = harness.profile()
    harness.route(plan, 1, profile)
    id_ = harness.ask(plan)
    assert harness.dead_letters(id_) == [("NO_RECIPIENT", "OPEN")]
    harness.channel(profile, "email", "nobet@ornek.org")
    again(harness, open_dead_letters(harness)[0])
    harness.settle()
    assert harness.sent_to(id_) == [("EMAIL", "ACCEPTED")]
    harness.deliver("email")
    assert (harness.status(id_), harness.dead_letters(id_)) == ("DONE", [("NO_RECIPIENT", "REDRIVEN")])


def test_redriven_step_without_recipients_is_a_dead_letter_again(harness: ActionHarness):
    id_ = harness.ask(harness.plan({"channel_type": "email", "audience": "ROUTES"}))
    again(harness, open_dead_letters(harness)[0])
    harness.settle()
    assert harness.dead_letters(id_) == [("NO_RECIPIENT", "REDRIVEN"), ("NO_RECIPIENT", "OPEN")]


def test_redriven_dead_letter_of_a_step_covers_the_other_one(harness: ActionHarness):
    id_ = harness.ask(harness.plan(PUSH | {"fallback": ["sms"]}), harness.user())
    harness.fail()
    harness.fail("sms")
    assert len(open_dead_letters(harness)) == 2
    again(harness, open_dead_letters(harness)[0])
    harness.deliver()
    assert (harness.status(id_), harness.sent_to(id_)) == ("DONE", [("PUSH", "SENT"), ("SMS", "DEAD")])
    assert harness.dead_letters(id_) == [("HTTP_500", "REDRIVEN"), ("HTTP_500", "COVERED")]


def test_restarted_step_closes_its_other_dead_letters(harness: ActionHarness):
    """The restarted step makes their notifications again, so a redrive would send them twice."""
    user = harness.user(phone="12")
    id_ = harness.ask(harness.plan(PUSH | {"fallback": ["sms"]}), user)
    harness.fail()
    assert sorted(harness.dead_letters(id_)) == [("HTTP_500", "OPEN"), ("INVALID_ADDRESS", "OPEN")]
    harness.sql("UPDATE users SET phone = '+905550000001' WHERE id = :id", id=user)
    (anew,) = [row.id for row in harness.sql("SELECT id FROM dead_letters WHERE notification_id IS NULL")]
    again(harness, anew)
    harness.settle()
    assert sorted(harness.dead_letters(id_)) == [("HTTP_500", "REDRIVEN"), ("INVALID_ADDRESS", "REDRIVEN")]
    harness.deliver()
    assert harness.sent_to(id_) == [("PUSH", "DEAD"), ("PUSH", "SENT")]


def test_cancelled_or_expired_step_is_not_redriven(harness: ActionHarness):
    id_ = harness.ask(harness.plan({"channel_type": "email", "audience": "ROUTES"}))
    (dead_letter,) = open_dead_letters(harness)
    harness.sql("UPDATE actions SET expires_at = clock_timestamp()")
    with pytest.raises(DeadLetterTooLate):
        again(harness, dead_letter)
    harness.sql("UPDATE actions SET expires_at = NULL, status = 'CANCELLED'")
    with pytest.raises(DeadLetterTooLate):
        again(harness, dead_letter)
    assert all_again(harness) == Redriven(0, skipped=1, remaining=0)
    assert (harness.dead_letters(id_), harness.status(id_)) == ([("NO_RECIPIENT", "OPEN")], "CANCELLED")


def test_step_without_a_message_loses_its_meaning_after_a_day(harness: ActionHarness):
    id_ = harness.ask(harness.plan({"channel_type": "email", "audience": "ROUTES"}))
    (dead_letter,) = open_dead_letters(harness)
    harness.sql("UPDATE actions SET created_at = clock_timestamp() - interval '25 hours'")
    with pytest.raises(DeadLetterTooLate):
        again(harness, dead_letter)
    yesterday = earliest_id(harness.db.now() - timedelta(hours=25))
    harness.sql("UPDATE dead_letters SET id = :yesterday", yesterday=yesterday)
    with harness.db.transaction() as conn:
        assert dead_letters.expire_late(conn, harness.db.now(), 86_400, limit=10) == 1
    assert harness.dead_letters(id_) == [("NO_RECIPIENT", "EXPIRED")]


def test_step_that_is_still_running_is_not_restarted(harness: ActionHarness):
    """The SMS of the step had no recipient, and its push is not sent yet."""
    harness.ask(harness.plan(SMS | {"fallback": ["push"]}), harness.user(phone="12"))
    harness.settle()
    (dead_letter,) = open_dead_letters(harness)
    with pytest.raises(NothingToRedrive):
        again(harness, dead_letter)
    assert all_again(harness) == Redriven(0, skipped=0, remaining=1)


def test_redrive_of_all_sends_each_notification_once(harness: ActionHarness):
    plan = harness.plan(PUSH, PUSH)
    ids = [harness.ask(plan, harness.user()) for _ in range(20)]
    harness.fail()
    assert all_again(harness) == Redriven(20, 0, 0)
    harness.deliver()
    harness.deliver()
    assert {harness.status(id_) for id_ in ids} == {"DONE"}
    assert {tuple(harness.sent_to(id_)) for id_ in ids} == {(("PUSH", "SENT"), ("PUSH", "SENT"))}


def test_redrive_and_conductor_do_not_deadlock(harness: ActionHarness):
    """A conductor covers a dead letter while a thread redrives it. Either may come first; neither waits forever."""
    for _ in range(10):
        id_ = harness.ask(
            harness.plan(PUSH | {"fallback": ["sms"]}),
            harness.user(),
            expires_at=harness.db.now() + timedelta(hours=1),
        )
        harness.fail()
        (dead_letter,) = open_dead_letters(harness)
        sms = harness.claim("sms")
        harness.record(sms, *SENT)

        def try_again(dead_letter: UUID = dead_letter) -> str:
            try:
                again(harness, dead_letter)
            except AppError as error:
                return error.code
            return "redriven"

        with ThreadPoolExecutor(2) as pool:
            told = pool.submit(try_again)
            pool.submit(harness.settle).result(20)
            outcome = told.result(20)
        harness.settle()
        assert outcome in ("redriven", DeadLetterClosed.code)
        assert harness.status(id_) == "DONE"
        for message in harness.notifications(id_):
            assert message.status in ("SENT", "DEAD", "CANCELLED")


def test_a_step_that_begins_anew_wakes_the_conductors(harness: ActionHarness, database_url: str):
    plan = harness.plan({"channel_type": "email", "audience": "ROUTES"})
    harness.ask(plan)
    harness.settle()
    plain_url = database_url.replace("+psycopg", "")
    with psycopg.connect(plain_url, autocommit=True) as listener:
        listener.execute(f'LISTEN "{WAKE_CHANNEL}"')
        again(harness, open_dead_letters(harness)[0])
        assert ACTION_TOPIC in {notice.payload for notice in listener.notifies(timeout=5, stop_after=1)}


def test_an_action_whose_row_has_another_status_is_not_overwritten(harness: ActionHarness):
    id_ = harness.ask(harness.plan(PUSH), harness.user())
    with harness.db.transaction() as conn:
        [row] = conn.execute(text(f"SELECT {queries.ACTION_COLUMNS} FROM actions"))
    action = queries.action_of(row)
    harness.sql("UPDATE actions SET status = 'CANCELLED', finished_at = clock_timestamp() WHERE id = :id", id=id_)
    failed = Decision(replace(action.run, status=ActionStatus.FAILED))
    with pytest.raises(IllegalTransition), harness.db.transaction() as conn:
        write(conn, [ActionTransition(action, failed, harness.db.now())])
    assert harness.status(id_) == "CANCELLED"
