"""The log lines of a notification's life. INFO has those that a person may have to look at, DEBUG has all."""

from typing import Any
from uuid import UUID

from app.db.log_after_commit import log_after_commit
from app.delivery.messages.values import NotificationStatus, NotificationType

# ACCEPTED: it was not tried, because a breaker was open, a store did not answer, or the worker was stopping.
RECORDED = {
    NotificationStatus.SENT: "notification_sent",
    NotificationStatus.ACCEPTED: "notification_held_back",
    NotificationStatus.RETRYING: "notification_retried",
    NotificationStatus.DEAD: "notification_given_up",
    NotificationStatus.EXPIRED: "notification_expired",
}


def log_accepted(id_: UUID, type_: NotificationType, **ids: Any) -> None:
    given = {name: str(value) for name, value in ids.items() if value is not None}
    log_after_commit("debug", "notification_accepted", notification_id=str(id_), type=type_.value, **given)


def log_recorded(
    id_: UUID, status: NotificationStatus, attempt: int, error_code: str | None, *, has_dead_letter: bool = False
) -> None:
    """The result of an attempt."""
    why = {} if error_code is None else {"error_code": error_code}
    level = "info" if has_dead_letter else "debug"
    log_after_commit(level, RECORDED[status], notification_id=str(id_), attempt=attempt, **why)


def log_expired(id_: UUID) -> None:
    """Before its next attempt."""
    log_after_commit("debug", "notification_expired", notification_id=str(id_))


def log_cancelled(id_: UUID) -> None:
    log_after_commit("debug", "notification_cancelled", notification_id=str(id_))


def log_redriven(dead_letter_id: UUID, notification_id: UUID | None, action_id: UUID | None) -> None:
    ids = {"notification_id": notification_id, "action_id": action_id}
    given = {name: str(value) for name, value in ids.items() if value is not None}
    log_after_commit("debug", "dead_letter_redriven", dead_letter_id=str(dead_letter_id), **given)
