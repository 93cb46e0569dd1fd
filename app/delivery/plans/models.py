"""The tables of plans, their steps, and the routes of steps."""

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
    """The recipients of a step."""

    PERSON = "PERSON"
    """The user whom the action is about."""
    ROUTES = "ROUTES"
    """The profiles of the step's routes, or else those of the device."""


class OnFailure(StrEnum):
    STOP = "STOP"
    CONTINUE = "CONTINUE"


# `key` is the name by which the product requests a plan that it ships with. Such a plan can be edited, but not retired.
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

# `fallback` holds the channel types that are tried next for the same recipient, in this order, if the step's own type
# fails or has not delivered within `within_s` seconds. They follow a message that may have arrived only if
# `may_arrive_twice`. Without `template_key` the notification holds data and no text. `run.py` says what follows when
# the last type has not delivered in time, and what holds without `within_s`.
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
    Column("may_arrive_twice", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("retired_at", DateTime(timezone=True)),
    CheckConstraint(one_of("audience", Audience), name="audience"),
    CheckConstraint(one_of("on_failure", OnFailure), name="on_failure"),
    CheckConstraint("step_order >= 1", name="step_order"),
    CheckConstraint("within_s >= 1", name="within_s"),
    Index("action_plan_steps_once_per_order", "action_plan_id", "step_order", unique=True, postgresql_where=IN_USE),
)

# The profiles that a step goes to. `channel_type` overrides that of the step.
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
