"""The tables of the roster.

`roster_rows` is the newest list of each kind, and `roster_changes` what has changed in it. The changes of a kind are
numbered without gaps: a page at any depth is a range of positions. People are bound to rows by `roster_people`, and
`roster_to_apply` names the rows whose people have not been told yet.
"""

from enum import IntEnum, StrEnum

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db.schema import metadata, one_of


class ChangeType(IntEnum):
    ADDED = 1
    MODIFIED = 2
    REMOVED = 3


class RunStatus(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    PARTIAL = "PARTIAL"
    """A list could not be read, a guard held changes back, or another run was under way."""
    FAILED = "FAILED"


class ConsumerScope(StrEnum):
    """What the holder of a token may do with its kind."""

    READ = "READ"
    PUSH = "PUSH"


# A partition for each kind, made by its first run: a run reads its kind as a whole and must not read the others.
roster_rows = Table(
    "roster_rows",
    metadata,
    Column("document_type", SmallInteger, primary_key=True, autoincrement=False),
    Column("identifier", Text(collation="C"), primary_key=True),
    Column("content_hash", Uuid, nullable=False),
    Column("fields", JSONB, nullable=False),
    Column("aliases", JSONB, nullable=False),
    postgresql_partition_by="LIST (document_type)",
)

roster_runs = Table(
    "roster_runs",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("status", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("finished_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("report", JSONB, nullable=False),
    CheckConstraint(one_of("status", RunStatus), name="status"),
)

# What a run did to one kind. Its changes are those after `first_position` up to `last_position`. `changed_at` is in
# whole seconds and later than that of the run before, so that a time names a position.
sync_metadata = Table(
    "sync_metadata",
    metadata,
    Column("document_type", SmallInteger, primary_key=True, autoincrement=False),
    Column("run_id", BigInteger, ForeignKey("roster_runs.id"), primary_key=True),
    Column("changed_at", DateTime(timezone=True), nullable=False),
    Column("first_position", BigInteger, nullable=False),
    Column("last_position", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
    Column("report", JSONB, nullable=False),
    Index("sync_metadata_changed_at_idx", "document_type", "changed_at", unique=True),
    Index("sync_metadata_run_id_idx", "run_id"),
)

# `kept_from` is the position after which all changes are still there. The archive holds the list as it is after
# `archive_position`. `list_hash` is that of the lists of the last run, if nothing in it was held back.
# `cursor_key` authenticates cursors. It is no setting: a service that does not issue its own tokens has no secret, and
# a new secret for tokens must not send every reader back to the archive.
roster_states = Table(
    "roster_states",
    metadata,
    Column("document_type", SmallInteger, primary_key=True, autoincrement=False),
    Column("last_position", BigInteger, nullable=False),
    Column("kept_from", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("list_hash", Text),
    Column("archive_position", BigInteger),
    Column("archive_name", Text),
    Column(
        "cursor_key",
        LargeBinary,
        nullable=False,
        server_default=text("sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))"),
    ),
)

roster_changes = Table(
    "roster_changes",
    metadata,
    Column("document_type", SmallInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("change_type", SmallInteger, nullable=False),
    Column("changed_at", DateTime(timezone=True), nullable=False),
    Column("identifier", Text(collation="C"), nullable=False),
    Column("fields", JSONB),
    Column("aliases", JSONB),
    CheckConstraint("change_type BETWEEN 1 AND 3", name="change_type"),
    CheckConstraint("(change_type = 3) = (fields IS NULL) AND (fields IS NULL) = (aliases IS NULL)", name="snapshot"),
)

# A user who stands on a list, or has until `left_at`. `fields` is the row as it was when the user was last changed
# after it: where the user still has the value of the list, the list may change it.
roster_people = Table(
    "roster_people",
    metadata,
    Column("document_type", SmallInteger, primary_key=True, autoincrement=False),
    Column("identifier", Text(collation="C"), primary_key=True),
    Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("fields", JSONB, nullable=False),
    Column("left_at", DateTime(timezone=True)),
    Index("roster_people_user_id_key", "user_id", unique=True),
)

# Rows that changed and whose people have not entered, changed or left yet. Written with the change of the row.
roster_to_apply = Table(
    "roster_to_apply",
    metadata,
    Column("document_type", SmallInteger, primary_key=True, autoincrement=False),
    Column("identifier", Text(collation="C"), primary_key=True),
    Column("run_id", BigInteger, nullable=False),
)

roster_consumers = Table(
    "roster_consumers",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("document_type", SmallInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("scope", Text, nullable=False),
    Column("created_by", BigInteger, ForeignKey("users.id")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("used_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    CheckConstraint(one_of("scope", ConsumerScope), name="scope"),
)

roster_approvals = Table(
    "roster_approvals",
    metadata,
    Column("document_type", SmallInteger, primary_key=True, autoincrement=False),
    Column("run_id", BigInteger, ForeignKey("roster_runs.id"), primary_key=True),
    Column("list_hash", LargeBinary, nullable=False),
    Column("approved_by", BigInteger, ForeignKey("users.id")),
    Column("approved_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("used_run_id", BigInteger, ForeignKey("roster_runs.id")),
)
