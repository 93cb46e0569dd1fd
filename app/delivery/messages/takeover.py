"""The workers that are alive, and the takeover of what a dead one has claimed. SQL only; the caller owns the
transaction.

The lease of a claim is long enough for the slowest channel. After the death of a worker nobody should wait for its end,
so each worker counts its beats in a row of its own. A worker whose row is gone may send nothing that it claimed before.
"""

from sqlalchemy import Connection, text

from app.db.schema import one_of
from app.db.wake import WAKE_CHANNEL
from app.delivery.messages.states import CLAIMABLE
from app.delivery.messages.values import NotificationStatus, NotificationType, Priority

_REGISTER = text("INSERT INTO delivery_workers DEFAULT VALUES RETURNING id")
_BEAT = text(
    """
    WITH own AS (UPDATE delivery_workers SET beats = beats + 1 WHERE id = :id RETURNING id)
    SELECT w.id, w.beats, EXISTS (SELECT FROM own) AS is_known FROM delivery_workers w
    """
)
# The condition on the type, the priority and the time is that of the index of the queue: a lease ends in the future.
# The time of its creation puts a notification before those that were created later, as at its first claim.
_TAKE_OVER = text(
    f"""
    WITH dead AS (
        DELETE FROM delivery_workers WHERE id = :id AND beats = coalesce(:beats, beats) RETURNING id
    ), freed AS (
        UPDATE notifications n SET due_at = n.created_at
          FROM dead
         WHERE n.worker_id = dead.id AND n.status = '{NotificationStatus.SENDING}' AND {one_of("n.status", CLAIMABLE)}
           AND {one_of("n.notification_type", NotificationType)} AND {one_of("n.priority", Priority)}
           AND n.due_at > statement_timestamp()
        RETURNING n.id
    )
    SELECT (SELECT count(*) FROM freed) AS freed, pg_notify(:channel, '') FROM dead
    """
)


def register_worker(conn: Connection) -> int:
    return conn.execute(_REGISTER).scalar_one()


def beat(conn: Connection, worker_id: int) -> dict[int, int] | None:
    """The beats of all workers; None if others have taken over from this one."""
    rows = conn.execute(_BEAT, {"id": worker_id}).all()
    return {row.id: row.beats for row in rows} if any(row.is_known for row in rows) else None


def take_over(conn: Connection, worker_id: int, beats: int | None = None) -> int | None:
    """Ends the leases of a worker and returns their number; None if it was taken over already, or is alive: it has
    another number of `beats` than was read."""
    row = conn.execute(_TAKE_OVER, {"id": worker_id, "beats": beats, "channel": WAKE_CHANNEL}).one_or_none()
    return row.freed if row is not None else None
