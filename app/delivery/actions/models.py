"""The table of actions."""

from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db.schema import metadata, one_of
from app.delivery.actions.states import ACTION_TRANSITIONS, ActionStatus
from app.delivery.messages.values import Priority
from app.foundation.state_machine import new_state


class Origin(StrEnum):
    INTERNAL = "INTERNAL"
    """Requested by another package of this service, which reads no events about the action."""
    HTTP = "HTTP"
    STREAM = "STREAM"


# An action runs a plan once. `steps` is a copy of the plan's steps at the time of the request, with the state of each
# (see `run.py`); a transition reads and writes the whole copy, under the row's lock. `due_at` is when a conductor has
# to advance the action: at once after one of its notifications ended, or when `within_s` of a step is over.
actions = Table(
    "actions",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("evaluation_key", Text),
    # A key belongs to who asked, so that nobody finds or blocks an action of another caller by guessing its key.
    Column("key_owner", Text, nullable=False, server_default=""),
    # A hash of what was asked for, so that the same key for something else is an error.
    Column("request_digest", LargeBinary),
    # No foreign key, because it would make every offer lock the same row of its plan. Plans are never deleted.
    Column("action_plan_id", BigInteger, nullable=False),
    Column("status", Text, nullable=False, server_default=new_state(ACTION_TRANSITIONS, ActionStatus.RUNNING)),
    Column("origin", Text, nullable=False),
    Column("person_id", BigInteger, ForeignKey("users.id")),
    # The institution whose coordinators see it: that of its elder, or else of who requested it.
    Column("institution_id", BigInteger),
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
    # A request that is repeated with the same evaluation key creates no second action.
    Index(
        "actions_evaluation_key",
        "key_owner",
        "evaluation_key",
        unique=True,
        postgresql_where=text("evaluation_key IS NOT NULL"),
    ),
    Index("actions_due_idx", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    Index("actions_institution_idx", "institution_id", "id", postgresql_where=text("institution_id IS NOT NULL")),
    Index("actions_task_idx", "task_id", postgresql_where=text("task_id IS NOT NULL")),
    postgresql_with={"autovacuum_vacuum_scale_factor": "0.01", "autovacuum_vacuum_threshold": "1000"},
)
