"""One run of one plan, as a state machine. It looks at what is known and at the clock it is given, and opens nothing.

Steps run in their order, one at a time; within a step its targets are tried in theirs. A message that may have arrived
is never followed by another one to somebody else: nobody is told twice because an answer got lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from app.delivery.actions.models import ActionStatus
from app.delivery.actions.steps import (
    GONE,
    UNENDED,
    Cover,
    Desk,
    Effect,
    Executed,
    Failed,
    Found,
    GiveUp,
    HandOver,
    Nobody,
    Run,
    Seen,
    SendTo,
    Special,
    StepRun,
    StepState,
    Target,
    Withdraw,
)
from app.delivery.messages.values import NotificationStatus
from app.delivery.plans.models import OnFailure

LOOK_AGAIN_S = 1.0
"""After this, where a message that should give way to the next one is in a worker's hands at this very moment."""

TOO_LATE = "TOO_LATE"
NO_RECIPIENT = "NO_RECIPIENT"
INVALID_ADDRESS = "INVALID_ADDRESS"
# What was asked for was wrong, and would be wrong however often it is tried: it says nothing about the steps after it.
# Some providers have words of their own for it.
BAD_INPUT = frozenset(
    {
        INVALID_ADDRESS,
        "EMPTY_MESSAGE",
        "INVALID_SUBJECT",
        "INVALID_TEMPLATE",
        "INVALID_TOKEN",
        "NO_CHANNEL",
        "PAYLOAD_TOO_LARGE",
        "PRIVATE_ADDRESS",
        "RECIPIENT_RETIRED",
        "TEMPLATE_RENDER_FAILED",
        "TWILIO_21211",
        "UNKNOWN_CHANNEL",
        "UNKNOWN_TEMPLATE",
        "WHATSAPP_132000",
        "WHATSAPP_132001",
    }
)


@dataclass(frozen=True)
class Advanced:
    run: Run
    effects: tuple[Effect, ...] = ()
    due_at: datetime | None = None
    """When to look again although no message of it has ended."""


def stops_the_plan(step: StepRun, error_code: str) -> bool:
    return step.on_failure is OnFailure.STOP and error_code not in BAD_INPUT


def advance(run: Run, desk: Desk, seen: Mapping[UUID, Seen], now: datetime) -> Advanced:
    """Takes the run as far as it can go now. Harmless to repeat: what has been asked is not asked again."""
    effects: list[Effect] = []
    while run.status is ActionStatus.RUNNING:
        step = next((step for step in run.steps if step.state in UNENDED), None)
        if step is None:
            return Advanced(replace(run, status=_outcome(run)), tuple(effects))
        moved = _Step(run, step, desk, seen, now, effects).advance()
        run = _with(run, moved.step)
        if moved.step.state in UNENDED:
            return Advanced(run, tuple(effects), moved.due_at)
        if moved.step.state is StepState.FAILED and stops_the_plan(moved.step, moved.step.error_code or ""):
            run = _stop_after(run, moved.step)
    return Advanced(run, tuple(effects))


def cancel(run: Run) -> tuple[Run, list[Withdraw]]:
    steps = [replace(step, state=StepState.CANCELLED) if step.state in UNENDED else step for step in run.steps]
    withdrawals = [Withdraw(id_) for id_ in run.messages]
    return replace(run, steps=tuple(steps), status=ActionStatus.CANCELLED), withdrawals


def reopen(run: Run, step_order: int, live: Sequence[UUID]) -> Run | None:
    """A step that failed runs again, and so does what was cancelled because of it; None where there is no such step.

    It waits for those of its messages that are live again. Where none is, it begins anew, with the recipients and the
    words as they are by then.
    """
    failed = next((step for step in run.steps if step.order == step_order), None)
    if failed is None or failed.state is not StepState.FAILED or run.status is ActionStatus.CANCELLED:
        return None
    if set(live) & set(failed.messages):
        again = replace(failed, state=StepState.RUNNING, error_code=None)
    else:
        again = replace(failed, state=StepState.WAITING, targets=(), tried=0, asked_at=None, error_code=None)
    later = [
        replace(step, state=StepState.WAITING) if step.state is StepState.CANCELLED else step for step in run.steps
    ]
    return _with(replace(run, steps=tuple(later), status=ActionStatus.RUNNING), again)


def _outcome(run: Run) -> ActionStatus:
    failed = any(step.state is StepState.FAILED for step in run.steps)
    return ActionStatus.FAILED if failed else ActionStatus.DONE


def _with(run: Run, changed: StepRun) -> Run:
    return replace(run, steps=tuple(changed if step.order == changed.order else step for step in run.steps))


def _stop_after(run: Run, failed: StepRun) -> Run:
    """What runs already, because an operator had an earlier step tried again, is let be."""
    steps = [
        replace(step, state=StepState.CANCELLED)
        if step.order > failed.order and step.state is StepState.WAITING
        else step
        for step in run.steps
    ]
    return replace(run, steps=tuple(steps))


@dataclass(frozen=True)
class _Moved:
    step: StepRun
    due_at: datetime | None = None


