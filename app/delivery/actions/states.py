"""The state machines of an action and of a step in it. Pure."""

from enum import StrEnum

from app.foundation.state_machine import TransitionTable


class ActionStatus(StrEnum):
    RUNNING = "RUNNING"
    DONE = "DONE"
    """Every step ended, and none failed."""
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


# An action may begin in its last status, because its steps may end in the transaction that requests it. FAILED to
# RUNNING: an operator redrives a dead letter of the action.
ACTION_TRANSITIONS: TransitionTable[ActionStatus] = {
    None: frozenset({ActionStatus.RUNNING, ActionStatus.DONE, ActionStatus.FAILED}),
    ActionStatus.RUNNING: frozenset({ActionStatus.DONE, ActionStatus.FAILED, ActionStatus.CANCELLED}),
    ActionStatus.DONE: frozenset(),
    ActionStatus.FAILED: frozenset({ActionStatus.RUNNING}),
    ActionStatus.CANCELLED: frozenset(),
}


class StepState(StrEnum):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    SENT = "SENT"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    """All recipients of the step are switched off, or the plan is."""
    HANDED_OVER = "HANDED_OVER"
    CANCELLED = "CANCELLED"


UNENDED = frozenset({StepState.WAITING, StepState.RUNNING})

# FAILED to RUNNING or WAITING: an operator redrives a dead letter of the step. CANCELLED to WAITING: an operator
# redrives a dead letter of the step whose failure cancelled this one.
STEP_TRANSITIONS: TransitionTable[StepState] = {
    None: frozenset({StepState.WAITING}),
    StepState.WAITING: frozenset(
        {StepState.RUNNING, StepState.FAILED, StepState.SKIPPED, StepState.HANDED_OVER, StepState.CANCELLED}
    ),
    StepState.RUNNING: frozenset({StepState.SENT, StepState.FAILED, StepState.CANCELLED}),
    StepState.SENT: frozenset(),
    StepState.FAILED: frozenset({StepState.RUNNING, StepState.WAITING}),
    StepState.SKIPPED: frozenset(),
    StepState.HANDED_OVER: frozenset(),
    StepState.CANCELLED: frozenset({StepState.WAITING}),
}
