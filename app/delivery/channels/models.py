"""The tables of the channels `in_app`, `audit` and `recording`, which write to our own database."""

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    Table,
    Text,
    Uuid,
    event,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSON, JSONB

from app.db.schema import metadata

in_app_messages = Table(
    "in_app_messages",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("notification_id", Uuid, nullable=False, unique=True),
    Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("data", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("read_at", DateTime(timezone=True)),
    Index("in_app_messages_user_idx", "user_id", "id"),
)

# The hash of each entry covers the entry before it, so that changes, removals and insertions can be detected. Triggers
# refuse changes to entries. The oldest entries have no author. The type `json` keeps every character of the metadata as
# it was hashed.
audit_entries = Table(
    "audit_entries",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("notification_id", Uuid, nullable=False, unique=True),
    Column("recipient", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("written_at", DateTime(timezone=True), nullable=False),
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("author", Text),
    Index("audit_entries_time_idx", "written_at", "id"),
    Index("audit_entries_author_idx", "author", "written_at", "id"),
    Index("audit_entries_deed_idx", "subject", "written_at", "id"),
    Index("audit_entries_subjects_idx", text("audit_subjects(recipient, metadata)"), postgresql_using="gin"),
)

# The index of an expression needs its function, which migration 0018 explains.
_SUBJECTS = r"""
CREATE FUNCTION audit_subjects(recipient text, metadata json) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ARRAY(
        SELECT found[1] || ':' || found[2]
          FROM regexp_matches(
                   recipient, '([a-z-]{1,40})[/:]([0-9]{1,19}|[0-9a-f]{8}-[0-9a-f-]{27})(?=/|$)', 'g'
               ) AS found
        UNION
        SELECT replace(CASE key WHEN 'id' THEN change ->> 'table' ELSE regexp_replace(key, '_id$', '') END, '_', '-')
               || ':' || id
          FROM json_array_elements(
                   CASE json_typeof(metadata -> 'changes') WHEN 'array' THEN metadata -> 'changes' ELSE '[]' END
               ) AS changes (change),
               json_each_text(
                   CASE json_typeof(change -> 'row') WHEN 'object' THEN change -> 'row' ELSE '{}' END
               ) AS ids (key, id)
         WHERE id ~ '^([0-9]{1,19}|[0-9a-f]{8}-[0-9a-f-]{27})$'
           AND CASE key WHEN 'id' THEN change ->> 'table' ELSE key END ~ '^[a-z_]{1,40}$'
    )
$$
"""
event.listen(audit_entries, "before_create", DDL(_SUBJECTS))

# Messages that the channel `recording` keeps because no provider is set up.
recorded_pushes = Table(
    "recorded_pushes",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("notification_id", Uuid, nullable=False),
    Column("notification_type", Text, nullable=False, server_default="PUSH"),
    Column("recipient", Text, nullable=False, server_default=""),
    Column("user_id", BigInteger),
    Column("device_id", Text),
    Column("title", Text),
    Column("body", Text),
    Column("data", JSONB, nullable=False),
    Column("shown_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Index(
        "recorded_pushes_once_per_device",
        "notification_id",
        "device_id",
        unique=True,
        postgresql_nulls_not_distinct=True,
    ),
    Index("recorded_pushes_user_idx", "user_id", "id"),
)
