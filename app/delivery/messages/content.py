"""Checks whether a provider can take the words and the data of a message. Pure.

A channel makes the same checks, because plans write messages of which nobody sees an answer.
"""

import json
from collections.abc import Mapping
from typing import Any

from app.delivery.messages.traits import traits_of

LARGEST_PUSH_BYTES = 4096
LARGEST_WEB_PUSH_BYTES = 3993
"""What fits the one record of 4,096 bytes that a browser takes, beside its header, end mark and tag."""
RESERVED_KEYS = frozenset({"from", "message_type"})
RESERVED_PREFIXES = ("google.", "gcm.")
_ANY_ID = "00000000-0000-0000-0000-000000000000"


def push_content(subject: str, body: str, data: Mapping[str, str]) -> dict[str, Any]:
    """The part of a push that counts for its size: what the phone shows, and the data for the app."""
    shown = {key: value for key, value in (("title", subject), ("body", body)) if value}
    return {"data": data} | ({"notification": shown} if shown else {})


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def fault_of_push(content: Mapping[str, Any], largest: int = LARGEST_PUSH_BYTES) -> str | None:
    """The error code of a push that FCM would refuse, or None. Push services of browsers take a little less."""
    if any(key in RESERVED_KEYS or key.startswith(RESERVED_PREFIXES) for key in content["data"]):
        return "RESERVED_KEY"
    return "PAYLOAD_TOO_LARGE" if len(as_json(content)) > largest else None


def problems_with_content(type_: str, subject: str, body: str, metadata: Mapping[str, Any]) -> dict[str, str]:
    """The problems of a new message, by field. The metadata has passed `check_metadata`."""
    traits = traits_of(type_)
    # A template of the provider is sent in place of the words.
    longest = None if "whatsappTemplate" in metadata else traits.longest_text
    if longest is not None and len(body or subject) > longest:
        return {"body": f"must have at most {longest} characters for this type"}
    if traits.is_push:
        fault = fault_of_push(push_content(subject, body, {**metadata.get("data", {}), "notificationId": _ANY_ID}))
        if fault == "RESERVED_KEY":
            return {"metadata": "has a key in `data` that FCM keeps for itself: from, message_type, google.… or gcm.…"}
        if fault is not None:
            return {"body": f"makes a push of more than {LARGEST_PUSH_BYTES} bytes, together with subject and data"}
    return {}
