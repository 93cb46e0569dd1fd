"""The log lines of tasks and offers. They are written after the commit that makes them true.

What happens to a task is logged at INFO, a few lines for each. What happens to its offers is logged at DEBUG.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog

from app.matching.rules.states import OfferState, TaskStatus

log = structlog.get_logger(__name__)

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


@dataclass(frozen=True)
class _LogLine:
    is_of_task: bool
    event: str
    ids: dict[str, Any]


class TaskLog:
    def __init__(self) -> None:
        self._lines: list[_LogLine] = []

    def task_created(self, task_id: UUID, elder_id: int) -> None:
        self._lines.append(_LogLine(True, "task_created", {"task_id": str(task_id), "elder_id": elder_id}))

    def task(self, status: TaskStatus, task_id: UUID, student_id: int | None = None) -> None:
        self._lines.append(_LogLine(True, TASK_EVENTS[status], _ids(task_id, student_id)))

    def offer(self, state: OfferState, task_id: UUID, student_id: int, **more: Any) -> None:
        self._lines.append(_LogLine(False, OFFER_EVENTS[state], _ids(task_id, student_id) | more))

    def write(self) -> None:
        for line in self._lines:
            if line.is_of_task:
                log.info(line.event, **line.ids)
            else:
                log.debug(line.event, **line.ids)


def _ids(task_id: UUID, student_id: int | None) -> dict[str, Any]:
    return {"task_id": str(task_id)} | ({} if student_id is None else {"student_id": student_id})
