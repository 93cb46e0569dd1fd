"""The state machine of a notification. Pure. Every statement that changes a notification's status reads the states that
it may start from in this table."""

from collections.abc import Collection

from app.delivery.messages.values import NotificationStatus
from app.foundation.errors import Conflict

S = NotificationStatus

INITIAL = S.ACCEPTED
LIVE = frozenset({S.ACCEPTED, S.SENDING, S.RETRYING})
WAITING = frozenset({S.ACCEPTED, S.RETRYING})
FINAL = frozenset(S) - LIVE

# SENDING to SENDING: a worker claims a notification again after the lease of another worker has run out.
# SENDING to ACCEPTED or RETRYING: the attempt is repeated later, or a draining worker puts back a notification that it
# has not begun to send.
# DEAD to ACCEPTED: an operator redrives the dead letter.
TRANSITIONS: dict[NotificationStatus, frozenset[NotificationStatus]] = {
    S.ACCEPTED: frozenset({S.SENDING, S.EXPIRED, S.CANCELLED}),
    S.SENDING: frozenset({S.SENDING, S.SENT, S.ACCEPTED, S.RETRYING, S.DEAD, S.EXPIRED}),
    S.RETRYING: frozenset({S.SENDING, S.EXPIRED, S.CANCELLED}),
    S.SENT: frozenset(),
    S.DEAD: frozenset({S.ACCEPTED}),
    S.EXPIRED: frozenset(),
    S.CANCELLED: frozenset(),
}


class IllegalNotificationTransition(Conflict):
    code = "illegal_notification_step"


def check_transition(current: NotificationStatus, target: NotificationStatus) -> None:
    if target not in TRANSITIONS[current]:
        raise IllegalNotificationTransition(
            f"A notification that is {current} cannot become {target}.", status=current.value
        )


def sources(*targets: NotificationStatus) -> frozenset[NotificationStatus]:
    """The states from which a notification can become each of `targets`."""
    return frozenset(state for state, following in TRANSITIONS.items() if following.issuperset(targets))


CLAIMABLE = sources(S.SENDING, S.EXPIRED)
PUT_BACK_FROM = sources(S.ACCEPTED, S.RETRYING)
RECORDED_FROM = sources(S.SENT, S.ACCEPTED, S.RETRYING, S.DEAD, S.EXPIRED)
CANCELLABLE = sources(S.CANCELLED)
REDRIVABLE = sources(S.ACCEPTED) & FINAL


def sql_in(column: str, states: Collection[NotificationStatus]) -> str:
    """A condition with literals, because the planner uses a partial index only for values that it can see."""
    if not states:
        raise ValueError(f"No state is allowed in {column}.")
    literals = ", ".join(f"'{state}'" for state in S if state in states)
    return f"{column} IN ({literals})"
