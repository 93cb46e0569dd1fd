"""The states of tasks and offers, and the transitions between them. Every statement that changes a state uses these
tables: it checks its transition, or reads the states that it may start from."""

from enum import StrEnum

from app.db.schema import one_of
from app.foundation.errors import Conflict
from app.foundation.state_machine import TransitionTable, new_state, sources


class TaskStatus(StrEnum):
    PENDING = "PENDING"
    ASSIGNED = "ASSIGNED"
    STARTED = "STARTED"
    COMPLETED = "COMPLETED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"


class OfferState(StrEnum):
    PENDING = "PENDING"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    WITHDRAWN = "WITHDRAWN"
    RELEASED = "RELEASED"
    SKIPPED = "SKIPPED"


class TaskOutcome(StrEnum):
    """What became of a task that nobody took, as a coordinator says. It is no state: the task stays TIMED_OUT."""

    HELPED_BY_PHONE = "HELPED_BY_PHONE"
    HELPED_BY_OTHERS = "HELPED_BY_OTHERS"
    NOT_NEEDED = "NOT_NEEDED"
    NOT_REACHED = "NOT_REACHED"
    OTHER = "OTHER"


T, S = TaskStatus, OfferState

TASK_TRANSITIONS: TransitionTable[TaskStatus] = {
    None: frozenset({T.PENDING}),
    T.PENDING: frozenset({T.ASSIGNED, T.TIMED_OUT, T.CANCELLED}),
    T.ASSIGNED: frozenset({T.STARTED, T.PENDING, T.CANCELLED}),
    T.STARTED: frozenset({T.COMPLETED, T.PENDING, T.CANCELLED}),
    T.COMPLETED: frozenset(),
    T.TIMED_OUT: frozenset(),
    T.CANCELLED: frozenset(),
}
OPEN = tuple(status for status, targets in TASK_TRANSITIONS.items() if status and targets)
HELD = tuple(status for status in OPEN if status is not T.PENDING)

# A coordinator who has talked to a student may assign the task to them whatever the state of an earlier offer, or
# without one. So a row can begin as ACCEPTED, and an offer in any other state can still become ACCEPTED.
OFFER_TRANSITIONS: TransitionTable[OfferState] = {
    None: frozenset({S.PENDING, S.SKIPPED, S.ACCEPTED}),
    S.PENDING: frozenset({S.ACCEPTED, S.REJECTED, S.EXPIRED, S.WITHDRAWN}),
    S.ACCEPTED: frozenset({S.RELEASED}),
    S.REJECTED: frozenset({S.ACCEPTED}),
    S.EXPIRED: frozenset({S.ACCEPTED}),
    S.WITHDRAWN: frozenset({S.ACCEPTED}),
    S.RELEASED: frozenset({S.ACCEPTED}),
    S.SKIPPED: frozenset({S.ACCEPTED}),
}


class IllegalTaskTransition(Conflict):
    """The task is not in a state that allows this."""

    code = "illegal_step"


def check_task_transition(current: TaskStatus | None, target: TaskStatus) -> None:
    if target not in TASK_TRANSITIONS[current]:
        raise IllegalTaskTransition(f"A task that is {current} cannot become {target}.", status=current)


def check_offer_transition(current: OfferState | None, target: OfferState) -> None:
    if target not in OFFER_TRANSITIONS[current]:
        raise IllegalTaskTransition(f"An offer that is {current} cannot become {target}.", state=current)


# ---- parts of SQL ----

# Literals, because the planner uses a partial index only for a statement that repeats its condition.


def is_open(column: str = "status") -> str:
    return one_of(column, OPEN)


def is_held(column: str = "status") -> str:
    return one_of(column, HELD)


def is_searching(column: str = "status") -> str:
    return f"{column} = '{TaskStatus.PENDING}'"


def may_become_task(target: TaskStatus, column: str = "status") -> str:
    return one_of(column, sources(TASK_TRANSITIONS, target))


def may_become_offer(target: OfferState, column: str = "state") -> str:
    return one_of(column, sources(OFFER_TRANSITIONS, target))


def new_task(status: TaskStatus) -> str:
    return f"'{new_state(TASK_TRANSITIONS, status)}'"


def new_offer(state: OfferState) -> str:
    return f"'{new_state(OFFER_TRANSITIONS, state)}'"
