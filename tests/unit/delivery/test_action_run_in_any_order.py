"""Runs with random results in random order: every step ends, and no target gets a message twice."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.delivery.actions.run import HELD_S, advance, cancel, reopen, stops_the_plan
from app.delivery.actions.states import UNENDED, ActionStatus, StepState
from app.delivery.actions.step_codec import decode, encode
from app.delivery.actions.steps import (
    Cover,
    Draft,
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
from app.delivery.messages.states import FINAL, LIVE
from app.delivery.messages.states import NOTIFICATION_TRANSITIONS as TRANSITIONS
from app.delivery.messages.values import NotificationStatus
from app.delivery.plans.models import OnFailure
from app.delivery.words.rendering import Words
from tests.support.depth import size

N = NotificationStatus
START = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)
ROUNDS = 200

TYPES = ["push", "sms", "email", "webhook"]
FOUND = st.integers(1, 4).map(lambda count: Found(tuple(Target(type_, f"to-{type_}") for type_ in TYPES[:count])))
RESOLUTIONS = st.one_of(
    FOUND,
    FOUND,
    FOUND,
    st.sampled_from(
        [TargetFault("NO_RECIPIENT"), TargetFault("UNKNOWN_CHANNEL"), Unresolved.ALL_OFF, Unresolved.ELSEWHERE]
    ),
)
STEPS_OF_PLANS = st.builds(
    lambda on_failure, within_s, twice: StepRun(
        0, "push", on_failure=on_failure, within_s=within_s, may_arrive_twice=twice
    ),
    st.sampled_from(OnFailure),
    st.sampled_from([None, 30, 60]),
    st.booleans(),
)
FAULTS = st.dictionaries(
    st.tuples(st.integers(1, 4), st.sampled_from(["push", "sms", "email"])),
    st.sampled_from(["INVALID_ADDRESS", "INVALID_ADDRESS", "TEMPLATE_RENDER_FAILED"]),
    max_size=3,
)
Which = st.integers(0, 10**6)


@dataclass
class FakeContext:
    answers: Mapping[int, Resolution]
    faults: Mapping[tuple[int, str], str]
    knows_settings: bool = True
    made: int = 0
    asked: list[int] = field(default_factory=list[int])

    def resolve(self, step: StepRun) -> Resolution:
        return self.answers[step.order] if self.knows_settings else Unresolved.NEEDS_SETTINGS

    def draft(self, step: StepRun, target: Target) -> Draft | TargetFault | Unresolved:
        if not self.knows_settings:
            return Unresolved.NEEDS_SETTINGS
        fault = self.faults.get((step.order, target.channel_type))
        return Draft(target.recipient, Words("", "")) if fault is None else TargetFault(fault)

    def new_id(self) -> UUID:
        self.made += 1
        return UUID(int=self.made)


class RunMachine(RuleBasedStateMachine):
    @initialize(
        plan=st.lists(st.tuples(STEPS_OF_PLANS, RESOLUTIONS), min_size=1, max_size=4),
        faults=FAULTS,
        lives_s=st.sampled_from([None, None, 100]),
    )
    def begin_plan(
        self, plan: list[tuple[StepRun, Resolution]], faults: dict[tuple[int, str], str], lives_s: int | None
    ) -> None:
        steps = tuple(replace(step, order=order) for order, (step, _) in enumerate(plan, 1))
        expires_at = None if lives_s is None else START + timedelta(seconds=lives_s)
        self.run = Run(steps, expires_at)
        self.context = FakeContext({order: answer for order, (_, answer) in enumerate(plan, 1)}, faults)
        self.now = START
        self.due_at: datetime | None = START
        self.messages: dict[UUID, NotificationState] = {}
        self.step_of: dict[UUID, int] = {}
        self.recipients: Counter[tuple[int, str]] = Counter()
        self.dead_letters: Counter[int] = Counter()
        self.withdrawn: set[UUID] = set()
        self.reopened = False

    # ---- the engine ----

    @rule(knows=st.sampled_from([True, True, False]))
    def conductor_advances(self, knows: bool) -> None:
        self.context.knows_settings = knows
        before = self.run
        decision = advance(self.run, self.context, self.messages, self.now)
        self.context.knows_settings = True
        for effect in decision.effects:
            match effect:
                case Send(step, target):
                    self._sent(before, step, target)
                case Withdraw(id_):
                    self._withdrawn(id_)
                case GiveUp(step):
                    self.dead_letters[step.order] += 1
                case Cover(step):
                    assert step.state is StepState.SENT
                case HandOver(step):
                    assert self.context.answers[step.order] is Unresolved.ELSEWHERE
                case _:
                    pass
        assert decode(encode(decision.run.steps)) == decision.run.steps
        self.run, self.due_at = decision.run, decision.due_at

    def _sent(self, before: Run, step: StepRun, target: Target) -> None:
        assert target.notification_id is not None
        assert not before.is_over(self.now), "nothing is sent after the expiry"
        others = [self.messages[id_] for id_, order in self.step_of.items() if order == step.order]
        if not self.reopened:
            assert step.may_arrive_twice or not any(seen.may_have_arrived for seen in others), (
                "no next target while a message may have arrived"
            )
            assert not any(seen.status is N.SENT for seen in others)
            live = {id_ for id_ in self._live() if self.step_of[id_] == step.order}
            assert live <= self.withdrawn, "a message is withdrawn before the next is sent"
            self.recipients[step.order, target.recipient] += 1
            assert self.recipients[step.order, target.recipient] == 1, "nothing is sent twice to the same target"
            earlier = [one for one in before.steps if one.order < step.order and one.state is StepState.FAILED]
            assert not any(stops_the_plan(one, one.error_code or "") for one in earlier)
        self.messages[target.notification_id] = NotificationState(N.ACCEPTED)
        self.step_of[target.notification_id] = step.order

    def _withdrawn(self, id_: UUID) -> None:
        seen = self.messages[id_]
        if seen.status in (N.ACCEPTED, N.RETRYING):
            self.messages[id_] = replace(seen, status=N.CANCELLED)
        self.withdrawn.add(id_)

    # ---- the world outside ----

    @precondition(lambda self: self._live())
    @rule(which=Which, to=st.sampled_from(N), unknown=st.booleans(), elsewhere=st.booleans(), held=st.booleans())
    def notification_changes(
        self, which: int, to: NotificationStatus, unknown: bool, elsewhere: bool, held: bool
    ) -> None:
        """A worker may have made several transitions since the last `advance`."""
        live = self._live()
        id_ = live[which % len(live)]
        seen = self.messages[id_]
        status = to if to in TRANSITIONS[seen.status] | TRANSITIONS[N.SENDING] else seen.status
        lost = seen.may_have_arrived or (unknown and status in (N.RETRYING, N.DEAD))
        code = "HTTP_500" if status is N.DEAD else "BREAKER_OPEN" if held else None
        self.messages[id_] = NotificationState(status, lost, code, is_locked_elsewhere=elsewhere and status in LIVE)
        if status in FINAL:
            self.due_at = self.now

    @rule(seconds=st.sampled_from([1, 29, 31, 61]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(really=st.integers(0, 19).map(lambda chance: chance == 19))
    def a_user_cancels(self, really: bool) -> None:
        if self.run.status is not ActionStatus.RUNNING or not really:
            return
        decision = cancel(self.run)
        self.run = decision.run
        for effect in decision.effects:
            assert isinstance(effect, Withdraw)
            self._withdrawn(effect.notification_id)
        self.due_at = None

    @precondition(lambda self: self.run.status is ActionStatus.FAILED)
    @rule(order=st.integers(1, 4), by_dead_letter=st.booleans())
    def an_operator_reopens_a_step(self, order: int, by_dead_letter: bool) -> None:
        step = next((one for one in self.run.steps if one.order == order), None)
        if step is None or step.state is not StepState.FAILED:
            assert reopen(self.run, order, [], self.now) is None
            return
        dead = [id_ for id_ in step.notification_ids if self.messages[id_].status is N.DEAD]
        again = dead[:1] if by_dead_letter else []
        decision = reopen(self.run, order, again, self.now)
        if decision is None:
            assert self.run.status is ActionStatus.CANCELLED
            return
        for id_ in again:
            self.messages[id_] = NotificationState(N.ACCEPTED)
        self.run, self.due_at, self.reopened = decision.run, decision.due_at, True

    def _live(self) -> list[UUID]:
        return [id_ for id_, seen in self.messages.items() if seen.is_live]

    # ---- invariants ----

    @invariant()
    def steps_begin_in_order(self) -> None:
        if not hasattr(self, "run") or self.reopened:
            return
        steps = self.run.steps
        if self.run.status is ActionStatus.RUNNING:
            first = next((index for index, step in enumerate(steps) if self._holds_up(step)), len(steps))
            assert all(step.state is StepState.WAITING for step in steps[first + 1 :])
        else:
            assert not any(step.state in UNENDED for step in steps), "an ended run has only ended steps"

    def _holds_up(self, step: StepRun) -> bool:
        """A step that goes on after a failure holds up the later ones for its time limit only."""
        if step.state is not StepState.RUNNING or step.on_failure is OnFailure.STOP or step.asked_at is None:
            return step.state in UNENDED
        return self.now < step.asked_at + timedelta(seconds=step.within_s or HELD_S)

    @invariant()
    def running_plan_waits_for_a_notification_or_a_time(self) -> None:
        if not hasattr(self, "run") or self.run.status is not ActionStatus.RUNNING or self.due_at is not None:
            return
        step = next(step for step in self.run.steps if step.state in UNENDED)
        assert any(self.messages[id_].is_live for id_ in step.notification_ids), "the run would never be advanced again"

    def teardown(self) -> None:
        """Every step ends once all its notifications have ended."""
        if not hasattr(self, "run"):
            return
        for _ in range(ROUNDS):
            if self.run.status is not ActionStatus.RUNNING:
                break
            for id_ in self._live():
                self.messages[id_] = replace(self.messages[id_], status=N.DEAD, error_code="HTTP_500")
            self.now += timedelta(seconds=1)
            self.conductor_advances(True)
        assert self.run.status is not ActionStatus.RUNNING
        assert not any(step.state in UNENDED for step in self.run.steps)
        failed = any(step.state is StepState.FAILED for step in self.run.steps)
        assert failed is (self.run.status is ActionStatus.FAILED) or self.run.status is ActionStatus.CANCELLED


TestRun = RunMachine.TestCase
TestRun.settings = settings(max_examples=size(suite=100, deep=2000), stateful_step_count=40)
