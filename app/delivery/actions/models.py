"""Plans under way, and what is to be told of them."""

from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db.schema import metadata, one_of
from app.delivery.messages.values import Priority


class ActionStatus(StrEnum):
    RUNNING = "RUNNING"
    DONE = "DONE"
    """Every step ended, and none failed."""
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Origin(StrEnum):
    INTERNAL = "INTERNAL"
    """Asked for by a feature of ours: nobody waits for an event about it."""
    HTTP = "HTTP"
    STREAM = "STREAM"


# One run of one plan. `steps` is a copy of the plan's steps as they were when the run began, with what has become of
# each (see `run.py`); the row is read and written whole, under its lock. `due_at` is when somebody has to look at it
# again: at once after a message of it came to an end, or when a message should have arrived by then.
actions = Table(
    "actions",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("evaluation_key", Text),
    # Of a plan that is never deleted. A foreign key would have every offer lock the one row of its plan.
    Column("action_plan_id", BigInteger, nullable=False),
    Column("status", Text, nullable=False, server_default="RUNNING"),
    Column("origin", Text, nullable=False),
    Column("person_id", BigInteger, ForeignKey("users.id")),
    Column("task_id", Uuid),
    Column("context", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("variables", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("data", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("steps", JSONB, nullable=False),
    Column("priority", Text, nullable=False, server_default="NORMAL"),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("expires_at", DateTime(timezone=True)),
    Column("due_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    CheckConstraint(one_of("status", ActionStatus), name="status"),
    CheckConstraint(one_of("origin", Origin), name="origin"),
    CheckConstraint(one_of("priority", Priority), name="priority"),
    CheckConstraint("(status = 'RUNNING') = (finished_at IS NULL)", name="running_is_unfinished"),
    # Delivered once, however often it is requested.
    Index("actions_evaluation_key", "evaluation_key", unique=True, postgresql_where=text("evaluation_key IS NOT NULL")),
    Index("actions_due_idx", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    Index("actions_task_idx", "task_id", postgresql_where=text("task_id IS NOT NULL")),
    postgresql_with={"autovacuum_vacuum_scale_factor": "0.01", "autovacuum_vacuum_threshold": "1000"},
)
