"""Actions: their steps, their recipients, and what follows a failure. On the real database."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.actions import service
from app.delivery.actions.errors import EvaluationKeyReused, PlanNotFound
from app.delivery.actions.models import Origin
from app.delivery.actions.requests import NewAction
from app.delivery.messages.claims import claim
from app.delivery.messages.outcomes import Report, Try, Verdict, record
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import Device, NotificationStatus, NotificationType, Outcome, Priority
from app.delivery.role import FOLLOWERS
from app.delivery.service import PROFILES
from app.foundation.errors import InvalidValue
from app.foundation.ids import uuid7
from app.users.models import AddressKind
from tests.support.actions import ROUTES, SOMEBODY_WAITS, ActionHarness
from tests.support.matching import at_once, eventually

PUSH, SMS = {"channel_type": "push"}, {"channel_type": "sms"}
PUSH_THEN_SMS = {"channel_type": "push", "fallback": ["sms"], "within_s": 60}
GOES_ON = {"on_failure": "CONTINUE"}


@pytest.fixture
def harness(db: Database) -> ActionHarness:
    return ActionHarness(db)


# ---- requests ----


def test_first_step_becomes_a_notification_in_the_callers_transaction(harness: ActionHarness) -> None:
    harness.template("hello", "Merhaba {{ name }}", subject="Selam")
    plan, person, task_id = harness.plan(PUSH | {"template_key": "hello"}), harness.user(), uuid7()
    until = harness.db.now() + timedelta(seconds=60)
    id_ = harness.ask(
        plan,
        person,
        variables={"name": "Ayşe"},
        data={"type": "OFFER", "taskId": str(task_id)},
        task_id=task_id,
        priority=Priority.URGENT,
        expires_at=until,
    )
    [row] = harness.sql("SELECT * FROM notifications")
    assert (row.notification_type, row.recipient, row.recipient_user_id) == ("PUSH", f"user:{person}", person)
    assert (row.subject, row.body, row.priority, row.expires_at) == ("Selam", "Merhaba Ayşe", "URGENT", until)
    assert (row.task_id, row.action_id, row.step_order) == (task_id, id_, 1)
    assert row.metadata["data"] == {"type": "OFFER", "taskId": str(task_id), "notificationId": str(row.id)}
    assert (harness.states(id_), harness.status(id_), harness.action(id_).due_at) == (["RUNNING"], "RUNNING", None)


def test_plan_is_done_when_its_steps_have_arrived(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH, PUSH), harness.user())
    harness.deliver()
    assert (harness.states(id_), harness.status(id_)) == (["SENT", "RUNNING"], "RUNNING")
    harness.deliver()
    assert (harness.states(id_), harness.status(id_)) == (["SENT", "SENT"], "DONE")
    row = harness.action(id_)
    assert (row.due_at, row.finished_at is not None) == (None, True)


def test_many_actions_are_requested_in_few_statements(harness: ActionHarness) -> None:
    plan, people = harness.plan(PUSH), [harness.user() for _ in range(3)]
    harness.request(*(NewAction(plan, people[number % 3]) for number in range(200)))
    assert len(harness.notifications()) == 200


def test_empty_request_makes_no_action(harness: ActionHarness) -> None:
    assert harness.request() == []


@pytest.mark.parametrize("change", ["status = false", "retired_at = clock_timestamp()"])
def test_retired_or_disabled_plan_is_not_found(harness: ActionHarness, change: str) -> None:
    plan = harness.plan(PUSH)
    harness.sql(f"UPDATE action_plans SET {change} WHERE id = :id", id=plan)
    with pytest.raises(PlanNotFound):
        harness.ask(plan, harness.user(), origin=Origin.HTTP)
    for unknown in (999_999, "no.such.plan"):
        with pytest.raises(PlanNotFound):
            harness.ask(unknown, origin=Origin.HTTP)


def test_disabled_shipped_plan_does_not_stop_its_feature(harness: ActionHarness) -> None:
    plan = harness.plan(PUSH, PUSH)
    harness.sql("UPDATE action_plans SET status = false WHERE id = :id", id=plan)
    id_ = harness.ask(plan, harness.user())
    assert (harness.states(id_), harness.status(id_), harness.notifications()) == (["SKIPPED", "SKIPPED"], "DONE", [])


def test_unknown_user_is_refused(harness: ActionHarness) -> None:
    with pytest.raises(InvalidValue):
        harness.ask(harness.plan(PUSH), 999)


def test_action_uses_the_plan_as_it_was_when_requested(harness: ActionHarness) -> None:
    plan = harness.plan(PUSH, PUSH)
    id_ = harness.ask(plan, harness.user())
    harness.sql("UPDATE action_plan_steps SET channel_type = 'sms' WHERE action_plan_id = :id", id=plan)
    harness.deliver()
    assert harness.sent_to(id_) == [("PUSH", "SENT"), ("PUSH", "ACCEPTED")]


# ---- idempotency ----


def test_evaluation_key_is_carried_out_once(harness: ActionHarness) -> None:
    plan, person = harness.plan(PUSH), harness.user()
    id_ = harness.ask(plan, person, evaluation_key="e1")
    assert harness.ask(plan, person, evaluation_key="e1") == id_
    again = NewAction(plan, person, evaluation_key="e2")
    first, second, third = harness.request(again, NewAction(plan, person, evaluation_key="e1"), again)
    assert (first, second) == (third, id_)
    assert len(harness.notifications()) == 2


def test_evaluation_key_of_another_plan_is_a_conflict(harness: ActionHarness) -> None:
    harness.ask(harness.plan(PUSH), harness.user(), evaluation_key="e1")
    with pytest.raises(EvaluationKeyReused):
        harness.ask(harness.plan(PUSH), harness.user(), evaluation_key="e1")


def test_repeated_request_leaves_no_second_dead_letter(harness: ActionHarness) -> None:
    plan = harness.plan(PUSH | {"template_key": "missing"})
    person = harness.user()
    for _ in range(2):
        harness.ask(plan, person, evaluation_key="e1")
    assert harness.dead_letters() == [("UNKNOWN_TEMPLATE", "OPEN")]


def test_fifty_parallel_requests_with_one_key_make_one_action(harness: ActionHarness) -> None:
    plan, person = harness.plan(PUSH, PUSH), harness.user()
    ids = at_once(*[lambda: harness.ask(plan, person, evaluation_key="e1")] * 50)
    assert len(set(ids)) == 1
    assert len(harness.notifications()) == 1
    harness.deliver()
    assert harness.sent_to() == [("PUSH", "SENT"), ("PUSH", "ACCEPTED")]


def test_requests_with_keys_in_different_order_do_not_deadlock(harness: ActionHarness) -> None:
    plan, person = harness.plan(PUSH), harness.user()
    first, second = (NewAction(plan, person, evaluation_key=key) for key in ("e1", "e2"))
    with ThreadPoolExecutor(1) as others, harness.db.transaction() as conn:
        service.request_actions(conn, [first])
        waiting = others.submit(harness.request, second, first)
        eventually(lambda: harness.sql(SOMEBODY_WAITS), "the second request waits for the first key")
        service.request_actions(conn, [second])
        conn.commit()
        assert len(waiting.result(timeout=10)) == 2
    assert len(harness.notifications()) == 2


# ---- order of steps, and failures ----


def test_on_failure_decides_whether_a_failed_step_ends_the_plan(harness: ActionHarness) -> None:
    person = harness.user()
    stops, goes_on = (
        harness.ask(harness.plan(PUSH, PUSH), person),
        harness.ask(harness.plan(PUSH | GOES_ON, PUSH), person),
    )
    harness.fail()
    assert (harness.states(stops), harness.status(stops)) == (["FAILED", "CANCELLED"], "FAILED")
    assert (harness.states(goes_on), harness.status(goes_on)) == (["FAILED", "RUNNING"], "RUNNING")
    harness.deliver()
    assert (harness.states(goes_on), harness.status(goes_on)) == (["FAILED", "SENT"], "FAILED")


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
def test_invalid_input_is_one_dead_letter_and_later_steps_run(
    harness: ActionHarness, bad: dict[str, str], code: str
) -> None:
    harness.template("broken", "{{ nobody_gave_this }}")
    harness.template("nul", "{{ '\\x00' }}")
    harness.template("surrogate", "{{ '\\ud800' }}")
    id_ = harness.ask(harness.plan(bad, PUSH), harness.user(phone="bir-iki-üç"))
    harness.settle()
    assert harness.states(id_) == ["FAILED", "RUNNING"]
    harness.deliver()
    assert (harness.states(id_), harness.status(id_)) == (["FAILED", "SENT"], "FAILED")
    assert harness.dead_letters(id_) == [(code, "OPEN")]
    [dead_letter] = harness.sql("SELECT * FROM dead_letters")
    assert (dead_letter.action_plan_id, dead_letter.step_order, dead_letter.retryable, dead_letter.retry_count) == (
        harness.action(id_).action_plan_id,
        1,
        False,
        0,
    )


@pytest.mark.parametrize("table", ["recipient_profiles", "recipient_channels"])
def test_recipient_retired_mid_plan_does_not_stop_the_plan(harness: ActionHarness, table: str) -> None:
    plan = harness.plan(PUSH, {"channel_type": "email", "audience": ROUTES}, PUSH)
    harness.route(plan, 2, harness.profile(("email", "ops@ornek.org")))
    id_ = harness.ask(plan, harness.user())
    harness.sql(f"UPDATE {table} SET retired_at = clock_timestamp()")
    harness.deliver()
    assert (harness.states(id_), harness.dead_letters(id_)) == (
        ["SENT", "FAILED", "RUNNING"],
        [("RECIPIENT_RETIRED", "OPEN")],
    )


def test_recipient_retired_after_the_notification_gets_nothing(harness: ActionHarness) -> None:
    plan = harness.plan({"channel_type": "email", "audience": ROUTES}, PUSH)
    harness.route(plan, 1, harness.profile(("email", "ops@ornek.org")))
    id_ = harness.ask(plan, harness.user())
    harness.sql("UPDATE recipient_profiles SET retired_at = clock_timestamp()")
    [claimed] = harness.claim("email")
    assert claimed.is_retired
    harness.sql("UPDATE notifications SET status = 'ACCEPTED', due_at = clock_timestamp() WHERE status = 'SENDING'")
    harness.fail("email", code="RECIPIENT_RETIRED")
    assert harness.states(id_) == ["FAILED", "RUNNING"]


def test_route_to_a_retired_profile_leads_to_nobody_else(harness: ActionHarness) -> None:
    plan = harness.plan(PUSH, {"channel_type": "email", "audience": ROUTES}, PUSH)
    retired = harness.profile(("email", "ops@ornek.org"), device_id="D1")
    harness.profile(("email", "neighbour@ornek.org"), device_id="D1")
    harness.route(plan, 2, retired)
    request = NewAction(plan, harness.user(), context={"device_id": "D1"})
    before = harness.request(request)
    with harness.db.transaction() as conn:
        PROFILES.retire(conn, retired)
    after = harness.request(request)
    harness.deliver()
    for id_ in (*before, *after):
        assert harness.states(id_) == ["SENT", "FAILED", "RUNNING"]
        assert harness.dead_letters(id_) == [("RECIPIENT_RETIRED", "OPEN")]
        assert harness.sent_to(id_) == [("PUSH", "SENT"), ("PUSH", "ACCEPTED")], "nobody got the e-mail"


@pytest.mark.parametrize(
    ("channel_type", "code"),
    [
        ("push", "UNREGISTERED"),
        ("sms", "TWILIO_21610"),
        ("sms", "NUMARA_YOK"),
        ("email", "SMTP_550"),
        ("whatsapp", "WHATSAPP_131026"),
        ("webhook", "HTTP_410"),
    ],
)
def test_recipient_who_is_gone_is_one_dead_letter_and_stops_no_plan(
    harness: ActionHarness, channel_type: str, code: str
) -> None:
    plan = harness.plan({"channel_type": channel_type, "audience": ROUTES}, PUSH)
    address = "https://ornek.org/kanca" if channel_type == "webhook" else "+905550000001"
    harness.route(plan, 1, harness.profile((channel_type, "ops@ornek.org" if channel_type == "email" else address)))
    id_ = harness.ask(plan, harness.user())
    harness.settle()
    harness.fail(channel_type, Outcome.RECIPIENT_GONE, code)
    assert (harness.states(id_), harness.dead_letters(id_)) == (["FAILED", "RUNNING"], [(code, "OPEN")])


def test_person_with_a_phone_that_fails_beside_one_that_is_gone_is_not_gone(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH, PUSH), harness.user())
    phones = [Device(name, name, AddressKind.TOKEN) for name in ("gone", "down")]
    results = [SendResult(Outcome.RECIPIENT_GONE, "UNREGISTERED"), SendResult(Outcome.TRANSIENT, "UNAVAILABLE")]
    dead = Verdict(NotificationStatus.DEAD, error_code="UNAVAILABLE", failed=True)
    with harness.db.transaction() as conn:
        [claimed] = claim(conn, NotificationType.PUSH, 1, 30, followers=FOLLOWERS).taken
        record(conn, [Report(claimed, dead, [*map(Try, phones, results)])], FOLLOWERS)
    harness.settle()
    assert harness.states(id_) == ["FAILED", "CANCELLED"]


def test_person_without_the_app_is_only_counted_and_stops_no_plan(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH, SMS), harness.user())
    dead = Verdict(NotificationStatus.DEAD, error_code="NO_DEVICE")
    with harness.db.transaction() as conn:
        [claimed] = claim(conn, NotificationType.PUSH, 1, 30, followers=FOLLOWERS).taken
        record(conn, [Report(claimed, dead)], FOLLOWERS)
    harness.settle()
    assert harness.states(id_) == ["FAILED", "RUNNING"]
    assert (harness.sent_to(id_), harness.dead_letters()) == ([("PUSH", "DEAD"), ("SMS", "ACCEPTED")], [])


def test_disabled_recipients_are_skipped(harness: ActionHarness) -> None:
    plan = harness.plan({"channel_type": "email", "audience": ROUTES}, PUSH)
    harness.route(plan, 1, harness.profile(("email", "ops@ornek.org"), status=False))
    id_ = harness.ask(plan, harness.user())
    assert (harness.states(id_), harness.dead_letters()) == (["SKIPPED", "RUNNING"], [])


def test_step_without_recipients_is_a_dead_letter(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan({"channel_type": "email", "audience": ROUTES}, PUSH), harness.user())
    assert (harness.states(id_), harness.status(id_)) == (["FAILED", "CANCELLED"], "FAILED")
    assert harness.dead_letters(id_) == [("NO_RECIPIENT", "OPEN")]


# ---- recipients and addresses ----


def test_routes_priorities_and_verification_decide_the_address(harness: ActionHarness) -> None:
    plan = harness.plan({"channel_type": "whatsapp", "audience": ROUTES})
    second, first = harness.profile(("whatsapp", "+905550000002"), priority=2), harness.profile(priority=1, locale="en")
    harness.channel(first, "whatsapp", "+905550000008", "pending")
    chosen = harness.channel(first, "whatsapp", "0555 000 00 01")
    for profile in (second, first):
        harness.route(plan, 1, profile)
    id_ = harness.ask(plan)
    harness.settle()
    [message] = harness.notifications(id_)
    assert message.recipient == "+905550000001", "the address is not in its canonical form"
    [row] = harness.sql("SELECT channel_id FROM notifications")
    assert row.channel_id == chosen
    harness.fail("whatsapp")
    assert [one.recipient for one in harness.notifications(id_)] == ["+905550000001", "+905550000002"]


def test_profiles_of_the_device_are_used_without_a_route(harness: ActionHarness) -> None:
    harness.profile(("email", "ayse@ornek.org"), device_id="400000011D081B70")
    id_ = harness.ask(
        harness.plan({"channel_type": "email", "audience": ROUTES}), context={"device_id": "400000011D081B70"}
    )
    assert [one.recipient for one in harness.notifications(id_)] == ["ayse@ornek.org"]


def test_each_recipient_gets_their_own_language(harness: ActionHarness) -> None:
    harness.template("hello", "Merhaba")
    harness.template("hello", "Hello", "en")
    harness.template("only.turkish", "Merhaba")
    plan = harness.plan(PUSH | {"template_key": "hello"})
    harness.ask(plan, harness.user())
    harness.ask(plan, harness.user(locale="en"))
    harness.ask(harness.plan(PUSH | {"template_key": "only.turkish"}), harness.user(locale="en"))
    assert [row.body for row in harness.sql("SELECT body FROM notifications ORDER BY id")] == [
        "Merhaba",
        "Hello",
        "Merhaba",
    ]


def test_in_app_and_audit_channels_need_no_profile(harness: ActionHarness) -> None:
    person = harness.user()
    id_ = harness.ask(harness.plan({"channel_type": "in_app"}, {"channel_type": "audit"}), person)
    harness.deliver("in_app")
    assert [(one.type, one.recipient) for one in harness.notifications(id_)] == [
        ("IN_APP", f"user:{person}"),
        ("AUDIT", f"plan:{harness.action(id_).action_plan_id}"),
    ]


# ---- fallback ----


def test_sms_fallback_covers_the_failed_push(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user("0555 000 00 01"))
    harness.fail("push")
    assert harness.dead_letters() == [("HTTP_500", "OPEN")]
    harness.deliver("sms")
    assert [(one.type, one.recipient) for one in harness.notifications(id_)][1] == ("SMS", "+905550000001")
    assert (harness.status(id_), harness.dead_letters()) == ("DONE", [("HTTP_500", "COVERED")])


def test_each_failed_channel_has_its_dead_letter(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    harness.fail("push")
    harness.fail("sms", code="HTTP_400")
    assert (harness.status(id_), harness.dead_letters()) == ("FAILED", [("HTTP_500", "OPEN"), ("HTTP_400", "OPEN")])


def test_no_fallback_after_a_notification_that_may_have_arrived(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    harness.fail("push", Outcome.UNKNOWN, "TIMEOUT")
    assert (harness.sent_to(id_), harness.states(id_)) == ([("PUSH", "DEAD")], ["FAILED"])


def test_lost_answers_are_followed_by_the_fallback_of_a_step_that_says_so(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS | {"may_arrive_twice": True}), harness.user())
    harness.fail("push", Outcome.UNKNOWN, "TIMEOUT")
    assert harness.sent_to(id_) == [("PUSH", "DEAD"), ("SMS", "ACCEPTED")]
    harness.deliver("sms")
    assert (harness.status(id_), harness.dead_letters()) == ("DONE", [("TIMEOUT", "COVERED")])


@pytest.mark.parametrize("answer", ["arrives", "is lost again"])
def test_silent_provider_delays_the_fallback_by_a_minute_at_most(harness: ActionHarness, answer: str) -> None:
    """Between tries, a breaker may hold the push back. What the provider answers later changes nothing."""
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS | {"may_arrive_twice": True}), harness.user())
    [claimed] = harness.claim("push")
    late = harness.db.now() + timedelta(hours=1)
    retry = Verdict(NotificationStatus.RETRYING, late, "TIMEOUT", failed=True)
    lost = Try(None, SendResult(Outcome.UNKNOWN, "TIMEOUT"))
    with harness.db.transaction() as conn:
        record(conn, [Report(claimed, retry, [lost])], FOLLOWERS)
    harness.sql("UPDATE notifications SET due_at = clock_timestamp()")
    again = harness.claim("push")
    harness.pass_time(id_, 61)
    harness.settle()
    assert harness.sent_to(id_) == [("PUSH", "SENDING"), ("SMS", "ACCEPTED")]
    harness.deliver("sms")
    sent = Report(again[0], Verdict(NotificationStatus.SENT), [Try(None, SendResult(Outcome.SENT))])
    with harness.db.transaction() as conn:
        record(conn, [sent if answer == "arrives" else Report(again[0], retry, [lost])], FOLLOWERS)
    harness.settle()
    assert (harness.status(id_), harness.sent_to(id_)[1], harness.dead_letters()) == ("DONE", ("SMS", "SENT"), [])


def test_sms_fallback_is_sent_after_sixty_seconds_without_a_push(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    harness.pass_time(id_, 59)
    harness.settle()
    assert harness.sent_to(id_) == [("PUSH", "ACCEPTED")]
    harness.pass_time(id_, 61)
    harness.settle()
    assert harness.sent_to(id_) == [("PUSH", "CANCELLED"), ("SMS", "ACCEPTED")]
    harness.deliver("sms")
    assert harness.status(id_) == "DONE"


def test_claimed_push_gets_no_retry_after_its_fallback_began_but_may_arrive(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    claimed = harness.claim("push")
    harness.pass_time(id_, 61)
    harness.settle()
    [push] = harness.sql(
        "SELECT *, expires_at <= clock_timestamp() AS over FROM notifications WHERE status = 'SENDING'"
    )
    assert push.over
    harness.record(claimed, "SENT", Outcome.SENT, None)  # pyright: ignore[reportArgumentType]
    harness.settle()
    assert harness.sent_to(id_) == [("PUSH", "SENT"), ("SMS", "CANCELLED")], (
        "the push arrived, but its fallback was not cancelled"
    )
    assert harness.status(id_) == "DONE"


def test_push_that_is_being_recorded_gets_no_fallback(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user())
    harness.pass_time(id_, 61)
    with harness.db.transaction() as recorder:
        recorder.execute(text("SELECT FROM notifications FOR UPDATE"))
        assert harness.conductor.run_once() == 1
    assert harness.sent_to(id_) == [("PUSH", "ACCEPTED")]
    harness.pass_time(id_, 61)
    harness.settle()
    assert harness.sent_to(id_) == [("PUSH", "CANCELLED"), ("SMS", "ACCEPTED")]


def test_expired_notification_gets_no_fallback(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH_THEN_SMS), harness.user(), expires_at=harness.db.now() + timedelta(seconds=30))
    harness.pass_time(id_, 61)
    harness.sql("UPDATE notifications SET expires_at = clock_timestamp()")
    assert harness.claim("push") == []
    harness.settle()
    assert (harness.sent_to(id_), harness.states(id_)) == ([("PUSH", "EXPIRED")], ["FAILED"])
    assert harness.dead_letters() == []


# ---- handover and results ----


def test_step_of_an_external_channel_is_handed_over(harness: ActionHarness) -> None:
    plan = harness.plan({"channel_type": "device_downlink", "audience": ROUTES}, PUSH)
    id_ = harness.ask(plan, harness.user(), evaluation_key="e1", variables={"valve": 3})
    assert harness.states(id_) == ["WAITING", "WAITING"], "the settings do not name the channel as external"
    harness.settle()
    assert harness.states(id_) == ["HANDED_OVER", "RUNNING"]
    [event] = harness.events()
    assert (event.topic, event.payload["data"]["evaluation_key"]) == ("action.handover", "e1")
    assert event.payload["data"]["variables"] == {"valve": 3}


def test_results_of_external_requests_are_published(harness: ActionHarness) -> None:
    context = {"device_id": "400000011D081B70", "stream_id": 9823412, "group_id": 12, "rule_id": 114}
    plan, person = harness.plan(PUSH, PUSH), harness.user()
    harness.ask(plan, person, origin=Origin.STREAM, evaluation_key="e1", context=context)
    harness.deliver()
    harness.fail()
    executed, dead_letter, failed = harness.events()
    assert [executed.topic, dead_letter.topic, failed.topic] == ["action.executed", "dlq.action", "action.failed"]
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


def test_results_of_internal_requests_are_not_published(harness: ActionHarness) -> None:
    harness.ask(harness.plan(PUSH), harness.user())
    harness.deliver()
    assert harness.events() == []


# ---- cancellation ----


def test_cancel_ends_the_notification_and_its_later_steps(harness: ActionHarness) -> None:
    task_id, person, other = uuid7(), harness.user(), harness.user()
    plan = harness.plan(PUSH, PUSH)
    meant = harness.ask(plan, person, task_id=task_id, data={"type": "OFFER"})
    others = [
        harness.ask(plan, other, task_id=task_id, data={"type": "OFFER"}),
        harness.ask(plan, person, task_id=uuid7(), data={"type": "OFFER"}),
        harness.ask(plan, person, task_id=task_id, data={"type": "STARTED"}),
    ]
    for expected in (1, 0):
        with harness.db.transaction() as conn:
            assert service.cancel_actions(conn, [(task_id, person)], "OFFER") == expected
    assert (harness.states(meant), harness.status(meant)) == (["CANCELLED", "CANCELLED"], "CANCELLED")
    assert harness.sent_to(meant) == [("PUSH", "CANCELLED")]
    assert {harness.status(one) for one in others} == {"RUNNING"}


def test_cancel_closes_the_dead_letters_of_the_action(harness: ActionHarness) -> None:
    task_id, person = uuid7(), harness.user()
    harness.template("hello", "Merhaba")
    plan = harness.plan(PUSH_THEN_SMS | {"template_key": "hello"})
    for type_ in ("OFFER", "STARTED"):
        harness.ask(plan, person, task_id=task_id, data={"type": type_})
    harness.fail("push")
    with harness.db.transaction() as conn:
        service.cancel_actions(conn, [(task_id, person)], "OFFER")
    assert sorted(harness.dead_letters()) == [("HTTP_500", "EXPIRED"), ("HTTP_500", "OPEN")]


@pytest.mark.parametrize(
    ("was", "becomes"), [("ACCEPTED", "CANCELLED"), ("RETRYING", "CANCELLED"), ("SENDING", "SENDING")]
)
def test_cancel_lets_a_claimed_notification_finish_without_a_retry(
    harness: ActionHarness, was: str, becomes: str
) -> None:
    task_id, person = uuid7(), harness.user()
    id_ = harness.ask(harness.plan(PUSH), person, task_id=task_id, data={"type": "OFFER"})
    harness.sql("UPDATE notifications SET status = :status", status=was)
    with harness.db.transaction() as conn:
        assert service.cancel_actions(conn, [(task_id, person)], "OFFER") == 1
    [row] = harness.sql("SELECT status, expires_at <= clock_timestamp() AS over FROM notifications")
    assert (row.status, row.over) == (becomes, True if was == "SENDING" else None)
    assert harness.status(id_) == "CANCELLED"


def test_cancel_does_not_wait_for_a_locked_notification(harness: ActionHarness) -> None:
    task_id, person = uuid7(), harness.user()
    id_ = harness.ask(harness.plan(PUSH), person, task_id=task_id, data={"type": "OFFER"})
    with harness.db.transaction() as recorder, harness.db.transaction() as matcher:
        recorder.execute(text("SELECT FROM notifications FOR UPDATE"))
        assert service.cancel_actions(matcher, [(task_id, person)], "OFFER") == 1
    assert (harness.status(id_), harness.sent_to(id_)) == ("CANCELLED", [("PUSH", "ACCEPTED")])


# ---- redrive ----


def test_redriven_step_without_a_notification_runs_again(harness: ActionHarness) -> None:
    id_ = harness.ask(harness.plan(PUSH | {"template_key": "hello"}, PUSH), harness.user())
    harness.deliver()
    assert (harness.states(id_), harness.status(id_)) == (["FAILED", "SENT"], "FAILED")
    harness.template("hello", "Merhaba")
    with harness.db.transaction() as conn:
        assert service.reopen(conn, id_, 1)
        assert not service.reopen(conn, id_, 2)
        assert not service.reopen(conn, uuid7(), 1)
    harness.settle()
    harness.deliver()
    assert (harness.states(id_), harness.status(id_)) == (["SENT", "SENT"], "DONE")
