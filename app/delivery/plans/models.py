"""What is done, in which order, when something is to be told: plans of steps, routes of steps, and the words."""

from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.db.schema import metadata, one_of
from app.db.tables import IN_USE


class Audience(StrEnum):
    """Whom a step goes to."""

    PERSON = "PERSON"
    """The user the action is about."""
    ROUTES = "ROUTES"
    """Profiles: those the step is routed to, else those of the device."""


class OnFailure(StrEnum):
    STOP = "STOP"
    CONTINUE = "CONTINUE"


# `key` is the name by which the product itself asks for a plan; such plans can be edited, but not retired.
action_plans = Table(
    "action_plans",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("key", Text),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("status", Boolean, nullable=False, server_default=text("true")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("retired_at", DateTime(timezone=True)),
    Index("action_plans_key", "key", unique=True, postgresql_where=text("key IS NOT NULL")),
)

# `fallback` are the channels of the same recipient that are tried next, in their order, where this one fails or has
# not delivered `within_s` seconds after it was asked to. Without `template_key` the message carries data and no words.
action_plan_steps = Table(
    "action_plan_steps",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("action_plan_id", BigInteger, ForeignKey("action_plans.id"), nullable=False),
    Column("step_order", Integer, nullable=False),
    Column("channel_type", Text, nullable=False),
    Column("audience", Text, nullable=False, server_default="ROUTES"),
    Column("template_key", Text),
    Column("on_failure", Text, nullable=False, server_default="STOP"),
    Column("fallback", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("within_s", Integer),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("retired_at", DateTime(timezone=True)),
    CheckConstraint(one_of("audience", Audience), name="audience"),
    CheckConstraint(one_of("on_failure", OnFailure), name="on_failure"),
    CheckConstraint("step_order >= 1", name="step_order"),
    CheckConstraint("within_s >= 1", name="within_s"),
    Index("action_plan_steps_once_per_order", "action_plan_id", "step_order", unique=True, postgresql_where=IN_USE),
)

# Which profiles a step goes to. `channel_type` overrides the step's.
action_routes = Table(
    "action_routes",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("action_plan_id", BigInteger, ForeignKey("action_plans.id"), nullable=False),
    Column("step_order", Integer, nullable=False),
    Column("recipient_profile_id", BigInteger, ForeignKey("recipient_profiles.id"), nullable=False),
    Column("channel_type", Text),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("retired_at", DateTime(timezone=True)),
    Index("action_routes_step_idx", "action_plan_id", "step_order", postgresql_where=IN_USE),
)
