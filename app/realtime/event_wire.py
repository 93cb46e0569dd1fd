"""Server-Sent Events as bytes."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.foundation.clock import rfc3339
from app.realtime.contract import EndReason

RETRY_MS = 2000
"""After this time a client connects again."""


def event_block(fields: Mapping[str, Any]) -> bytes:
    """The JSON has no line breaks: `json` escapes them."""
    head = f"id: {fields['id']}\n" if "id" in fields else ""
    return f"{head}event: {fields['type']}\ndata: {_json(fields)}\n\n".encode()


def ready_block(position: int, now: datetime) -> bytes:
    return f"retry: {RETRY_MS}\n".encode() + event_block({"id": position, "type": "READY", "at": _time(now)})


def time_block(now: datetime) -> bytes:
    return event_block({"type": "TIME", "at": _time(now)})


def end_block(reason: EndReason) -> bytes:
    return event_block({"type": "END", "reason": reason.value})


def _json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _time(moment: datetime) -> str:
    return rfc3339(moment, "milliseconds")
