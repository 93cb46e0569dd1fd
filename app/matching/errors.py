"""What can go wrong between a button and a door. Codes are part of the contract with phones."""

from app.errors import Conflict, NotFound
from app.matching.states import OfferState


class TaskNotFound(NotFound):
    code = "task_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such task, or it does not concern you.")


class OfferExpired(Conflict):
    code = "offer_expired"


class OfferRejected(Conflict):
    code = "offer_rejected"


class OfferWithdrawn(Conflict):
    code = "offer_withdrawn"


class OfferReleased(Conflict):
    code = "offer_released"


class OfferAccepted(Conflict):
    code = "offer_accepted"


class NotAssigned(Conflict):
    code = "not_assigned"


class StudentUnavailable(Conflict):
    code = "student_unavailable"


class IdempotencyKeyReused(Conflict):
    code = "idempotency_key_reused"


class Overtaken(Conflict):
    """Another transaction changed what this one had read before its locks. Entry points roll back and try again;
    only when that keeps happening does a caller see it."""

    code = "try_again"

    def __init__(self) -> None:
        super().__init__("Others are changing the same thing at this moment; try again.")


def too_late(state: OfferState) -> Conflict:
    """Why an answer to an offer no longer counts, by what became of the offer."""
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
