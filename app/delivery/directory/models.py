"""The tables of the directory. A retired row stays, because dead letters and actions refer to it."""

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
    LargeBinary,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from app.db.schema import metadata, one_of
from app.db.tables import IN_USE
from app.delivery.directory.states import VERIFY_TRANSITIONS, VerifyStatus
from app.foundation.state_machine import new_state

# A recipient of notifications: a user, the owner of a device, or a group, such as the coordinators on call. `key` is
# the name by which the product refers to a profile that it ships with.
recipient_profiles = Table(
    "recipient_profiles",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("key", Text),
    Column("device_id", Text),
    Column("user_id", BigInteger, ForeignKey("users.id")),
    # The institution whose coordinators keep the profile. A profile with neither a user nor an institution serves all.
    Column("institution_id", BigInteger),
    Column("name", Text, nullable=False),
    Column("locale", Text, nullable=False, server_default="tr"),
    Column("status", Boolean, nullable=False, server_default=text("true")),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("retired_at", DateTime(timezone=True)),
    CheckConstraint("length(device_id) <= 21", name="device_id"),
    CheckConstraint("user_id IS NULL OR institution_id IS NULL", name="one_owner"),
    CheckConstraint("length(name) <= 100", name="name"),
    CheckConstraint("locale IN ('tr', 'en')", name="locale"),
    Index("recipient_profiles_key", "key", unique=True, postgresql_where=text("key IS NOT NULL")),
    Index("recipient_profiles_device_idx", "device_id", postgresql_where=IN_USE),
    Index("recipient_profiles_user_idx", "user_id", postgresql_where=IN_USE),
)

# `secrets` sign the requests to a webhook. The newest is first, and the older ones stay until an operator removes them.
# No view shows them.
recipient_channels = Table(
    "recipient_channels",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("profile_id", BigInteger, ForeignKey("recipient_profiles.id"), nullable=False),
    Column("channel_type", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("target_meta", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("verify_status", Text, nullable=False, server_default=new_state(VERIFY_TRANSITIONS, VerifyStatus.PENDING)),
    Column("secrets", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("retired_at", DateTime(timezone=True)),
    CheckConstraint(one_of("verify_status", VerifyStatus), name="verify_status"),
    CheckConstraint("length(channel_type) <= 32", name="channel_type"),
    CheckConstraint("length(target) <= 255", name="target"),
    # The index includes retired channels, because a step that finds only retired ones fails with its own error code.
    Index("recipient_channels_profile_idx", "profile_id"),
)

# At most one running verification for each channel: the digest of the code that was sent, and the number of tries left.
channel_verifications = Table(
    "channel_verifications",
    metadata,
    Column("channel_id", BigInteger, ForeignKey("recipient_channels.id"), primary_key=True),
    Column("notification_id", Uuid, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("tries_left", Integer, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)
