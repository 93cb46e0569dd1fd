"""The table of message templates. Operators edit them."""

from sqlalchemy import BigInteger, CheckConstraint, Column, DateTime, Identity, Index, Table, Text, func

from app.db.schema import metadata
from app.db.tables import IN_USE

# Jinja templates, one for each key and locale (see `templates.choose_template`).
message_templates = Table(
    "message_templates",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("key", Text, nullable=False),
    Column("locale", Text, nullable=False, server_default="tr"),
    Column("subject", Text, nullable=False, server_default=""),
    Column("body", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("retired_at", DateTime(timezone=True)),
    CheckConstraint("locale IN ('tr', 'en')", name="locale"),
    Index("message_templates_once", "key", "locale", unique=True, postgresql_where=IN_USE),
)
