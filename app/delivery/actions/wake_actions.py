"""Makes actions due, and wakes the conductors."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.db.wake import WAKE_CHANNEL
from app.delivery.messages.values import ACTION_TOPIC, Ended

# It is safe to wait for the row of an action: a transaction that holds it is short, and does not wait for the row of a
# notification.
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


def wake_actions(conn: Connection, ended: Sequence[Ended]) -> None:
    """A follower: makes the actions of the ended notifications due."""
    ids = {notification.action_id for notification in ended if notification.action_id is not None}
    if ids:
        conn.execute(_WAKE, {"ids": list(ids), "channel": WAKE_CHANNEL, "topic": ACTION_TOPIC})
