"""The tables of events. Triggers write the drafts, and `sequence_events`, a function of the database, moves them."""

from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    func,
    text,
)

from app.db.days import DailyTable
from app.db.schema import metadata


def _content(**at: Any) -> tuple[Column[Any], ...]:
    return (
        Column("type", Text, nullable=False),
        Column("at", DateTime(timezone=True), nullable=False, **at),
        Column("task_id", Uuid),
        # Whom it is about besides the elder: the student of an offer or a task, or the owner of a message.
        Column("person_id", BigInteger),
        Column("message_id", BigInteger),
        Column("deadline", DateTime(timezone=True)),
        Column("reason", Text),
        Column("on_duty", Boolean),
    )


# In the order in which they were written. They get their positions when they are moved, after their commit.
new_events = Table(
    "new_events",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    *_content(server_default=func.clock_timestamp()),
)

# One row, or none at first: a position that the newest is not below, because events are deleted after some days, and
# how far drafts are settled (see the migration).
event_positions = Table(
    "event_positions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    # No draft up to this one is left or will come.
    Column("settled", BigInteger, nullable=False, server_default=text("0")),
    # The next value of `settled`, once these transactions have ended.
    Column("settling", BigInteger),
    Column("holders", ARRAY(Text), nullable=False, server_default="{}"),
    CheckConstraint("id = 1", name="one_row"),
)

# The id is the position: in the order of commits, without gaps. The day is that of the position, so it never decreases.
# There are no foreign keys, because adding or dropping a partition would lock the other tables.
events = Table(
    "events",
    metadata,
    Column("id", BigInteger, nullable=False, autoincrement=False),
    Column("day", Date, nullable=False),
    Column("elder_id", BigInteger),
    *_content(),
    PrimaryKeyConstraint("id", "day"),
    Index("events_elder_idx", "elder_id", "id", postgresql_where=text("elder_id IS NOT NULL")),
    Index("events_person_idx", "person_id", "id", postgresql_where=text("person_id IS NOT NULL")),
    Index("events_task_idx", "task_id", "id", postgresql_where=text("task_id IS NOT NULL")),
    postgresql_partition_by="RANGE (day)",
)

DAILY = DailyTable("events")
