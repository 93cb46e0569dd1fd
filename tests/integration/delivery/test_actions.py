"""Plans that are asked for: their steps, whom they reach, and what comes after a failure. On the real database."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.actions import service
from app.delivery.actions.errors import EvaluationKeyReused, PlanNotFound
from app.delivery.actions.models import Origin
from app.delivery.actions.requests import NewAction
from app.delivery.messages.values import Outcome, Priority
from app.foundation.errors import InvalidValue
from app.foundation.ids import uuid7
from tests.support.actions import ROUTES, SOMEBODY_WAITS, Office
from tests.support.matching import at_once, eventually

PUSH, SMS = {"channel_type": "push"}, {"channel_type": "sms"}
PUSH_THEN_SMS = {"channel_type": "push", "fallback": ["sms"], "within_s": 60}
GOES_ON = {"on_failure": "CONTINUE"}


@pytest.fixture
def office(db: Database) -> Office:
    return Office(db)


# ---- asking ----


def test_the_first_message_is_there_when_the_caller_commits(office: Office) -> None:
    office.template("hello", "Merhaba {{ name }}", subject="Selam")
    plan, person, task_id = office.plan(PUSH | {"template_key": "hello"}), office.user(), uuid7()
    until = office.db.now() + timedelta(seconds=60)
    id_ = office.ask(
        plan,
        person,
        variables={"name": "Ayşe"},
        data={"type": "OFFER", "taskId": str(task_id)},
        task_id=task_id,
        priority=Priority.URGENT,
        expires_at=until,
    )
    [row] = office.run("SELECT * FROM notifications")
    assert (row.notification_type, row.recipient, row.recipient_user_id) == ("PUSH", f"user:{person}", person)
    assert (row.subject, row.body, row.priority, row.expires_at) == ("Selam", "Merhaba Ayşe", "URGENT", until)
    assert (row.task_id, row.action_id, row.step_order) == (task_id, id_, 1)
    assert row.metadata["data"] == {"type": "OFFER", "taskId": str(task_id), "notificationId": str(row.id)}
    assert (office.states(id_), office.status(id_), office.action(id_).due_at) == (["RUNNING"], "RUNNING", None)


def test_a_plan_is_done_when_its_steps_have_arrived(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH, PUSH), office.user())
    office.deliver()
    assert (office.states(id_), office.status(id_)) == (["SENT", "RUNNING"], "RUNNING")
    office.deliver()
    assert (office.states(id_), office.status(id_)) == (["SENT", "SENT"], "DONE")
    row = office.action(id_)
    assert (row.due_at, row.finished_at is not None) == (None, True)


def test_many_are_asked_for_in_few_statements(office: Office) -> None:
    plan, people = office.plan(PUSH), [office.user() for _ in range(3)]
    office.request(*(NewAction(plan, people[number % 3]) for number in range(200)))
    assert len(office.messages()) == 200


def test_nothing_is_asked_for(office: Office) -> None:
    assert office.request() == []


@pytest.mark.parametrize("change", ["status = false", "retired_at = clock_timestamp()"])
def test_a_plan_that_is_not_in_use_is_not_found(office: Office, change: str) -> None:
    plan = office.plan(PUSH)
    office.run(f"UPDATE action_plans SET {change} WHERE id = :id", id=plan)
    with pytest.raises(PlanNotFound):
        office.ask(plan, office.user(), origin=Origin.HTTP)
    for unknown in (999_999, "no.such.plan"):
        with pytest.raises(PlanNotFound):
            office.ask(unknown, origin=Origin.HTTP)


def test_what_a_feature_tells_goes_on_where_the_telling_is_switched_off(office: Office) -> None:
    plan = office.plan(PUSH, PUSH)
    office.run("UPDATE action_plans SET status = false WHERE id = :id", id=plan)
    id_ = office.ask(plan, office.user())
    assert (office.states(id_), office.status(id_), office.messages()) == (["SKIPPED", "SKIPPED"], "DONE", [])


def test_a_person_who_does_not_exist_is_refused(office: Office) -> None:
    with pytest.raises(InvalidValue):
        office.ask(office.plan(PUSH), 999)


def test_a_plan_is_carried_out_as_it_was_when_it_was_asked_for(office: Office) -> None:
    plan = office.plan(PUSH, PUSH)
    id_ = office.ask(plan, office.user())
    office.run("UPDATE action_plan_steps SET channel_type = 'sms' WHERE action_plan_id = :id", id=plan)
    office.deliver()
    assert office.sent_to(id_) == [("PUSH", "SENT"), ("PUSH", "ACCEPTED")]


# ---- once ----


def test_the_same_evaluation_key_is_carried_out_once(office: Office) -> None:
    plan, person = office.plan(PUSH), office.user()
    id_ = office.ask(plan, person, evaluation_key="e1")
    assert office.ask(plan, person, evaluation_key="e1") == id_
    again = NewAction(plan, person, evaluation_key="e2")
    first, second, third = office.request(again, NewAction(plan, person, evaluation_key="e1"), again)
    assert (first, second) == (third, id_)
    assert len(office.messages()) == 2


def test_the_same_evaluation_key_for_another_plan_is_a_conflict(office: Office) -> None:
    office.ask(office.plan(PUSH), office.user(), evaluation_key="e1")
    with pytest.raises(EvaluationKeyReused):
        office.ask(office.plan(PUSH), office.user(), evaluation_key="e1")


def test_a_request_that_comes_again_leaves_no_second_dead_letter(office: Office) -> None:
    plan = office.plan(PUSH | {"template_key": "missing"})
    person = office.user()
    for _ in range(2):
        office.ask(plan, person, evaluation_key="e1")
    assert office.letters() == [("UNKNOWN_TEMPLATE", "OPEN")]


def test_fifty_at_the_same_time_are_one(office: Office) -> None:
    plan, person = office.plan(PUSH, PUSH), office.user()
    ids = at_once(*[lambda: office.ask(plan, person, evaluation_key="e1")] * 50)
    assert len(set(ids)) == 1
    assert len(office.messages()) == 1
    office.deliver()
    assert office.sent_to() == [("PUSH", "SENT"), ("PUSH", "ACCEPTED")]


def test_keys_in_another_order_do_not_lock_each_other_out(office: Office) -> None:
    plan, person = office.plan(PUSH), office.user()
    first, second = (NewAction(plan, person, evaluation_key=key) for key in ("e1", "e2"))
    with ThreadPoolExecutor(1) as others, office.db.transaction() as conn:
        service.request_actions(conn, [first])
        waiting = others.submit(office.request, second, first)
        eventually(lambda: office.run(SOMEBODY_WAITS), "the other one waits for the first key")
        service.request_actions(conn, [second])
        conn.commit()
        assert len(waiting.result(timeout=10)) == 2
    assert len(office.messages()) == 2


# ---- in order, and after a failure ----


def test_a_failed_step_stops_the_plan_or_does_not(office: Office) -> None:
    person = office.user()
    stops, goes_on = office.ask(office.plan(PUSH, PUSH), person), office.ask(office.plan(PUSH | GOES_ON, PUSH), person)
    office.fail()
    assert (office.states(stops), office.status(stops)) == (["FAILED", "CANCELLED"], "FAILED")
    assert (office.states(goes_on), office.status(goes_on)) == (["FAILED", "RUNNING"], "RUNNING")
    office.deliver()
    assert (office.states(goes_on), office.status(goes_on)) == (["FAILED", "SENT"], "FAILED")


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"template_key": "missing"}, "UNKNOWN_TEMPLATE"),
        ({"template_key": "broken"}, "TEMPLATE_RENDER_FAILED"),
        ({"template_key": "nul"}, "TEMPLATE_RENDER_FAILED"),
        ({"template_key": "surrogate"}, "TEMPLATE_RENDER_FAILED"),
        ({"channel_type": "pigeon"}, "UNKNOWN_CHANNEL"),
        ({"channel_type": "sms"}, "INVALID_ADDRESS"),
    ],
)
def test_bad_input_is_one_dead_letter_and_the_later_steps_still_run(
    office: Office, bad: dict[str, str], code: str
) -> None:
    office.template("broken", "{{ nobody_gave_this }}")
    office.template("nul", "{{ '\\x00' }}")
    office.template("surrogate", "{{ '\\ud800' }}")
    id_ = office.ask(office.plan(bad, PUSH), office.user(phone="bir-iki-üç"))
    office.settle()
    assert office.states(id_) == ["FAILED", "RUNNING"]
    office.deliver()
    assert (office.states(id_), office.status(id_)) == (["FAILED", "SENT"], "FAILED")
    assert office.letters(id_) == [(code, "OPEN")]
    [letter] = office.run("SELECT * FROM dead_letters")
    assert (letter.action_plan_id, letter.step_order, letter.retryable, letter.retry_count) == (
        office.action(id_).action_plan_id,
        1,
        False,
        0,
    )


@pytest.mark.parametrize("table", ["recipient_profiles", "recipient_channels"])
def test_a_recipient_who_is_retired_mid_plan_does_not_stop_it(office: Office, table: str) -> None:
    plan = office.plan(PUSH, {"channel_type": "email", "audience": ROUTES}, PUSH)
    office.route(plan, 2, office.profile(("email", "ops@ornek.org")))
    id_ = office.ask(plan, office.user())
    office.run(f"UPDATE {table} SET retired_at = clock_timestamp()")
    office.deliver()
    assert (office.states(id_), office.letters(id_)) == (["SENT", "FAILED", "RUNNING"], [("RECIPIENT_RETIRED", "OPEN")])


def test_a_recipient_who_is_retired_after_the_message_was_made_is_not_written_to(office: Office) -> None:
    plan = office.plan({"channel_type": "email", "audience": ROUTES}, PUSH)
    office.route(plan, 1, office.profile(("email", "ops@ornek.org")))
    id_ = office.ask(plan, office.user())
    office.run("UPDATE recipient_profiles SET retired_at = clock_timestamp()")
    [claimed] = office.claim("email")
    assert claimed.is_retired
    office.run("UPDATE notifications SET status = 'ACCEPTED', due_at = clock_timestamp() WHERE status = 'SENDING'")
    office.fail("email", code="RECIPIENT_RETIRED")
    assert office.states(id_) == ["FAILED", "RUNNING"]


def test_recipients_who_are_switched_off_are_passed_over(office: Office) -> None:
    plan = office.plan({"channel_type": "email", "audience": ROUTES}, PUSH)
    office.route(plan, 1, office.profile(("email", "ops@ornek.org"), status=False))
    id_ = office.ask(plan, office.user())
    assert (office.states(id_), office.letters()) == (["SKIPPED", "RUNNING"], [])


def test_nobody_to_reach_is_a_dead_letter(office: Office) -> None:
    id_ = office.ask(office.plan({"channel_type": "email", "audience": ROUTES}, PUSH), office.user())
    assert (office.states(id_), office.status(id_)) == (["FAILED", "CANCELLED"], "FAILED")
    assert office.letters(id_) == [("NO_RECIPIENT", "OPEN")]


# ---- who, and where ----


def test_routes_and_priorities_and_what_is_verified_decide(office: Office) -> None:
    plan = office.plan({"channel_type": "whatsapp", "audience": ROUTES})
    second, first = office.profile(("whatsapp", "+905550000002"), priority=2), office.profile(priority=1, locale="en")
    office.channel(first, "whatsapp", "+905550000008", "pending")
    chosen = office.channel(first, "whatsapp", "0555 000 00 01")
    for profile in (second, first):
        office.route(plan, 1, profile)
    id_ = office.ask(plan)
    office.settle()
    [message] = office.messages(id_)
    assert message.recipient == "+905550000001", "in the one form that channels rely on"
    [row] = office.run("SELECT channel_id FROM notifications")
    assert row.channel_id == chosen
    office.fail("whatsapp")
    assert [one.recipient for one in office.messages(id_)] == ["+905550000001", "+905550000002"]


def test_the_profiles_of_a_device_are_asked_where_no_route_is(office: Office) -> None:
    office.profile(("email", "ayse@ornek.org"), device_id="400000011D081B70")
    id_ = office.ask(
        office.plan({"channel_type": "email", "audience": ROUTES}), context={"device_id": "400000011D081B70"}
    )
    assert [one.recipient for one in office.messages(id_)] == ["ayse@ornek.org"]


def test_each_reads_their_own_language(office: Office) -> None:
    office.template("hello", "Merhaba")
    office.template("hello", "Hello", "en")
    office.template("only.turkish", "Merhaba")
    plan = office.plan(PUSH | {"template_key": "hello"})
    office.ask(plan, office.user())
    office.ask(plan, office.user(locale="en"))
    office.ask(office.plan(PUSH | {"template_key": "only.turkish"}), office.user(locale="en"))
    assert [row.body for row in office.run("SELECT body FROM notifications ORDER BY id")] == [
        "Merhaba",
        "Hello",
        "Merhaba",
    ]


def test_the_app_and_the_audit_need_no_entry(office: Office) -> None:
    person = office.user()
    id_ = office.ask(office.plan({"channel_type": "in_app"}, {"channel_type": "audit"}), person)
    office.deliver("in_app")
    assert [(one.type, one.recipient) for one in office.messages(id_)] == [
        ("IN_APP", f"user:{person}"),
        ("AUDIT", f"plan:{office.action(id_).action_plan_id}"),
    ]


# ---- fallback ----


def test_the_number_on_file_is_tried_when_the_push_fails_and_covers_it(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH_THEN_SMS), office.user("0555 000 00 01"))
    office.fail("push")
    assert office.letters() == [("HTTP_500", "OPEN")]
    office.deliver("sms")
    assert [(one.type, one.recipient) for one in office.messages(id_)][1] == ("SMS", "+905550000001")
    assert (office.status(id_), office.letters()) == ("DONE", [("HTTP_500", "COVERED")])


def test_when_all_fail_each_has_its_letter(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH_THEN_SMS), office.user())
    office.fail("push")
    office.fail("sms", code="HTTP_400")
    assert (office.status(id_), office.letters()) == ("FAILED", [("HTTP_500", "OPEN"), ("HTTP_400", "OPEN")])


def test_a_message_that_may_have_arrived_is_not_followed_by_another(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH_THEN_SMS), office.user())
    office.fail("push", Outcome.UNKNOWN, "TIMEOUT")
    assert (office.sent_to(id_), office.states(id_)) == ([("PUSH", "DEAD")], ["FAILED"])


def test_after_sixty_seconds_without_a_push_the_sms_has_its_turn(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH_THEN_SMS), office.user())
    office.pass_time(id_, 59)
    office.settle()
    assert office.sent_to(id_) == [("PUSH", "ACCEPTED")]
    office.pass_time(id_, 61)
    office.settle()
    assert office.sent_to(id_) == [("PUSH", "CANCELLED"), ("SMS", "ACCEPTED")]
    office.deliver("sms")
    assert office.status(id_) == "DONE"


def test_what_a_worker_has_in_hand_is_kept_from_being_tried_again(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH_THEN_SMS), office.user())
    claimed = office.claim("push")
    office.pass_time(id_, 61)
    office.settle()
    [push] = office.run("SELECT *, expires_at <= clock_timestamp() AS over FROM notifications WHERE status = 'SENDING'")
    assert push.over
    office.record(claimed, "SENT", Outcome.SENT, None)  # pyright: ignore[reportArgumentType]
    office.settle()
    assert office.sent_to(id_) == [("PUSH", "SENT"), ("SMS", "CANCELLED")], "it arrived after all"
    assert office.status(id_) == "DONE"


def test_a_message_that_is_being_written_down_at_this_moment_is_not_escalated(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH_THEN_SMS), office.user())
    office.pass_time(id_, 61)
    with office.db.transaction() as recorder:
        recorder.execute(text("SELECT FROM notifications FOR UPDATE"))
        assert office.conductor.run_once() == 1
    assert office.sent_to(id_) == [("PUSH", "ACCEPTED")]
    office.pass_time(id_, 61)
    office.settle()
    assert office.sent_to(id_) == [("PUSH", "CANCELLED"), ("SMS", "ACCEPTED")]


def test_nothing_follows_what_has_lost_its_meaning(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH_THEN_SMS), office.user(), expires_at=office.db.now() + timedelta(seconds=30))
    office.pass_time(id_, 61)
    office.run("UPDATE notifications SET expires_at = clock_timestamp()")
    assert office.claim("push") == []
    office.settle()
    assert (office.sent_to(id_), office.states(id_)) == ([("PUSH", "EXPIRED")], ["FAILED"])
    assert office.letters() == []


# ---- handed over, and told ----


def test_a_step_of_somebody_else_is_handed_over(office: Office) -> None:
    plan = office.plan({"channel_type": "device_downlink", "audience": ROUTES}, PUSH)
    id_ = office.ask(plan, office.user(), evaluation_key="e1", variables={"valve": 3})
    assert office.states(id_) == ["WAITING", "WAITING"], "the settings say whether it is one"
    office.settle()
    assert office.states(id_) == ["HANDED_OVER", "RUNNING"]
    [event] = office.told()
    assert (event.topic, event.payload["data"]["evaluation_key"]) == ("action.handover", "e1")
    assert event.payload["data"]["variables"] == {"valve": 3}


def test_results_are_told_to_those_who_asked_from_outside(office: Office) -> None:
    context = {"device_id": "400000011D081B70", "stream_id": 9823412, "group_id": 12, "rule_id": 114}
    plan, person = office.plan(PUSH, PUSH), office.user()
    office.ask(plan, person, origin=Origin.STREAM, evaluation_key="e1", context=context)
    office.deliver()
    office.fail()
    executed, letter, failed = office.told()
    assert [executed.topic, letter.topic, failed.topic] == ["action.executed", "dlq.action", "action.failed"]
    assert executed.payload["data"] | {"action_plan_id": 21} == {
        "group_id": 12,
        "rule_id": 114,
        "action_plan_id": 21,
        "step_order": 1,
        "channel_type": "push",
        "delivery_status": "sent",
        "provider_message_id": "provider:1",
    }
    assert failed.payload["error"]["error_code"] == "HTTP_500"
    assert failed.payload["data"]["step_order"] == 2


def test_nobody_waits_for_a_word_about_what_the_product_itself_tells(office: Office) -> None:
    office.ask(office.plan(PUSH), office.user())
    office.deliver()
    assert office.told() == []


# ---- called back ----


def test_calling_back_takes_the_message_and_what_would_have_followed(office: Office) -> None:
    task_id, person, other = uuid7(), office.user(), office.user()
    plan = office.plan(PUSH, PUSH)
    meant = office.ask(plan, person, task_id=task_id, data={"type": "OFFER"})
    others = [
        office.ask(plan, other, task_id=task_id, data={"type": "OFFER"}),
        office.ask(plan, person, task_id=uuid7(), data={"type": "OFFER"}),
        office.ask(plan, person, task_id=task_id, data={"type": "STARTED"}),
    ]
    for expected in (1, 0):
        with office.db.transaction() as conn:
            assert service.cancel_actions(conn, task_id, [person], "OFFER") == expected
    assert (office.states(meant), office.status(meant)) == (["CANCELLED", "CANCELLED"], "CANCELLED")
    assert office.sent_to(meant) == [("PUSH", "CANCELLED")]
    assert {office.status(one) for one in others} == {"RUNNING"}


@pytest.mark.parametrize(
    ("was", "becomes"), [("ACCEPTED", "CANCELLED"), ("RETRYING", "CANCELLED"), ("SENDING", "SENDING")]
)
def test_what_is_being_sent_is_not_called_back_but_gets_no_other_try(office: Office, was: str, becomes: str) -> None:
    task_id, person = uuid7(), office.user()
    id_ = office.ask(office.plan(PUSH), person, task_id=task_id, data={"type": "OFFER"})
    office.run("UPDATE notifications SET status = :status", status=was)
    with office.db.transaction() as conn:
        assert service.cancel_actions(conn, task_id, [person], "OFFER") == 1
    [row] = office.run("SELECT status, expires_at <= clock_timestamp() AS over FROM notifications")
    assert (row.status, row.over) == (becomes, True if was == "SENDING" else None)
    assert office.status(id_) == "CANCELLED"


def test_calling_back_waits_for_no_message(office: Office) -> None:
    task_id, person = uuid7(), office.user()
    id_ = office.ask(office.plan(PUSH), person, task_id=task_id, data={"type": "OFFER"})
    with office.db.transaction() as recorder, office.db.transaction() as matcher:
        recorder.execute(text("SELECT FROM notifications FOR UPDATE"))
        assert service.cancel_actions(matcher, task_id, [person], "OFFER") == 1
    assert (office.status(id_), office.sent_to(id_)) == ("CANCELLED", [("PUSH", "ACCEPTED")])


# ---- tried again ----


def test_a_step_that_never_became_a_message_is_made_anew(office: Office) -> None:
    id_ = office.ask(office.plan(PUSH | {"template_key": "hello"}, PUSH), office.user())
    office.deliver()
    assert (office.states(id_), office.status(id_)) == (["FAILED", "SENT"], "FAILED")
    office.template("hello", "Merhaba")
    with office.db.transaction() as conn:
        assert service.reopen(conn, id_, 1)
        assert not service.reopen(conn, id_, 2)
        assert not service.reopen(conn, uuid7(), 1)
    office.settle()
    office.deliver()
    assert (office.states(id_), office.status(id_)) == (["SENT", "SENT"], "DONE")
