"""What becomes of the steps of a plan, whatever becomes of their messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.delivery.actions.models import ActionStatus
from app.delivery.actions.run import BAD_INPUT, Advanced, advance, cancel, reopen, stops_the_plan
from app.delivery.actions.step_codec import decode, encode
from app.delivery.actions.steps import (
    Cover,
    Executed,
    Failed,
    Found,
    GiveUp,
    HandOver,
    Nobody,
    Resolution,
    Run,
    Seen,
    SendTo,
    Special,
    StepRun,
    StepState,
    Target,
    Withdraw,
)
from app.delivery.messages.error_texts import REASONS
from app.delivery.messages.values import NotificationStatus
from app.delivery.plans.models import Audience, OnFailure

NOW = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)
N = NotificationStatus
S = StepState
PUSH, SMS, EMAIL = (
    Target("push", "user:7", user_id=7),
    Target("sms", "+905550000001"),
    Target("email", "ayse@ornek.org"),
)


@dataclass
class FakeDesk:
    """Knows who is to be reached by each step, and what is wrong with some of them."""

    answers: Mapping[int, Resolution] = field(default_factory=dict[int, Resolution])
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    made: int = 0

    def resolve(self, step: StepRun) -> Resolution:
        return self.answers.get(step.order, Found((PUSH,)))

    def fault(self, step: StepRun, target: Target) -> str | None:
        return self.faults.get(target.channel_type)

    def new_id(self) -> UUID:
        self.made += 1
        return UUID(int=self.made)


def step(order: int = 1, **changes: object) -> StepRun:
    return replace(StepRun(order, "push", Audience.PERSON), **changes)  # pyright: ignore[reportArgumentType]


def begin(*steps: StepRun, desk: FakeDesk | None = None, expires_at: datetime | None = None) -> Advanced:
    return advance(Run(steps, expires_at), desk or FakeDesk(), {}, NOW)


def later(told: Advanced, desk: FakeDesk, seconds: float = 0.0, **seen: Seen) -> Advanced:
    """`m1` is the first message that was made."""
    known = {UUID(int=int(name[1:])): one for name, one in seen.items()}
    return advance(told.run, desk, known, NOW + timedelta(seconds=seconds))


def states(told: Advanced) -> list[StepState]:
    return [one.state for one in told.run.steps]


def sent_to(told: Advanced) -> list[str]:
    return [effect.target.channel_type for effect in told.effects if isinstance(effect, SendTo)]


SENT = Seen(N.SENT, provider_message_id="fcm:1")
DEAD = Seen(N.DEAD, error_code="HTTP_500", retry_count=2)
LOST = Seen(N.DEAD, may_have_arrived=True, error_code="TIMEOUT")
WAITING = Seen(N.ACCEPTED)
IN_HAND = Seen(N.SENDING)
RETRYING = Seen(N.RETRYING, error_code="HTTP_503")


# ---- steps in their order ----


def test_the_first_step_is_taken_at_once_and_the_second_waits_for_it() -> None:
    desk = FakeDesk()
    told = begin(step(1), step(2), desk=desk)
    assert (states(told), sent_to(told), told.due_at) == ([S.RUNNING, S.WAITING], ["push"], None)
    assert later(told, desk, m1=RETRYING).effects == ()
    told = later(told, desk, m1=SENT)
    assert (states(told), sent_to(told)) == ([S.SENT, S.RUNNING], ["push"])
    told = later(told, desk, m2=SENT)
    assert (states(told), told.run.status) == ([S.SENT, S.SENT], ActionStatus.DONE)


def test_a_step_that_succeeds_is_told_with_the_providers_id() -> None:
    desk = FakeDesk()
    told = later(begin(step(1), desk=desk), desk, m1=SENT)
    [executed] = told.effects
    assert isinstance(executed, Executed)
    assert executed.provider_message_id == "fcm:1"


def test_advancing_again_asks_nothing_again() -> None:
    desk = FakeDesk()
    told = begin(step(1), desk=desk)
    again = later(told, desk, m1=WAITING)
    assert (again.run, again.effects) == (told.run, ())


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
def test_what_a_failed_step_means_for_the_later_ones(
    on_failure: OnFailure, code: str, second: StepState, status: ActionStatus
) -> None:
    desk = FakeDesk()
    told = later(begin(step(1, on_failure=on_failure), step(2), desk=desk), desk, m1=Seen(N.DEAD, error_code=code))
    assert (states(told), told.run.status) == ([S.FAILED, second], status)
    assert told.run.steps[0].error_code == code


def test_a_plan_that_went_on_after_a_failure_has_failed_in_the_end() -> None:
    desk = FakeDesk()
    told = later(begin(step(1, on_failure=OnFailure.CONTINUE), step(2), desk=desk), desk, m1=DEAD)
    told = later(told, desk, m1=DEAD, m2=SENT)
    assert (states(told), told.run.status) == ([S.FAILED, S.SENT], ActionStatus.FAILED)


def test_only_wrong_input_does_not_stop_a_plan() -> None:
    assert REASONS.keys() >= BAD_INPUT, "as channels and the engine spell them"
    assert stops_the_plan(step(), "HTTP_500")
    assert not stops_the_plan(step(), "UNKNOWN_TEMPLATE")
    assert not stops_the_plan(step(on_failure=OnFailure.CONTINUE), "HTTP_500")


def test_a_plan_without_steps_is_done() -> None:
    assert begin().run.status is ActionStatus.DONE


# ---- within a step ----


def two() -> FakeDesk:
    return FakeDesk({1: Found((PUSH, SMS))})


@pytest.mark.parametrize("ended", [DEAD, Seen(N.EXPIRED), Seen(N.CANCELLED)])
def test_the_next_target_has_its_turn_when_a_message_came_to_nothing(ended: Seen) -> None:
    desk = two()
    told = later(begin(step(), desk=desk), desk, m1=ended)
    assert (states(told), sent_to(told)) == ([S.RUNNING], ["sms"])


def test_when_the_fallback_arrives_what_was_given_up_before_is_covered() -> None:
    desk = two()
    told = later(begin(step(), desk=desk), desk, m1=DEAD)
    told = later(told, desk, m1=DEAD, m2=SENT)
    assert [type(effect) for effect in told.effects] == [Cover, Executed]
    assert told.run.status is ActionStatus.DONE


def test_when_every_target_fails_the_step_does() -> None:
    desk = two()
    told = later(later(begin(step(), desk=desk), desk, m1=DEAD), desk, m1=DEAD, m2=DEAD)
    assert (states(told), told.run.status) == ([S.FAILED], ActionStatus.FAILED)
    assert [type(effect) for effect in told.effects] == [Failed]


def test_a_message_that_may_have_arrived_is_followed_by_no_other() -> None:
    desk = two()
    told = later(begin(step(), desk=desk), desk, m1=LOST)
    assert (states(told), sent_to(told), told.run.steps[0].error_code) == ([S.FAILED], [], "TIMEOUT")


@pytest.mark.parametrize("status", [N.ACCEPTED, N.SENDING, N.RETRYING])
def test_a_message_that_may_have_arrived_is_waited_for_while_it_is_tried_again(status: NotificationStatus) -> None:
    desk = two()
    told = begin(step(within_s=60), desk=desk)
    told = later(told, desk, 61, m1=Seen(status, may_have_arrived=True))
    assert (states(told), told.effects) == ([S.RUNNING], ())
    told = later(told, desk, 62, m1=SENT)
    assert states(told) == [S.SENT]


@pytest.mark.parametrize("live", [WAITING, IN_HAND, RETRYING])
def test_a_message_that_takes_too_long_gives_way(live: Seen) -> None:
    desk = two()
    told = begin(step(within_s=60), desk=desk)
    assert told.due_at == NOW + timedelta(seconds=60)
    early = later(told, desk, 59, m1=live)
    assert (early.effects, early.due_at) == ((), told.due_at)
    told = later(told, desk, 60, m1=live)
    assert told.effects[0] == Withdraw(UUID(int=1))
    assert sent_to(told) == ["sms"]
    assert told.due_at is None, "nobody comes after it"


def test_a_message_that_gave_way_and_arrives_all_the_same_calls_the_next_one_back() -> None:
    desk = two()
    told = later(begin(step(within_s=60), desk=desk), desk, 60, m1=IN_HAND)
    told = later(told, desk, 61, m1=SENT, m2=WAITING)
    assert states(told) == [S.SENT]
    assert Withdraw(UUID(int=2)) in told.effects


def test_a_message_that_gave_way_is_waited_for_when_the_last_one_has_failed() -> None:
    desk = two()
    told = later(begin(step(within_s=60), desk=desk), desk, 60, m1=IN_HAND)
    told = later(told, desk, 61, m1=IN_HAND, m2=DEAD)
    assert states(told) == [S.RUNNING]
    assert states(later(told, desk, 62, m1=SENT, m2=DEAD)) == [S.SENT]
    assert states(later(told, desk, 62, m1=Seen(N.EXPIRED), m2=DEAD)) == [S.FAILED]


def test_a_message_that_somebody_holds_at_this_moment_is_looked_at_again() -> None:
    desk = two()
    told = begin(step(within_s=60), desk=desk)
    told = later(told, desk, 60, m1=replace(IN_HAND, is_elsewhere=True))
    assert (told.effects, told.due_at) == ((), NOW + timedelta(seconds=61))


def test_without_another_target_a_slow_message_is_waited_for() -> None:
    desk = FakeDesk()
    told = begin(step(within_s=60), desk=desk)
    assert told.due_at is None
    assert later(told, desk, 100, m1=RETRYING).effects == ()


# ---- what never becomes a message ----


@pytest.mark.parametrize("code", ["NO_RECIPIENT", "UNKNOWN_CHANNEL", "RECIPIENT_RETIRED"])
def test_a_step_with_nobody_to_reach_is_one_dead_letter(code: str) -> None:
    told = begin(step(), desk=FakeDesk({1: Nobody(code)}))
    assert [type(effect) for effect in told.effects] == [GiveUp, Failed]
    assert (states(told), told.run.steps[0].error_code) == ([S.FAILED], code)


def test_a_step_whose_recipients_are_all_switched_off_is_passed_over() -> None:
    told = begin(step(1), step(2), desk=FakeDesk({1: Special.ALL_OFF}))
    assert states(told) == [S.SKIPPED, S.RUNNING]
    done = begin(step(1), desk=FakeDesk({1: Special.ALL_OFF}))
    assert (done.effects, done.run.status) == ((), ActionStatus.DONE)


def test_a_step_of_somebody_else_is_handed_over() -> None:
    told = begin(step(1, channel_type="device_downlink"), step(2), desk=FakeDesk({1: Special.ELSEWHERE}))
    assert isinstance(told.effects[0], HandOver)
    assert states(told) == [S.HANDED_OVER, S.RUNNING]


def test_what_cannot_be_decided_here_is_left_to_whoever_can() -> None:
    told = begin(step(1), desk=FakeDesk({1: Special.LATER}))
    assert (states(told), told.effects, told.due_at) == ([S.WAITING], (), NOW)
    told = begin(step(1), desk=FakeDesk(faults={"push": Special.LATER}))
    assert (states(told), told.effects, told.due_at) == ([S.RUNNING], (), NOW)
    assert sent_to(later(told, FakeDesk())) == ["push"]


def test_words_that_cannot_be_made_end_the_step_and_nothing_else() -> None:
    desk = FakeDesk({1: Found((PUSH, SMS)), 2: Found((EMAIL,))}, {"push": "TEMPLATE_RENDER_FAILED"})
    told = begin(step(1), step(2), desk=desk)
    assert (states(told), sent_to(told)) == ([S.FAILED, S.RUNNING], ["email"])
    assert [effect.error_code for effect in told.effects if isinstance(effect, GiveUp)] == ["TEMPLATE_RENDER_FAILED"]


def test_an_address_that_is_none_is_given_up_and_the_next_one_tried() -> None:
    desk = FakeDesk({1: Found((SMS, EMAIL))}, {"sms": "INVALID_ADDRESS"})
    told = begin(step(1, on_failure=OnFailure.STOP), desk=desk)
    assert [type(effect) for effect in told.effects] == [GiveUp, SendTo]
    told = later(told, desk, m1=SENT)
    assert isinstance(told.effects[0], Cover)


def test_the_only_address_being_none_is_one_dead_letter() -> None:
    told = begin(step(1), step(2), desk=FakeDesk({1: Found((SMS,))}, {"sms": "INVALID_ADDRESS"}))
    assert [type(effect) for effect in told.effects] == [GiveUp, Failed, SendTo]
    assert states(told) == [S.FAILED, S.RUNNING]


@pytest.mark.parametrize("fault", ["INVALID_ADDRESS", "TEMPLATE_RENDER_FAILED"])
def test_a_slow_message_does_not_give_way_to_one_that_cannot_be_made(fault: str) -> None:
    desk = FakeDesk({1: Found((PUSH, SMS))}, {"sms": fault})
    told = later(begin(step(within_s=60), desk=desk), desk, 60, m1=WAITING)
    assert ([type(effect) for effect in told.effects], states(told)) == ([GiveUp], [S.RUNNING])
    told = later(told, desk, 61, m1=SENT)
    assert ([type(effect) for effect in told.effects], states(told)) == ([Cover, Executed], [S.SENT])


def test_a_real_failure_weighs_more_than_a_wrong_address_after_it() -> None:
    desk = FakeDesk({1: Found((PUSH, SMS))}, {"sms": "INVALID_ADDRESS"})
    told = later(begin(step(1), step(2), desk=desk), desk, m1=DEAD)
    assert (states(told), told.run.steps[0].error_code) == ([S.FAILED, S.CANCELLED], "HTTP_500")


# ---- too late ----


def test_nothing_is_begun_that_has_lost_its_meaning() -> None:
    told = begin(step(1), expires_at=NOW)
    assert (states(told), sent_to(told), told.run.steps[0].error_code) == ([S.FAILED], [], "TOO_LATE")
    assert [type(effect) for effect in told.effects] == [Failed]


def test_a_message_that_came_too_late_is_not_followed_by_another_one() -> None:
    desk = two()
    told = begin(step(), desk=desk, expires_at=NOW + timedelta(seconds=5))
    told = later(told, desk, 5, m1=Seen(N.EXPIRED))
    assert (states(told), sent_to(told), told.run.steps[0].error_code) == ([S.FAILED], [], "TOO_LATE")


# ---- taken back, and tried again ----


def test_cancelling_calls_back_what_is_under_way() -> None:
    desk = FakeDesk()
    told = later(begin(step(1), step(2), step(3), desk=desk), desk, m1=SENT)
    run, withdrawals = cancel(told.run)
    assert [one.state for one in run.steps] == [S.SENT, S.CANCELLED, S.CANCELLED]
    assert (withdrawals, run.status) == ([Withdraw(UUID(int=2))], ActionStatus.CANCELLED)


def test_a_step_whose_message_is_tried_anew_runs_again_and_the_later_ones_follow() -> None:
    desk = FakeDesk()
    told = later(begin(step(1), step(2), desk=desk), desk, m1=DEAD)
    assert states(told) == [S.FAILED, S.CANCELLED]
    again = reopen(told.run, 1, [UUID(int=1)])
    assert again is not None
    assert [one.state for one in again.steps] == [S.RUNNING, S.WAITING]
    told = advance(again, desk, {UUID(int=1): SENT}, NOW)
    assert (states(told), sent_to(told)) == ([S.SENT, S.RUNNING], ["push"])


def test_a_step_that_never_became_a_message_begins_anew() -> None:
    told = begin(step(1), step(2), desk=FakeDesk(faults={"push": "UNKNOWN_TEMPLATE"}))
    again = reopen(told.run, 1, [])
    assert again is not None
    assert sent_to(advance(again, FakeDesk(), {}, NOW)) == ["push"]


def test_only_what_failed_can_be_tried_again() -> None:
    told = begin(step(1), step(2))
    assert reopen(told.run, 1, []) is None
    assert reopen(told.run, 3, []) is None
    desk = FakeDesk()
    failed = later(begin(step(1, on_failure=OnFailure.CONTINUE), step(2), desk=desk), desk, m1=DEAD)
    run, _ = cancel(failed.run)
    assert reopen(run, 1, []) is None


# ---- as it is kept ----


def test_a_run_is_read_as_it_was_written() -> None:
    desk = FakeDesk({1: Found((PUSH, replace(SMS, channel_id=4), replace(EMAIL, address_kind="FID", locale="en")))})
    told = begin(step(1, fallback=("sms", "email"), within_s=60, template_key="a.b"), step(2), desk=desk)
    told = later(told, desk, 60, m1=IN_HAND)
    assert decode(encode(told.run.steps)) == told.run.steps
    assert "+90" not in repr(told.run)