@dataclass
class _Step:
    """The step a run has come to, with everything its next move depends on."""

    run: Run
    step: StepRun
    desk: Desk
    seen: Mapping[UUID, Seen]
    now: datetime
    effects: list[Effect]

    def advance(self) -> _Moved:
        return self._begin() if self.step.state is StepState.WAITING else self._look()

    def _begin(self) -> _Moved:
        if self.run.is_over(self.now):
            return self._fail(TOO_LATE)
        match self.desk.resolve(self.step):
            case Special.LATER:
                return _Moved(self.step, self.now)
            case Special.ALL_OFF:
                return _Moved(replace(self.step, state=StepState.SKIPPED))
            case Special.ELSEWHERE:
                self.effects.append(HandOver(self.step))
                return _Moved(replace(self.step, state=StepState.HANDED_OVER))
            case Nobody(error_code):
                return self._give_up(self.step.channel_type, error_code)
            case Found(targets):
                self.step = replace(self.step, state=StepState.RUNNING, targets=targets)
                return self._send_next()

    def _look(self) -> _Moved:
        asked = [(target, self.seen.get(id_, GONE)) for target, id_ in self._asked()]
        arrived = next(((target, seen) for target, seen in asked if seen.status is NotificationStatus.SENT), None)
        if arrived is not None:
            return self._arrive(*arrived, [target for target, seen in asked if seen.is_live])
        if not asked:
            return self._send_next()
        live = [(target, seen) for target, seen in asked if seen.is_live]
        may_escalate = (
            self.step.has_next
            and not any(seen.may_have_arrived for _, seen in asked)
            and not self.run.is_over(self.now)
        )
        waits = [(target, seen) for target, seen in live if not target.withdrawn]
        if may_escalate and not waits:
            return self._send_next()
        if may_escalate and self.step.within_s is not None:
            return self._hurry(waits)
        return _Moved(self.step) if live else self._fail_with([seen for _, seen in asked])

    def _asked(self) -> list[tuple[Target, UUID]]:
        return [(target, target.notification_id) for target in self.step.targets if target.notification_id is not None]

    def _hurry(self, waits: list[tuple[Target, Seen]]) -> _Moved:
        """The next target has its turn once the message has had its time."""
        assert self.step.within_s is not None and self.step.asked_at is not None, "a message was asked for"
        at = self.step.asked_at + timedelta(seconds=self.step.within_s)
        if self.now < at:
            return _Moved(self.step, at)
        if any(seen.is_elsewhere for _, seen in waits):
            return _Moved(self.step, self.now + timedelta(seconds=LOOK_AGAIN_S))
        return self._send_next([target for target, _ in waits])

    def _withdraw(self, meant: Sequence[Target]) -> None:
        ids = {target.notification_id for target in meant if target.notification_id is not None}
        if not ids:
            return
        self.effects += [Withdraw(id_) for id_ in sorted(ids)]
        targets = [replace(one, withdrawn=True) if one.notification_id in ids else one for one in self.step.targets]
        self.step = replace(self.step, targets=tuple(targets))

    def _send_next(self, give_way: Sequence[Target] = ()) -> _Moved:
        """What is to give way does so only where somebody comes after it."""
        while self.step.has_next:
            target = self.step.targets[self.step.tried]
            fault = self.desk.fault(self.step, target)
            if fault is None:
                self._withdraw(give_way)
                return self._send(target)
            if fault == Special.LATER:
                return _Moved(self.step, self.now)
            # The words are the same for all targets.
            tried = self.step.tried + 1 if fault == INVALID_ADDRESS else len(self.step.targets)
            self.step = replace(self.step, tried=tried, error_code=fault)
            self.effects.append(GiveUp(self.step, target.channel_type, fault))
        asked = [self.seen.get(id_, GONE) for id_ in self.step.messages]
        if any(seen.is_live for seen in asked):
            return _Moved(self.step)
        return self._fail_with(asked) if asked else self._fail(self.step.error_code or NO_RECIPIENT)

    def _send(self, target: Target) -> _Moved:
        sent = replace(target, notification_id=self.desk.new_id())
        targets = [*self.step.targets]
        targets[self.step.tried] = sent
        self.step = replace(self.step, targets=tuple(targets), tried=self.step.tried + 1, asked_at=self.now)
        self.effects.append(SendTo(self.step, sent))
        hurries = self.step.within_s is not None and self.step.has_next
        return _Moved(self.step, self.now + timedelta(seconds=self.step.within_s or 0) if hurries else None)

    def _arrive(self, target: Target, seen: Seen, live: Sequence[Target]) -> _Moved:
        self._withdraw(live)
        self.step = replace(self.step, state=StepState.SENT, error_code=None)
        if self.step.tried > 1:
            self.effects.append(Cover(self.step))
        self.effects.append(Executed(self.step, target, seen.provider_message_id))
        return _Moved(self.step)

    def _give_up(self, channel_type: str, error_code: str) -> _Moved:
        self.effects.append(GiveUp(self.step, channel_type, error_code))
        return self._fail(error_code)

    def _fail_with(self, asked: Sequence[Seen]) -> _Moved:
        """The reason is that of the message that may have arrived, or else that of the last one."""
        told = next((seen for seen in asked if seen.may_have_arrived), asked[-1])
        too_late = told.status is NotificationStatus.EXPIRED
        return self._fail(told.error_code or (TOO_LATE if too_late else told.status.value), told)

    def _fail(self, error_code: str, seen: Seen | None = None) -> _Moved:
        self.step = replace(self.step, state=StepState.FAILED, error_code=error_code)
        self.effects.append(Failed(self.step, error_code, seen))
        return _Moved(self.step)
