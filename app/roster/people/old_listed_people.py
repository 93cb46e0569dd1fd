"""What retention forgets of the roster: who was once on a list, long after they left it."""

from app.db.bites import KeyType, Sweep

# Somebody who comes back later is new, unless a user of their name and phone is still there.
OLD_LISTED_PEOPLE = {
    "roster": (
        Sweep(
            table="roster_people",
            key=KeyType.BIGINT,
            order="user_id",
            identity="user_id",
            chosen="t.left_at < :cutoff",
            since="t.left_at",
        ),
    )
}
"""By kind."""
