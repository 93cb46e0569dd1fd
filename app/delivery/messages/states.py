"""The state machine of a notification. Pure. Every statement that changes a notification's status reads the states that
it may start from in this table."""

from app.delivery.messages.values import NotificationStatus
from app.foundation.state_machine import TransitionTable, sources

S = NotificationStatus

LIVE = frozenset({S.ACCEPTED, S.SENDING, S.RETRYING})
FINAL = frozenset(S) - LIVE

# SENDING to SENDING: a worker claims a notification again after the lease of another worker has run out.
# SENDING to ACCEPTED or RETRYING: the attempt is repeated later, or a draining worker puts back a notification that it
# has not begun to send.
# DEAD to ACCEPTED: an operator redrives the dead letter.
NOTIFICATION_TRANSITIONS: TransitionTable[NotificationStatus] = {
    None: frozenset({S.ACCEPTED}),
    S.ACCEPTED: frozenset({S.SENDING, S.EXPIRED, S.CANCELLED}),
    S.SENDING: frozenset({S.SENDING, S.SENT, S.ACCEPTED, S.RETRYING, S.DEAD, S.EXPIRED}),
    S.RETRYING: frozenset({S.SENDING, S.EXPIRED, S.CANCELLED}),
    S.SENT: frozenset(),
    S.DEAD: frozenset({S.ACCEPTED}),
    S.EXPIRED: frozenset(),
    S.CANCELLED: frozenset(),
}


def _from(*targets: NotificationStatus) -> frozenset[NotificationStatus]:
    return frozenset(sources(NOTIFICATION_TRANSITIONS, *targets))


CLAIMABLE = _from(S.SENDING, S.EXPIRED)
PUT_BACK_FROM = _from(S.ACCEPTED, S.RETRYING)
RECORDED_FROM = _from(S.SENT, S.ACCEPTED, S.RETRYING, S.DEAD, S.EXPIRED)
CANCELLABLE = _from(S.CANCELLED)
REDRIVABLE = _from(S.ACCEPTED) & FINAL
