"""Decides the next transition of an action. Pure: the decision depends only on the arguments.

Steps run in their order, one at a time. Within a step, targets are tried in their order. After a notification that may
have arrived, no other target is tried, so that a lost answer does not make a person get the same message twice.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from app.delivery.actions.error_codes import BAD_INPUT
from app.delivery.actions.states import ACTION_TRANSITIONS, UNENDED, ActionStatus, StepState
from app.delivery.actions.step_advance import advance_step
from app.delivery.actions.steps import Context, Effect, NotificationState, Run, StepRun, Withdraw
from app.delivery.plans.models import OnFailure
from app.foundation.state_machine import check_transition


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
    effects: list[Effect] = []
    while run.status is ActionStatus.RUNNING:
        step = next((step for step in run.steps if step.state in UNENDED), None)
        if step is None:
            run = _moved(run, _final_status(run))
            break
        advanced = advance_step(step, context, notifications, now, is_over=run.is_over(now))
        effects += advanced.effects
        run = _with_step(run, advanced.step)
        if advanced.step.state in UNENDED:
            return Decision(run, tuple(effects), advanced.due_at)
        if advanced.step.state is StepState.FAILED and stops_the_plan(advanced.step, advanced.step.error_code or ""):
            run = _cancel_after(run, advanced.step)
    return Decision(run, tuple(effects))


def stops_the_plan(step: StepRun, error_code: str) -> bool:
    return step.on_failure is OnFailure.STOP and error_code not in BAD_INPUT


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
    return replace(run, status=status, steps=run.steps if steps is None else steps)


def _with_step(run: Run, changed: StepRun) -> Run:
    return replace(run, steps=tuple(changed if step.order == changed.order else step for step in run.steps))


def _cancel_after(run: Run, failed: StepRun) -> Run:
    """Cancels the later steps that have not begun. A later step may be running already, because an operator redrove an
    earlier one; it goes on."""
    steps = [
        step.moved_to(StepState.CANCELLED) if step.order > failed.order and step.state is StepState.WAITING else step
        for step in run.steps
    ]
    return replace(run, steps=tuple(steps))
