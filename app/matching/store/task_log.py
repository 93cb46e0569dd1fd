"""The log lines of tasks and offers. What happens to a task is logged at INFO, a few lines for each; what happens to
its offers at DEBUG."""

from typing import Any
from uuid import UUID

from app.db.after_commit import log_after_commit
from app.matching.rules.states import OfferState, TaskStatus

TASK_EVENTS = {
    TaskStatus.PENDING: "task_searches_again",
    TaskStatus.ASSIGNED: "task_assigned",
    TaskStatus.STARTED: "task_started",
    TaskStatus.COMPLETED: "task_completed",
    TaskStatus.CANCELLED: "task_cancelled",
    TaskStatus.TIMED_OUT: "task_timed_out",
}
OFFER_EVENTS = {
    OfferState.PENDING: "offer_made",
    OfferState.ACCEPTED: "offer_accepted",
    OfferState.REJECTED: "offer_rejected",
    OfferState.EXPIRED: "offer_expired",
    OfferState.WITHDRAWN: "offer_withdrawn",
    OfferState.RELEASED: "offer_released",
    OfferState.SKIPPED: "student_skipped",
}


def log_new_task(task_id: UUID, elder_id: int) -> None:
    log_after_commit("info", "task_created", task_id=str(task_id), elder_id=elder_id)


def log_task(status: TaskStatus, task_id: UUID, student_id: int | None = None) -> None:
    who = {} if student_id is None else {"student_id": student_id}
    log_after_commit("info", TASK_EVENTS[status], task_id=str(task_id), **who)


def log_offer(state: OfferState, task_id: UUID, student_id: int, **more: Any) -> None:
    log_after_commit("debug", OFFER_EVENTS[state], task_id=str(task_id), student_id=student_id, **more)
