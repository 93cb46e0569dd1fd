"""Puts aside what need not arrive any more, so that it alarms nobody and nobody has it tried again."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

from app.delivery.dead_letters import MEANT, Filter, get_dead_letter
from app.delivery.redrive import MOST_AT_ONCE, LetterClosed


@dataclass(frozen=True)
class Discarded:
    discarded: int
    remaining: int
    """Those that wait for another call."""


# In the order in which redriving holds letters.
_DISCARD = """
    UPDATE dead_letters SET status = 'DISCARDED', closed_at = clock_timestamp(), closed_by = :by
     WHERE status = 'OPEN' AND id IN (
           SELECT l.id FROM dead_letters l WHERE l.status = 'OPEN' AND {which}
            ORDER BY l.id LIMIT :limit FOR NO KEY UPDATE)
"""
_ONE = text(_DISCARD.format(which="l.id = :id"))
_MATCHING = text(_DISCARD.format(which=MEANT))
_LEFT = text(f"SELECT count(*) FROM dead_letters l WHERE l.status = 'OPEN' AND {MEANT}")


def discard(conn: Connection, id_: UUID, by: int | None) -> None:
    """Of two who close a letter at the same time, one is told that it is closed."""
    if conn.execute(_ONE, {"id": id_, "by": by, "limit": 1}).rowcount:
        return
    letter = get_dead_letter(conn, id_)
    raise LetterClosed("This dead letter is closed already.", status=letter.status.value)


def discard_matching(conn: Connection, which: Filter, by: int | None, limit: int = MOST_AT_ONCE) -> Discarded:
    """The oldest first, no more than `limit`."""
    discarded = conn.execute(_MATCHING, which.values | {"by": by, "limit": limit}).rowcount
    return Discarded(discarded, conn.execute(_LEFT, which.values).scalar_one())
