"""The outbox: events for other services.

An event is a row, written in the transaction that causes it. The publisher (`redis_store/publisher.py`) moves it to its
Redis stream.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Connection, DateTime, Identity, Index, Table, Text, func, text

from app.db.schema import metadata
from app.db.wake import WAKE_CHANNEL

EVENT_TOPIC = "event"
"""Topic of the NOTIFY after an event was stored."""


# Rows are deleted once Redis has them. The payload is `json`, not `jsonb`, which would change the order of its fields.
action_events = Table(
    "action_events",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True),
    Column("topic", Text, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Index("action_events_topic_idx", "topic", "id"),
)


@dataclass(frozen=True)
class Event:
    topic: str
    """The name of the Redis stream, without the prefix from the settings."""
    payload: dict[str, Any]


_PUT = text(
    """
    WITH put AS (
        INSERT INTO action_events (topic, payload)
        SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row(topic text, payload json)
    )
    SELECT pg_notify(:channel, :event)
    """
)


def put(conn: Connection, events: Sequence[Event]) -> None:
    if events:
        rows = [{"topic": event.topic, "payload": event.payload} for event in events]
        rows_json = json.dumps(rows, ensure_ascii=False)
        conn.execute(_PUT, {"rows": rows_json, "channel": WAKE_CHANNEL, "event": EVENT_TOPIC})
