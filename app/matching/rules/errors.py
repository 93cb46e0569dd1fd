"""Errors of matching. Their codes are part of the contract with phones."""

from app.foundation.errors import Conflict, NotFound
from app.matching.rules.states import OfferState


class TaskNotFound(NotFound):
    """There is no such task, or it does not concern the caller."""

    code = "task_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such task, or it does not concern you.")


class OfferExpired(Conflict):
    """The time to answer is over."""

    code = "offer_expired"


class OfferRejected(Conflict):
    """The caller rejected this request before."""

    code = "offer_rejected"


class OfferWithdrawn(Conflict):
    """The request was taken back: cancelled, given to somebody else, or the student went off duty."""

    code = "offer_withdrawn"


class OfferReleased(Conflict):
    """The student gave this task back, or a coordinator did."""

    code = "offer_released"


class OfferAccepted(Conflict):
    """The caller accepted this task before; withdraw instead."""

    code = "offer_accepted"


class NotAssigned(Conflict):
    """The task has not been accepted, so there is nothing to start, complete or move on."""

    code = "not_assigned"


class StudentUnavailable(Conflict):
    """This student has another task, or is not active."""

    code = "student_unavailable"


class Suspended(Conflict):
    """The student is off duty until a coordinator says otherwise."""

    code = "suspended"


class Overtaken(Conflict):
    """Another transaction changed rows that this one had read before it locked them. Entry points roll back and try
    again, so a caller sees this error only if it keeps happening."""

    code = "try_again"

    def __init__(self) -> None:
        super().__init__("Others are changing the same thing at this moment; try again.")


def too_late(state: OfferState) -> Conflict:
    """The error for an answer that comes too late, by the state of the offer."""
    match state:
        case OfferState.REJECTED:
            return OfferRejected("You have rejected this request.")
        case OfferState.WITHDRAWN:
            return OfferWithdrawn("This request was taken back.")
        case OfferState.RELEASED:
            return OfferReleased("You no longer have this task.")
        case OfferState.ACCEPTED:
            return OfferAccepted("You have accepted this task; withdraw if you cannot come.")
        case OfferState.PENDING | OfferState.EXPIRED | OfferState.SKIPPED:
            return OfferExpired("The time to answer is over.")
