"""The log lines of a notification's life, and the count of those that are submitted. INFO has the lines that a person
may have to look at, DEBUG has all."""

from typing import Any
from uuid import UUID

from app.db.after_commit import count_after_commit, log_after_commit
from app.delivery.messages.values import NotificationStatus, NotificationType

# ACCEPTED: it was not tried, because a breaker was open, a store did not answer, or the worker was stopping.
RECORDED = {
    NotificationStatus.SENT: "notification_sent",
    NotificationStatus.ACCEPTED: "notification_held_back",
    NotificationStatus.RETRYING: "notification_retried",
    NotificationStatus.DEAD: "notification_given_up",
    NotificationStatus.EXPIRED: "notification_expired",
}


SUBMITTED = "notifications_submitted"
"""The name of the count, whose label is the type."""


def note_accepted(id_: UUID, type_: NotificationType, **ids: Any) -> None:
    count_after_commit(SUBMITTED, type_.value)
    given = {name: str(value) for name, value in ids.items() if value is not None}
    log_after_commit("debug", "notification_accepted", notification_id=id_, type=type_.value, **given)


def log_recorded(
    id_: UUID, status: NotificationStatus, attempt: int, error_code: str | None, *, has_dead_letter: bool = False
) -> None:
    """The result of an attempt."""
    why = {} if error_code is None else {"error_code": error_code}
    level = "info" if has_dead_letter else "debug"
    log_after_commit(level, RECORDED[status], notification_id=id_, attempt=attempt, **why)


def log_expired(id_: UUID) -> None:
    """Before its next attempt."""
    log_after_commit("debug", "notification_expired", notification_id=id_)


def log_cancelled(id_: UUID) -> None:
    log_after_commit("debug", "notification_cancelled", notification_id=id_)


def log_redriven(dead_letter_id: UUID, notification_id: UUID | None, action_id: UUID | None) -> None:
    ids = {"notification_id": notification_id, "action_id": action_id}
    given = {name: str(value) for name, value in ids.items() if value is not None}
    log_after_commit("debug", "dead_letter_redriven", dead_letter_id=str(dead_letter_id), **given)
