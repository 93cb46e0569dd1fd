"""A follower: makes the actions of notifications that have ended due, and wakes the conductors."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.db.wake import WAKE_CHANNEL
from app.delivery.messages.values import ACTION_TOPIC, Follower, NotificationChange

# It is safe to wait for the row of an action: a transaction that holds it is short, and waits neither for the row of a
# notification nor for that of a device.
_WAKE = text(
    """
    WITH held AS (
        SELECT id FROM actions WHERE id = ANY(:ids) AND status = 'RUNNING' ORDER BY id FOR NO KEY UPDATE
    ), settled AS (
        UPDATE actions a SET due_at = least(a.due_at, clock_timestamp()) FROM held WHERE a.id = held.id
    )
    SELECT pg_notify(:channel, :topic)
    """
)


def wake_actions(conn: Connection, ended: Sequence[NotificationChange]) -> None:
    ids = list({change.action_id for change in ended})
    conn.execute(_WAKE, {"ids": ids, "channel": WAKE_CHANNEL, "topic": ACTION_TOPIC})


WAKE_ACTIONS = Follower(lambda change: change.has_ended and change.action_id is not None, wake_actions)
