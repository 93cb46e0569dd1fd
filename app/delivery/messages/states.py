"""The state machine of a notification, and nothing else."""

from app.delivery.messages.values import NotificationStatus
from app.foundation.errors import Conflict

S = NotificationStatus

LIVE = frozenset({S.ACCEPTED, S.SENDING, S.RETRYING})
WAITING = frozenset({S.ACCEPTED, S.RETRYING})
FINAL = frozenset(S) - LIVE

# SENDING to SENDING is a worker that takes over what another one left behind; SENDING to ACCEPTED or RETRYING is
# also a worker that drains and puts back what it had not begun. DEAD to ACCEPTED is an operator who has it tried anew.
STEPS: dict[NotificationStatus, frozenset[NotificationStatus]] = {
    S.ACCEPTED: frozenset({S.SENDING, S.EXPIRED, S.CANCELLED}),
    S.SENDING: frozenset({S.SENDING, S.SENT, S.ACCEPTED, S.RETRYING, S.DEAD, S.EXPIRED}),
    S.RETRYING: frozenset({S.SENDING, S.EXPIRED, S.CANCELLED}),
    S.SENT: frozenset(),
    S.DEAD: frozenset({S.ACCEPTED}),
    S.EXPIRED: frozenset(),
    S.CANCELLED: frozenset(),
}


class IllegalNotificationStep(Conflict):
    code = "illegal_notification_step"


def check_step(current: NotificationStatus, target: NotificationStatus) -> None:
    if target not in STEPS[current]:
        raise IllegalNotificationStep(f"A notification that is {current} cannot become {target}.", status=current.value)
