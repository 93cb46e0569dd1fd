"""What leaves for other services: results, dead letters and steps that somebody else carries out.

An event is a row in the transaction that gives the reason for it; the publisher puts it on its Redis stream.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, text

from app.delivery.wake import EVENT_TOPIC, WAKE_CHANNEL


class Topic(StrEnum):
    """Names of streams, after the prefix of the settings."""

    REQUESTED = "action.requested"
    EXECUTED = "action.executed"
    FAILED = "action.failed"
    DEAD_LETTER = "dlq.action"
    HANDOVER = "action.handover"


@dataclass(frozen=True)
class Event:
    topic: Topic
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
