"""The two state machines of matching, and nothing else."""

from enum import StrEnum

from app.foundation.errors import Conflict


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


T = TaskStatus

OPEN = frozenset({T.PENDING, T.ASSIGNED, T.STARTED})
HELD = frozenset({T.ASSIGNED, T.STARTED})

TASK_STEPS: dict[TaskStatus, frozenset[TaskStatus]] = {
    T.PENDING: frozenset({T.ASSIGNED, T.TIMED_OUT, T.CANCELLED}),
    T.ASSIGNED: frozenset({T.STARTED, T.PENDING, T.CANCELLED}),
    T.STARTED: frozenset({T.COMPLETED, T.PENDING, T.CANCELLED}),
    T.COMPLETED: frozenset(),
    T.TIMED_OUT: frozenset(),
    T.CANCELLED: frozenset(),
}

# A coordinator who has talked to a student may assign the task to them whatever became of an earlier offer, so
# everything but a live or accepted offer can still become ACCEPTED by hand.
OFFER_STEPS: dict[OfferState, frozenset[OfferState]] = {
    OfferState.PENDING: frozenset({OfferState.ACCEPTED, OfferState.REJECTED, OfferState.EXPIRED, OfferState.WITHDRAWN}),
    OfferState.ACCEPTED: frozenset({OfferState.RELEASED}),
    OfferState.REJECTED: frozenset({OfferState.ACCEPTED}),
    OfferState.EXPIRED: frozenset({OfferState.ACCEPTED}),
    OfferState.WITHDRAWN: frozenset({OfferState.ACCEPTED}),
    OfferState.RELEASED: frozenset({OfferState.ACCEPTED}),
    OfferState.SKIPPED: frozenset({OfferState.ACCEPTED}),
}


class IllegalStep(Conflict):
    """The task is not in a state from which this step leads on."""

    code = "illegal_step"


def check_task_step(current: TaskStatus, target: TaskStatus) -> None:
    if target not in TASK_STEPS[current]:
        raise IllegalStep(f"A task that is {current} cannot become {target}.", status=current.value)


def check_offer_step(current: OfferState, target: OfferState) -> None:
    if target not in OFFER_STEPS[current]:
        raise IllegalStep(f"An offer that is {current} cannot become {target}.", state=current.value)
