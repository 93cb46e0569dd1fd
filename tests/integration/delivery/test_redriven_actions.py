"""A dead letter of a plan: its step runs again, the plan goes on, and nobody is told twice."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest

from app.db.database import Database
from app.delivery.actions.redrive import (
    DeadLetterTooLate,
    NothingToRedrive,
    Redriven,
    redrive_dead_letter,
    redrive_dead_letters,
)
from app.delivery.messages.dead_letter_views import EVERY
from app.delivery.messages.dead_letters import DeadLetterClosed
from app.delivery.messages.values import NotificationStatus, Outcome
from app.foundation.errors import AppError
from tests.support.actions import Office

SENT = (NotificationStatus.SENT, Outcome.SENT, None)
PUSH, SMS = {"channel_type": "push"}, {"channel_type": "sms"}


@pytest.fixture
def office(db: Database) -> Office:
    return Office(db)


def open_letters(office: Office) -> list[UUID]:
    return [row.id for row in office.run("SELECT id FROM dead_letters WHERE status = 'OPEN' ORDER BY id")]


def again(office: Office, id_: UUID) -> None:
    with office.db.transaction() as conn:
        redrive_dead_letter(conn, id_, None)


def all_again(office: Office) -> Redriven:
    with office.db.transaction() as conn:
        return redrive_dead_letters(conn, EVERY, None)


def test_a_message_that_is_redriven_takes_its_plan_on(office: Office):
    id_ = office.ask(office.plan(PUSH, SMS), office.user())
    office.fail()
    assert (office.status(id_), office.states(id_)) == ("FAILED", ["FAILED", "CANCELLED"])
    again(office, open_letters(office)[0])
    assert (office.status(id_), office.states(id_)) == ("RUNNING", ["RUNNING", "WAITING"])
    office.deliver()
    office.deliver("sms")
    assert (office.status(id_), office.states(id_)) == ("DONE", ["SENT", "SENT"])
    assert office.sent_to(id_) == [("PUSH", "SENT"), ("SMS", "SENT")]
    assert office.letters(id_) == [("HTTP_500", "REDRIVEN")]


def test_a_step_that_had_nobody_to_go_to_finds_them_later(office: Office):
    plan = office.plan({"channel_type": "email", "audience": "ROUTES"})
    profile = office.profile()
    office.route(plan, 1, profile)
    id_ = office.ask(plan)
    assert office.letters(id_) == [("NO_RECIPIENT", "OPEN")]
    office.channel(profile, "email", "nobet@ornek.org")
    again(office, open_letters(office)[0])
    office.settle()
    assert office.sent_to(id_) == [("EMAIL", "ACCEPTED")]
    office.deliver("email")
    assert (office.status(id_), office.letters(id_)) == ("DONE", [("NO_RECIPIENT", "REDRIVEN")])


def test_it_is_a_letter_again_where_there_still_is_nobody(office: Office):
    id_ = office.ask(office.plan({"channel_type": "email", "audience": "ROUTES"}))
    again(office, open_letters(office)[0])
    office.settle()
    assert office.letters(id_) == [("NO_RECIPIENT", "REDRIVEN"), ("NO_RECIPIENT", "OPEN")]


def test_of_a_step_with_two_letters_one_arrives_and_covers_the_other(office: Office):
    id_ = office.ask(office.plan(PUSH | {"fallback": ["sms"]}), office.user())
    office.fail()
    office.fail("sms")
    assert len(open_letters(office)) == 2
    again(office, open_letters(office)[0])
    office.deliver()
    assert (office.status(id_), office.sent_to(id_)) == ("DONE", [("PUSH", "SENT"), ("SMS", "DEAD")])
    assert office.letters(id_) == [("HTTP_500", "REDRIVEN"), ("HTTP_500", "COVERED")]


def test_a_step_that_begins_anew_closes_its_other_letters(office: Office):
    """Their messages are made anew with it, and would come twice."""
    user = office.user(phone="12")
    id_ = office.ask(office.plan(PUSH | {"fallback": ["sms"]}), user)
    office.fail()
    assert sorted(office.letters(id_)) == [("HTTP_500", "OPEN"), ("INVALID_ADDRESS", "OPEN")]
    office.run("UPDATE users SET phone = '+905550000001' WHERE id = :id", id=user)
    (anew,) = [row.id for row in office.run("SELECT id FROM dead_letters WHERE notification_id IS NULL")]
    again(office, anew)
    office.settle()
    assert sorted(office.letters(id_)) == [("HTTP_500", "REDRIVEN"), ("INVALID_ADDRESS", "REDRIVEN")]
    office.deliver()
    assert office.sent_to(id_) == [("PUSH", "DEAD"), ("PUSH", "SENT")]


def test_what_was_called_back_or_is_too_late_stays_where_it_is(office: Office):
    id_ = office.ask(office.plan({"channel_type": "email", "audience": "ROUTES"}))
    (letter,) = open_letters(office)
    office.run("UPDATE actions SET expires_at = clock_timestamp()")
    with pytest.raises(DeadLetterTooLate):
        again(office, letter)
    office.run("UPDATE actions SET expires_at = NULL, status = 'CANCELLED'")
    with pytest.raises(DeadLetterTooLate):
        again(office, letter)
    assert all_again(office) == Redriven(0, skipped=1, remaining=0)
    assert (office.letters(id_), office.status(id_)) == ([("NO_RECIPIENT", "OPEN")], "CANCELLED")


def test_a_step_that_goes_on_by_itself_is_let_be(office: Office):
    """Its SMS had no number to go to, and its push is still on the way."""
    office.ask(office.plan(SMS | {"fallback": ["push"]}), office.user(phone="12"))
    office.settle()
    (letter,) = open_letters(office)
    with pytest.raises(NothingToRedrive):
        again(office, letter)
    assert all_again(office) == Redriven(0, skipped=0, remaining=1)


def test_all_at_once_sends_each_message_once(office: Office):
    plan = office.plan(PUSH, PUSH)
    ids = [office.ask(plan, office.user()) for _ in range(20)]
    office.fail()
    assert all_again(office) == Redriven(20, 0, 0)
    office.deliver()
    office.deliver()
    assert {office.status(id_) for id_ in ids} == {"DONE"}
    assert {tuple(office.sent_to(id_)) for id_ in ids} == {(("PUSH", "SENT"), ("PUSH", "SENT"))}


def test_redriving_and_conducting_at_the_same_time_do_not_lock_each_other_out(office: Office):
    """One covers a letter while another gives it a new try: either may win, and neither waits for ever."""
    for _ in range(10):
        id_ = office.ask(
            office.plan(PUSH | {"fallback": ["sms"]}),
            office.user(),
            expires_at=office.db.now() + timedelta(hours=1),
        )
        office.fail()
        (letter,) = open_letters(office)
        sms = office.claim("sms")
        office.record(sms, *SENT)

        def try_again(letter: UUID = letter) -> str:
            try:
                again(office, letter)
            except AppError as error:
                return error.code
            return "redriven"

        with ThreadPoolExecutor(2) as pool:
            told = pool.submit(try_again)
            pool.submit(office.settle).result(20)
            outcome = told.result(20)
        office.settle()
        assert outcome in ("redriven", DeadLetterClosed.code)
        assert office.status(id_) == "DONE"
        for message in office.messages(id_):
            assert message.status in ("SENT", "DEAD", "CANCELLED")
