"""What leaves for other services: results, dead letters and steps that somebody else carries out.

An event is a row in the transaction that gives the reason for it; the publisher puts it on its Redis stream.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Connection, DateTime, Identity, Index, Table, Text, func, text

from app.db.schema import metadata
from app.db.wake import WAKE_CHANNEL

EVENT_TOPIC = "event"
"""Announced when an event waits to be published."""


# Events that wait to be put on their streams; gone once Redis has them. Told as they were written, field by field in
# the order that their readers know.
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
    """The name of its stream, after the prefix of the settings."""
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
        told = json.dumps(rows, ensure_ascii=False)
        conn.execute(_PUT, {"rows": told, "channel": WAKE_CHANNEL, "event": EVENT_TOPIC})
