"""How the steps of a plan proceed after each result of their notifications."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.delivery.actions.error_codes import BAD_INPUT
from app.delivery.actions.run import Decision, advance, cancel, reopen, stops_the_plan
from app.delivery.actions.states import ActionStatus, StepState
from app.delivery.actions.step_codec import decode, encode
from app.delivery.actions.steps import (
    Cover,
    Draft,
    Executed,
    Failed,
    Found,
    GiveUp,
    HandOver,
    NotificationState,
    Resolution,
    Run,
    Send,
    StepRun,
    Target,
    TargetFault,
    Unresolved,
    Withdraw,
)
from app.delivery.messages.error_texts import REASONS
from app.delivery.messages.values import NotificationStatus
from app.delivery.plans.models import Audience, OnFailure
from app.delivery.words.rendering import Words

NOW = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)
N = NotificationStatus
S = StepState
PUSH, SMS, EMAIL = (
    Target("push", "user:7", user_id=7),
    Target("sms", "+905550000001"),
    Target("email", "ayse@ornek.org"),
)


@dataclass
class FakeContext:
    """Answers by step order, and faults by channel type."""

    answers: Mapping[int, Resolution] = field(default_factory=dict[int, Resolution])
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    made: int = 0

    def resolve(self, step: StepRun) -> Resolution:
        return self.answers.get(step.order, Found((PUSH,)))

    def draft(self, step: StepRun, target: Target) -> Draft | TargetFault | Unresolved:
        fault = self.faults.get(target.channel_type)
        if fault is None:
            return Draft(target.recipient, Words("", ""))
        return fault if isinstance(fault, Unresolved) else TargetFault(fault)

    def new_id(self) -> UUID:
        self.made += 1
        return UUID(int=self.made)


def step(order: int = 1, **changes: object) -> StepRun:
    return replace(StepRun(order, "push", Audience.PERSON), **changes)  # pyright: ignore[reportArgumentType]


def begin(*steps: StepRun, context: FakeContext | None = None, expires_at: datetime | None = None) -> Decision:
    return advance(Run(steps, expires_at), context or FakeContext(), {}, NOW)


def later(decision: Decision, context: FakeContext, seconds: float = 0.0, **seen: NotificationState) -> Decision:
    """`m1` is the state of the first notification, `m2` of the second."""
    known = {UUID(int=int(name[1:])): one for name, one in seen.items()}
    return advance(decision.run, context, known, NOW + timedelta(seconds=seconds))


def states(decision: Decision) -> list[StepState]:
    return [one.state for one in decision.run.steps]


def sent_to(decision: Decision) -> list[str]:
    return [effect.target.channel_type for effect in decision.effects if isinstance(effect, Send)]


SENT = NotificationState(N.SENT, provider_message_id="fcm:1")
DEAD = NotificationState(N.DEAD, error_code="HTTP_500", retry_count=2)
LOST = NotificationState(N.DEAD, may_have_arrived=True, error_code="TIMEOUT")
GONE = NotificationState(N.DEAD, error_code="HTTP_410", recipient_is_gone=True)
WAITING = NotificationState(N.ACCEPTED)
SENDING = NotificationState(N.SENDING)
RETRYING = NotificationState(N.RETRYING, error_code="HTTP_503")
HELD = NotificationState(N.ACCEPTED, error_code="BREAKER_OPEN")


# ---- the order of steps ----


def test_second_step_waits_for_the_first() -> None:
    context = FakeContext()
    decision = begin(step(1), step(2), context=context)
    assert (states(decision), sent_to(decision), decision.due_at) == ([S.RUNNING, S.WAITING], ["push"], None)
    assert later(decision, context, m1=RETRYING).effects == ()
    decision = later(decision, context, m1=SENT)
    assert (states(decision), sent_to(decision)) == ([S.SENT, S.RUNNING], ["push"])
    decision = later(decision, context, m2=SENT)
    assert (states(decision), decision.run.status) == ([S.SENT, S.SENT], ActionStatus.DONE)


def test_successful_step_reports_the_id_of_the_provider() -> None:
    context = FakeContext()
    decision = later(begin(step(1), context=context), context, m1=SENT)
    [executed] = decision.effects
    assert isinstance(executed, Executed)
    assert executed.provider_message_id == "fcm:1"


def test_second_advance_changes_nothing() -> None:
    context = FakeContext()
    decision = begin(step(1), context=context)
    again = later(decision, context, m1=WAITING)
    assert (again.run, again.effects) == (decision.run, ())


@pytest.mark.parametrize(
    ("on_failure", "code", "second", "status"),
    [
        (OnFailure.STOP, "HTTP_500", S.CANCELLED, ActionStatus.FAILED),
        (OnFailure.CONTINUE, "HTTP_500", S.RUNNING, ActionStatus.RUNNING),
        (OnFailure.STOP, "PAYLOAD_TOO_LARGE", S.RUNNING, ActionStatus.RUNNING),
        (OnFailure.STOP, "INVALID_SUBJECT", S.RUNNING, ActionStatus.RUNNING),
        (OnFailure.STOP, "RECIPIENT_RETIRED", S.RUNNING, ActionStatus.RUNNING),
        (OnFailure.STOP, "INVALID_ANSWER", S.CANCELLED, ActionStatus.FAILED),
    ],
)
def test_failed_step_decides_about_the_later_ones(
    on_failure: OnFailure, code: str, second: StepState, status: ActionStatus
) -> None:
    context = FakeContext()
    decision = later(
        begin(step(1, on_failure=on_failure), step(2), context=context),
        context,
        m1=NotificationState(N.DEAD, error_code=code),
    )
    assert (states(decision), decision.run.status) == ([S.FAILED, second], status)
    assert decision.run.steps[0].error_code == code


def test_plan_that_continued_after_a_failure_ends_as_failed() -> None:
    context = FakeContext()
    decision = later(begin(step(1, on_failure=OnFailure.CONTINUE), step(2), context=context), context, m1=DEAD)
    decision = later(decision, context, m1=DEAD, m2=SENT)
    assert (states(decision), decision.run.status) == ([S.FAILED, S.SENT], ActionStatus.FAILED)


def test_failures_other_than_bad_input_stop_a_plan() -> None:
    assert REASONS.keys() >= BAD_INPUT, "each of these codes exists"
    assert stops_the_plan(step(), "HTTP_500")
    assert not stops_the_plan(step(), "UNKNOWN_TEMPLATE")
    assert not stops_the_plan(step(on_failure=OnFailure.CONTINUE), "HTTP_500")


def test_recipient_who_is_gone_stops_no_plan() -> None:
    context = FakeContext()
    decision = later(begin(step(1), step(2), context=context), context, m1=GONE)
    assert (states(decision), decision.run.steps[0].error_code) == ([S.FAILED, S.RUNNING], "HTTP_410")


@pytest.mark.parametrize(
    ("push", "sms", "second", "code"),
    [
        (DEAD, GONE, S.CANCELLED, "HTTP_500"),
        (GONE, DEAD, S.CANCELLED, "HTTP_500"),
        (GONE, GONE, S.RUNNING, "HTTP_410"),
        (NotificationState(N.CANCELLED), GONE, S.RUNNING, "HTTP_410"),
    ],
)
def test_failure_of_delivery_outweighs_a_recipient_who_is_gone(
    push: NotificationState, sms: NotificationState, second: StepState, code: str
) -> None:
    context = two()
    decision = later(begin(step(1), step(2), context=context), context, m1=push)
    decision = later(decision, context, m1=push, m2=sms)
    assert (states(decision), decision.run.steps[0].error_code) == ([S.FAILED, second], code)


def test_plan_without_steps_is_done() -> None:
    assert begin().run.status is ActionStatus.DONE


# ---- within a step ----


def two() -> FakeContext:
    return FakeContext({1: Found((PUSH, SMS))})


@pytest.mark.parametrize("ended", [DEAD, NotificationState(N.EXPIRED), NotificationState(N.CANCELLED)])
def test_next_target_is_tried_after_a_failure(ended: NotificationState) -> None:
    context = two()
    decision = later(begin(step(), context=context), context, m1=ended)
    assert (states(decision), sent_to(decision)) == ([S.RUNNING], ["sms"])


def test_successful_fallback_covers_earlier_dead_letters() -> None:
    context = two()
    decision = later(begin(step(), context=context), context, m1=DEAD)
    decision = later(decision, context, m1=DEAD, m2=SENT)
    assert [type(effect) for effect in decision.effects] == [Cover, Executed]
    assert decision.run.status is ActionStatus.DONE


def test_step_fails_when_every_target_fails() -> None:
    context = two()
    decision = later(later(begin(step(), context=context), context, m1=DEAD), context, m1=DEAD, m2=DEAD)
    assert (states(decision), decision.run.status) == ([S.FAILED], ActionStatus.FAILED)
    assert [type(effect) for effect in decision.effects] == [Failed]


def test_no_fallback_after_a_message_that_may_have_arrived() -> None:
    context = two()
    decision = later(begin(step(), context=context), context, m1=LOST)
    assert (states(decision), sent_to(decision), decision.run.steps[0].error_code) == ([S.FAILED], [], "TIMEOUT")


def test_fallback_follows_lost_answers_if_the_step_says_so() -> None:
    context = two()
    decision = later(begin(step(may_arrive_twice=True), context=context), context, m1=LOST)
    assert (states(decision), sent_to(decision)) == ([S.RUNNING], ["sms"])
    decision = later(decision, context, m1=LOST, m2=SENT)
    assert [type(effect) for effect in decision.effects] == [Cover, Executed]


def test_fallback_does_not_wait_for_a_silent_provider_if_the_step_says_so() -> None:
    """A breaker may hold the next try back for hours."""
    context = two()
    decision = begin(step(within_s=60, may_arrive_twice=True), context=context)
    silent = NotificationState(N.RETRYING, may_have_arrived=True)
    assert later(decision, context, 59, m1=silent).effects == ()
    decision = later(decision, context, 60, m1=silent)
    assert (decision.effects[0], sent_to(decision)) == (Withdraw(UUID(int=1)), ["sms"])


def test_no_fallback_while_one_of_two_phones_has_the_message() -> None:
    context = two()
    decision = begin(step(within_s=60, may_arrive_twice=True), context=context)
    on_one_phone = NotificationState(N.RETRYING, may_have_arrived=True, has_arrived=True)
    assert later(decision, context, 61, m1=on_one_phone).effects == ()


def test_no_fallback_after_the_expiry_although_the_message_may_arrive_twice() -> None:
    context = two()
    decision = begin(step(may_arrive_twice=True), context=context, expires_at=NOW + timedelta(seconds=5))
    decision = later(decision, context, 5, m1=LOST)
    assert (states(decision), sent_to(decision)) == ([S.FAILED], [])


@pytest.mark.parametrize("status", [N.ACCEPTED, N.SENDING, N.RETRYING])
def test_step_waits_for_retries_of_a_message_that_may_have_arrived(status: NotificationStatus) -> None:
    context = two()
    decision = begin(step(within_s=60), context=context)
    decision = later(decision, context, 61, m1=NotificationState(status, may_have_arrived=True))
    assert (states(decision), decision.effects) == ([S.RUNNING], ())
    decision = later(decision, context, 62, m1=SENT)
    assert states(decision) == [S.SENT]


@pytest.mark.parametrize("live", [WAITING, SENDING, RETRYING])
def test_slow_message_is_withdrawn_for_the_next_target(live: NotificationState) -> None:
    context = two()
    decision = begin(step(within_s=60), context=context)
    assert decision.due_at == NOW + timedelta(seconds=60)
    early = later(decision, context, 59, m1=live)
    assert (early.effects, early.due_at) == ((), decision.due_at)
    decision = later(decision, context, 60, m1=live)
    assert decision.effects[0] == Withdraw(UUID(int=1))
    assert sent_to(decision) == ["sms"]
    assert decision.due_at is None, "the last target has no time limit"


def test_arrival_of_a_withdrawn_message_withdraws_the_next_one() -> None:
    context = two()
    decision = later(begin(step(within_s=60), context=context), context, 60, m1=SENDING)
    decision = later(decision, context, 61, m1=SENT, m2=WAITING)
    assert states(decision) == [S.SENT]
    assert Withdraw(UUID(int=2)) in decision.effects


def test_step_waits_for_a_withdrawn_message_when_the_last_one_failed() -> None:
    context = two()
    decision = later(begin(step(within_s=60), context=context), context, 60, m1=SENDING)
    decision = later(decision, context, 61, m1=SENDING, m2=DEAD)
    assert states(decision) == [S.RUNNING]
    assert states(later(decision, context, 62, m1=SENT, m2=DEAD)) == [S.SENT]
    assert states(later(decision, context, 62, m1=NotificationState(N.EXPIRED), m2=DEAD)) == [S.FAILED]


def test_locked_message_is_checked_again_later() -> None:
    context = two()
    decision = begin(step(within_s=60), context=context)
    decision = later(decision, context, 60, m1=replace(SENDING, is_locked_elsewhere=True))
    assert (decision.effects, decision.due_at) == ((), NOW + timedelta(seconds=61))


def test_slow_message_is_not_withdrawn_without_another_target() -> None:
    context = FakeContext()
    decision = begin(step(within_s=60), context=context)
    assert decision.due_at is None
    assert later(decision, context, 100, m1=RETRYING).effects == ()


# ---- messages that wait for long ----


def goes_on(**changes: object) -> StepRun:
    return step(on_failure=OnFailure.CONTINUE, **changes)


@pytest.mark.parametrize("live", [WAITING, SENDING, RETRYING, HELD, replace(RETRYING, may_have_arrived=True)])
def test_later_step_begins_when_the_first_one_has_had_its_time(live: NotificationState) -> None:
    context = FakeContext()
    decision = begin(goes_on(within_s=60), step(2), context=context)
    assert decision.due_at == NOW + timedelta(seconds=60)
    early = later(decision, context, 59, m1=live)
    assert (states(early), early.due_at) == ([S.RUNNING, S.WAITING], decision.due_at)
    decision = later(early, context, 60, m1=live)
    assert (states(decision), [type(effect) for effect in decision.effects]) == ([S.RUNNING, S.RUNNING], [Send])
    assert decision.due_at is None, "the first step waits for the end of its message, and no longer for a time"


def test_message_that_waits_longer_than_its_step_may_still_arrive() -> None:
    context = FakeContext()
    decision = later(begin(goes_on(within_s=60), step(2), step(3), context=context), context, 60, m1=HELD)
    decision = later(decision, context, 61, m1=HELD, m2=SENT)
    assert (states(decision), decision.run.status) == ([S.RUNNING, S.SENT, S.RUNNING], ActionStatus.RUNNING)
    decision = later(decision, context, 62, m1=HELD, m2=SENT, m3=SENT)
    assert decision.run.status is ActionStatus.RUNNING
    decision = later(decision, context, 900, m1=SENT, m2=SENT, m3=SENT)
    assert (states(decision), decision.run.status) == ([S.SENT] * 3, ActionStatus.DONE)


def test_step_without_a_time_limit_lets_the_plan_go_on_only_for_an_open_breaker() -> None:
    context = FakeContext()
    decision = begin(goes_on(), step(2), context=context)
    assert decision.due_at == NOW + timedelta(seconds=60)
    slow = later(decision, context, 600, m1=RETRYING)
    assert (states(slow), slow.due_at) == ([S.RUNNING, S.WAITING], NOW + timedelta(seconds=615))
    assert states(later(decision, context, 60, m1=HELD)) == [S.RUNNING, S.RUNNING]


def test_step_without_a_time_limit_has_its_fallback_behind_an_open_breaker() -> None:
    context = two()
    decision = begin(step(), context=context)
    assert later(decision, context, 600, m1=RETRYING).effects == ()
    assert later(decision, context, 59, m1=HELD).effects == ()
    decision = later(decision, context, 60, m1=HELD)
    assert (decision.effects[0], sent_to(decision)) == (Withdraw(UUID(int=1)), ["sms"])


def test_later_step_waits_for_a_step_whose_failure_would_stop_the_plan() -> None:
    context = FakeContext()
    decision = begin(step(within_s=60), step(2), context=context)
    assert decision.due_at is None
    decision = later(decision, context, 600, m1=HELD)
    assert (states(decision), decision.due_at) == ([S.RUNNING, S.WAITING], None)


def test_later_step_waits_for_the_fallback_of_the_first_one() -> None:
    context = two()
    decision = later(begin(goes_on(within_s=60), step(2), context=context), context, 60, m1=HELD)
    assert (states(decision), sent_to(decision)) == ([S.RUNNING, S.WAITING], ["sms"])
    assert decision.due_at == NOW + timedelta(seconds=120)
    decision = later(decision, context, 120, m1=NotificationState(N.CANCELLED), m2=HELD)
    assert (states(decision), sent_to(decision)) == ([S.RUNNING, S.RUNNING], ["push"])


def test_failure_of_a_step_that_had_its_time_leaves_the_later_ones_running() -> None:
    context = FakeContext()
    decision = later(begin(goes_on(within_s=60), step(2), step(3), context=context), context, 60, m1=HELD)
    decision = later(decision, context, 61, m1=DEAD, m2=WAITING)
    assert (states(decision), decision.run.status) == ([S.FAILED, S.RUNNING, S.WAITING], ActionStatus.RUNNING)


# ---- steps without a notification ----


@pytest.mark.parametrize("code", ["NO_RECIPIENT", "UNKNOWN_CHANNEL", "RECIPIENT_RETIRED"])
def test_step_without_a_recipient_is_one_dead_letter(code: str) -> None:
    decision = begin(step(), context=FakeContext({1: TargetFault(code)}))
    assert [type(effect) for effect in decision.effects] == [GiveUp, Failed]
    assert (states(decision), decision.run.steps[0].error_code) == ([S.FAILED], code)


def test_step_is_skipped_if_all_recipients_are_switched_off() -> None:
    decision = begin(step(1), step(2), context=FakeContext({1: Unresolved.ALL_OFF}))
    assert states(decision) == [S.SKIPPED, S.RUNNING]
    done = begin(step(1), context=FakeContext({1: Unresolved.ALL_OFF}))
    assert (done.effects, done.run.status) == ((), ActionStatus.DONE)


def test_step_of_another_service_is_handed_over() -> None:
    decision = begin(step(1, channel_type="device_downlink"), step(2), context=FakeContext({1: Unresolved.ELSEWHERE}))
    assert isinstance(decision.effects[0], HandOver)
    assert states(decision) == [S.HANDED_OVER, S.RUNNING]


def test_step_that_needs_settings_is_left_to_the_conductor() -> None:
    decision = begin(step(1), context=FakeContext({1: Unresolved.NEEDS_SETTINGS}))
    assert (states(decision), decision.effects, decision.due_at) == ([S.WAITING], (), NOW)
    decision = begin(step(1), context=FakeContext(faults={"push": Unresolved.NEEDS_SETTINGS}))
    assert (states(decision), decision.effects, decision.due_at) == ([S.RUNNING], (), NOW)
    assert sent_to(later(decision, FakeContext())) == ["push"]


def test_failed_rendering_ends_only_its_step() -> None:
    context = FakeContext({1: Found((PUSH, SMS)), 2: Found((EMAIL,))}, {"push": "TEMPLATE_RENDER_FAILED"})
    decision = begin(step(1), step(2), context=context)
    assert (states(decision), sent_to(decision)) == ([S.FAILED, S.RUNNING], ["email"])
    assert [effect.error_code for effect in decision.effects if isinstance(effect, GiveUp)] == [
        "TEMPLATE_RENDER_FAILED"
    ]


def test_invalid_address_is_a_dead_letter_and_the_next_target_is_tried() -> None:
    context = FakeContext({1: Found((SMS, EMAIL))}, {"sms": "INVALID_ADDRESS"})
    decision = begin(step(1, on_failure=OnFailure.STOP), context=context)
    assert [type(effect) for effect in decision.effects] == [GiveUp, Send]
    decision = later(decision, context, m1=SENT)
    assert isinstance(decision.effects[0], Cover)


def test_invalid_only_address_is_one_dead_letter() -> None:
    decision = begin(step(1), step(2), context=FakeContext({1: Found((SMS,))}, {"sms": "INVALID_ADDRESS"}))
    assert [type(effect) for effect in decision.effects] == [GiveUp, Failed, Send]
    assert states(decision) == [S.FAILED, S.RUNNING]


@pytest.mark.parametrize("fault", ["INVALID_ADDRESS", "TEMPLATE_RENDER_FAILED"])
def test_slow_message_is_not_withdrawn_for_one_that_cannot_be_sent(fault: str) -> None:
    context = FakeContext({1: Found((PUSH, SMS))}, {"sms": fault})
    decision = later(begin(step(within_s=60), context=context), context, 60, m1=WAITING)
    assert ([type(effect) for effect in decision.effects], states(decision)) == ([GiveUp], [S.RUNNING])
    decision = later(decision, context, 61, m1=SENT)
    assert ([type(effect) for effect in decision.effects], states(decision)) == ([Cover, Executed], [S.SENT])


def test_failure_of_delivery_outweighs_a_later_invalid_address() -> None:
    context = FakeContext({1: Found((PUSH, SMS))}, {"sms": "INVALID_ADDRESS"})
    decision = later(begin(step(1), step(2), context=context), context, m1=DEAD)
    assert (states(decision), decision.run.steps[0].error_code) == ([S.FAILED, S.CANCELLED], "HTTP_500")


# ---- expiry ----


def test_expired_action_begins_no_step() -> None:
    decision = begin(step(1), expires_at=NOW)
    assert (states(decision), sent_to(decision), decision.run.steps[0].error_code) == ([S.FAILED], [], "TOO_LATE")
    assert [type(effect) for effect in decision.effects] == [Failed]


def test_no_fallback_after_an_expired_message() -> None:
    context = two()
    decision = begin(step(), context=context, expires_at=NOW + timedelta(seconds=5))
    decision = later(decision, context, 5, m1=NotificationState(N.EXPIRED))
    assert (states(decision), sent_to(decision), decision.run.steps[0].error_code) == ([S.FAILED], [], "TOO_LATE")


# ---- cancel and reopen ----


def test_cancelling_withdraws_live_messages() -> None:
    context = FakeContext()
    decision = later(begin(step(1), step(2), step(3), context=context), context, m1=SENT)
    cancelled = cancel(decision.run)
    assert states(cancelled) == [S.SENT, S.CANCELLED, S.CANCELLED]
    assert (cancelled.effects, cancelled.run.status) == ((Withdraw(UUID(int=2)),), ActionStatus.CANCELLED)


def test_reopened_step_waits_for_its_message_and_later_steps_follow() -> None:
    context = FakeContext()
    decision = later(begin(step(1), step(2), context=context), context, m1=DEAD)
    assert states(decision) == [S.FAILED, S.CANCELLED]
    again = reopen(decision.run, 1, [UUID(int=1)], NOW)
    assert again is not None
    assert (states(again), again.due_at) == ([S.RUNNING, S.WAITING], NOW)
    decision = advance(again.run, context, {UUID(int=1): SENT}, NOW)
    assert (states(decision), sent_to(decision)) == ([S.SENT, S.RUNNING], ["push"])


def test_reopened_step_without_a_message_begins_anew() -> None:
    decision = begin(step(1), step(2), context=FakeContext(faults={"push": "UNKNOWN_TEMPLATE"}))
    again = reopen(decision.run, 1, [], NOW)
    assert again is not None
    assert sent_to(advance(again.run, FakeContext(), {}, NOW)) == ["push"]


def test_only_failed_steps_can_be_reopened() -> None:
    decision = begin(step(1), step(2))
    assert reopen(decision.run, 1, [], NOW) is None
    assert reopen(decision.run, 3, [], NOW) is None
    context = FakeContext()
    failed = later(begin(step(1, on_failure=OnFailure.CONTINUE), step(2), context=context), context, m1=DEAD)
    assert reopen(cancel(failed.run).run, 1, [], NOW) is None


# ---- encoding ----


def test_run_is_decoded_as_it_was_encoded() -> None:
    context = FakeContext(
        {1: Found((PUSH, replace(SMS, channel_id=4), replace(EMAIL, address_kind="FID", locale="en")))}
    )
    first = step(1, fallback=("sms", "email"), within_s=60, template_key="a.b", may_arrive_twice=True)
    decision = begin(first, step(2), context=context)
    decision = later(decision, context, 60, m1=SENDING)
    assert decode(encode(decision.run.steps)) == decision.run.steps
    assert "+90" not in repr(decision.run)
