"""Decides the next transition of an action. Pure: the decision depends only on the arguments.

Steps begin in their order, each after the end of the one before. A step that goes on after a failure (CONTINUE) holds
up the later ones only for its time limit: then they begin although its message still waits, for example for a provider
whose breaker is open. Within a step, targets are tried in their order. After a notification that may have arrived,
another target is tried only if the step says that the person may get the message twice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from app.delivery.actions.error_codes import BAD_INPUT, INVALID_ADDRESS, NO_RECIPIENT, TOO_LATE
from app.delivery.actions.states import ACTION_TRANSITIONS, UNENDED, ActionStatus, StepState
from app.delivery.actions.steps import (
    MISSING,
    Context,
    Cover,
    Draft,
    Effect,
    Executed,
    Failed,
    Found,
    GiveUp,
    HandOver,
    NotificationState,
    Run,
    Send,
    StepRun,
    Target,
    TargetFault,
    Unresolved,
    Withdraw,
)
from app.delivery.messages.values import NotificationStatus
from app.delivery.plans.models import OnFailure
from app.foundation.copies import changed
from app.foundation.state_machine import check_transition

LOOK_AGAIN_S = 1.0
"""The pause before the next try to withdraw a notification whose row another transaction has locked."""
HELD_S = 60.0
"""The time limit of a step without one of its own. It counts only for a message that an open breaker holds back: any
other one arrives or fails by itself."""
LOOK_AT_HELD_S = 15.0
"""The pause before the next look whether a breaker holds the message of such a step back."""


@dataclass(frozen=True)
class Decision:
    """The run after a transition, and the effects that are written with it."""

    run: Run
    effects: tuple[Effect, ...] = ()
    due_at: datetime | None = None
    """When a conductor has to advance the action again, even if none of its notifications has ended."""


def advance(run: Run, context: Context, notifications: Mapping[UUID, NotificationState], now: datetime) -> Decision:
    """Advances the run as far as possible now. Repeating it is safe: a target that has a notification gets no second
    one."""
    if run.status is not ActionStatus.RUNNING:
        return Decision(run)
    effects: list[Effect] = []
    due: list[datetime] = []
    is_held_up = False
    for place in range(len(run.steps)):
        step, later = run.steps[place], run.steps[place + 1 :]
        if step.state not in UNENDED or (is_held_up and step.state is StepState.WAITING):
            continue
        has_later = any(one.state is StepState.WAITING for one in later)
        advanced = _StepAdvance(step, context, notifications, now, run.is_over(now), has_later)
        advanced.advance()
        step = advanced.step
        effects += advanced.effects
        due += [advanced.due_at] if advanced.due_at is not None else []
        run = _with_step(run, step)
        is_held_up = is_held_up or (step.state in UNENDED and not advanced.lets_later_begin)
        if step.state is StepState.FAILED and advanced.stops_the_plan:
            run = _cancel_after(run, step)
    if not any(step.state in UNENDED for step in run.steps):
        run = _moved(run, _final_status(run))
    return Decision(run, tuple(effects), min(due, default=None))


def stops_the_plan(step: StepRun, error_code: str, *, recipient_is_gone: bool = False) -> bool:
    return step.on_failure is OnFailure.STOP and not recipient_is_gone and error_code not in BAD_INPUT


def cancel(run: Run) -> Decision:
    """Cancels the steps that have not ended, and withdraws their notifications."""
    steps = tuple(step.moved_to(StepState.CANCELLED) if step.state in UNENDED else step for step in run.steps)
    withdrawals = tuple(Withdraw(id_) for id_ in run.awaited_ids)
    return Decision(_moved(run, ActionStatus.CANCELLED, steps), withdrawals)


def skip(run: Run) -> Decision:
    """Skips all steps, because the plan is switched off."""
    return Decision(_moved(run, ActionStatus.DONE, tuple(step.moved_to(StepState.SKIPPED) for step in run.steps)))


def reopen(run: Run, step_order: int, live: Collection[UUID], now: datetime) -> Decision | None:
    """Runs a failed step again, and then the steps that its failure cancelled; None if the step has not failed.

    The step waits for its notifications that are live again. If none is, the step begins anew, with the recipients and
    templates of the time when it runs.
    """
    failed = next((step for step in run.steps if step.order == step_order), None)
    if failed is None or failed.state is not StepState.FAILED or run.status is ActionStatus.CANCELLED:
        return None
    if set(live) & set(failed.notification_ids):
        again = failed.moved_to(StepState.RUNNING, error_code=None)
    else:
        again = failed.moved_to(StepState.WAITING, targets=(), tried=0, asked_at=None, error_code=None)
    later = tuple(step.moved_to(StepState.WAITING) if step.state is StepState.CANCELLED else step for step in run.steps)
    return Decision(_with_step(_moved(run, ActionStatus.RUNNING, later), again), due_at=now)


def _final_status(run: Run) -> ActionStatus:
    has_failed = any(step.state is StepState.FAILED for step in run.steps)
    return ActionStatus.FAILED if has_failed else ActionStatus.DONE


def _moved(run: Run, status: ActionStatus, steps: tuple[StepRun, ...] | None = None) -> Run:
    check_transition(ACTION_TRANSITIONS, run.status, status)
    return changed(run, status=status, steps=run.steps if steps is None else steps)


def _with_step(run: Run, new: StepRun) -> Run:
    return changed(run, steps=tuple(new if step.order == new.order else step for step in run.steps))


def _cancel_after(run: Run, failed: StepRun) -> Run:
    """Cancels the later steps that have not begun. A later step may be running already, because an earlier one has had
    its time, or because an operator redrove an earlier one; it goes on."""
    steps = [
        step.moved_to(StepState.CANCELLED) if step.order > failed.order and step.state is StepState.WAITING else step
        for step in run.steps
    ]
    return changed(run, steps=tuple(steps))


@dataclass
class _StepAdvance:
    """One transition of a step: the next target, the notifications that are withdrawn, or the step's end."""

    step: StepRun
    context: Context
    notifications: Mapping[UUID, NotificationState]
    now: datetime
    is_over: bool
    """The action has expired, so nothing new is sent."""
    has_later: bool
    """A later step has not begun."""
    effects: list[Effect] = field(default_factory=list[Effect])
    due_at: datetime | None = None
    stops_the_plan: bool = False
    lets_later_begin: bool = False

    def advance(self) -> None:
        if self.step.state is not StepState.WAITING:
            self._go_on()
        elif self.is_over:
            self._fail(TOO_LATE)
        else:
            self._begin()
        holds_up = self.has_later and self.step.on_failure is OnFailure.CONTINUE
        if holds_up and self.step.state is StepState.RUNNING and self.due_at is None:
            self.lets_later_begin = self._has_had_its_time([state for _, state in self._asked() if state.is_live])

    def _begin(self) -> None:
        match self.context.resolve(self.step):
            case Found(targets):
                self.step = self.step.moved_to(StepState.RUNNING, targets=targets)
                self._send_next()
            case TargetFault(error_code):
                self.effects.append(GiveUp(self.step, self.step.channel_type, error_code))
                self._fail(error_code)
            case Unresolved.ALL_OFF:
                self.step = self.step.moved_to(StepState.SKIPPED)
            case Unresolved.ELSEWHERE:
                self.effects.append(HandOver(self.step))
                self.step = self.step.moved_to(StepState.HANDED_OVER)
            case Unresolved.NEEDS_SETTINGS:
                self.due_at = self.now

    def _go_on(self) -> None:
        asked = self._asked()
        arrived = next((pair for pair in asked if pair[1].status is NotificationStatus.SENT), None)
        live = [(target, state) for target, state in asked if state.is_live]
        if arrived is not None:
            self._arrive(*arrived, [target for target, _ in live])
        elif not asked:
            self._send_next()
        elif self._may_escalate(asked):
            self._escalate([(target, state) for target, state in live if not target.withdrawn])
        elif not live:
            self._fail_after([state for _, state in asked])

    def _asked(self) -> list[tuple[Target, NotificationState]]:
        """The targets that have a notification, each with the state of its notification."""
        return [
            (target, self.notifications.get(target.notification_id, MISSING))
            for target in self.step.targets
            if target.notification_id is not None
        ]

    def _may_escalate(self, asked: Sequence[tuple[Target, NotificationState]]) -> bool:
        return self.step.has_next and not self.is_over and not any(self._rules_out_another(state) for _, state in asked)

    def _rules_out_another(self, state: NotificationState) -> bool:
        return state.has_arrived or (state.may_have_arrived and not self.step.may_arrive_twice)

    def _escalate(self, awaited: Sequence[tuple[Target, NotificationState]]) -> None:
        """Goes to the next target: at once if no notification is awaited, or else when its time is over."""
        if not awaited:
            self._send_next()
        elif self._has_had_its_time([state for _, state in awaited]):
            if any(state.is_locked_elsewhere for _, state in awaited):
                self.due_at = self.now + timedelta(seconds=LOOK_AGAIN_S)
            else:
                self._send_next([target for target, _ in awaited])

    def _has_had_its_time(self, awaited: Sequence[NotificationState]) -> bool:
        """True if nothing has to wait for the awaited notifications any longer. Otherwise says when to look again."""
        assert self.step.asked_at is not None, "the step has written a notification"
        at = self._time_limit(self.step.asked_at)
        if self.now < at:
            self.due_at = at
        elif self.step.within_s is None and not any(state.is_held_back for state in awaited):
            self.due_at = self.now + timedelta(seconds=LOOK_AT_HELD_S)
        else:
            return True
        return False

    def _time_limit(self, asked_at: datetime) -> datetime:
        return asked_at + timedelta(seconds=HELD_S if self.step.within_s is None else self.step.within_s)

    def _send_next(self, replaced: Sequence[Target] = ()) -> None:
        """Sends to the next target that can get a notification. Only then the notifications to the `replaced` targets
        are withdrawn."""
        while self.step.has_next:
            target = self.step.targets[self.step.tried]
            match self.context.draft(self.step, target):
                case Draft() as draft:
                    self._withdraw(replaced)
                    self._send(target, draft)
                    return
                case TargetFault(error_code):
                    self._pass_over(target, error_code)
                case Unresolved():
                    self.due_at = self.now
                    return
        states = [state for _, state in self._asked()]
        if not states:
            self._fail(self.step.error_code or NO_RECIPIENT)
        elif not any(state.is_live for state in states):
            self._fail_after(states)

    def _pass_over(self, target: Target, error_code: str) -> None:
        """An invalid address concerns only this target. Any other fault is one of the template, which all targets
        share, so no target is left to try."""
        tried = self.step.tried + 1 if error_code == INVALID_ADDRESS else len(self.step.targets)
        self.step = changed(self.step, tried=tried, error_code=error_code)
        self.effects.append(GiveUp(self.step, target.channel_type, error_code))

    def _send(self, target: Target, draft: Draft) -> None:
        sent = changed(target, notification_id=self.context.new_id())
        before, after = self.step.targets[: self.step.tried], self.step.targets[self.step.tried + 1 :]
        targets = (*before, sent, *after)
        self.step = changed(self.step, targets=targets, tried=self.step.tried + 1, asked_at=self.now)
        self.effects.append(Send(self.step, sent, draft))
        if self.step.has_next:
            self.due_at = self._time_limit(self.now)

    def _withdraw(self, targets: Sequence[Target]) -> None:
        ids = {target.notification_id for target in targets if target.notification_id is not None}
        if not ids:
            return
        self.effects += [Withdraw(id_) for id_ in sorted(ids)]
        all_targets = tuple(
            changed(target, withdrawn=True) if target.notification_id in ids else target for target in self.step.targets
        )
        self.step = changed(self.step, targets=all_targets)

    def _arrive(self, target: Target, state: NotificationState, live: Sequence[Target]) -> None:
        self._withdraw(live)
        self.step = self.step.moved_to(StepState.SENT, error_code=None)
        if self.step.tried > 1:
            self.effects.append(Cover(self.step))
        self.effects.append(Executed(self.step, target, state.provider_message_id))

    def _fail_after(self, states: Sequence[NotificationState]) -> None:
        """Fails with the reason of a notification that may have arrived, or else of the last failure of delivery, or
        else of the last notification."""
        in_doubt = [state for state in states if state.has_arrived or state.may_have_arrived]
        reason = (in_doubt or [state for state in reversed(states) if _is_failure_of_delivery(state)] or states[-1:])[0]
        is_late = reason.status is NotificationStatus.EXPIRED
        self._fail(reason.error_code or (TOO_LATE if is_late else reason.status.value), reason)

    def _fail(self, error_code: str, notification: NotificationState | None = None) -> None:
        self.step = self.step.moved_to(StepState.FAILED, error_code=error_code)
        is_gone = notification is not None and notification.recipient_is_gone
        self.stops_the_plan = stops_the_plan(self.step, error_code, recipient_is_gone=is_gone)
        self.effects.append(Failed(self.step, error_code, notification))


def _is_failure_of_delivery(state: NotificationState) -> bool:
    is_bad_input = state.recipient_is_gone or state.error_code in BAD_INPUT
    return state.status is NotificationStatus.DEAD and not is_bad_input
