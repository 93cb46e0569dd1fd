"""The requests to webhooks, signed as Standard Webhooks requires, and the headers that receivers may choose. No I/O."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.delivery.channels.http import as_object
from app.delivery.messages.values import Notification
from app.foundation.clock import utc_milliseconds
from app.settings import signing_secrets

DEFAULT_TYPE = "notification"
VERIFICATION_TYPE = "channel.verification"
SLACK = "slack"
"""The value of `format` in the metadata of a channel."""

MOST_HEADERS = 20
LONGEST_HEADER = 1024
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_VALUE = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
# A receiver may not choose these headers, because we set them, or because they control the connection. Otherwise a
# request could be split in two, or carry a forged signature.
_RESERVED = re.compile(
    r"host|content-.*|webhook-.*|accept-encoding|connection|expect|keep-alive|proxy-.*|te|trailers?|transfer-encoding"
    r"|upgrade|http2-settings|user-agent|cookie",
    re.IGNORECASE,
)


def is_for_slack(meta: Mapping[str, Any]) -> bool:
    """Slack's incoming webhooks take a text, and refuse everything else."""
    return meta.get("format") == SLACK


def encode_for_slack(notification: Notification) -> bytes:
    text = f"*{_for_slack(notification.subject)}*\n{_for_slack(notification.body)}"
    return json.dumps({"text": text}, ensure_ascii=False, separators=(",", ":")).encode()


def _for_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def encode(notification: Notification, challenge: str | None = None) -> bytes:
    """The same notification gives the same bytes at every attempt: the timestamp is that of the notification."""
    type_ = VERIFICATION_TYPE if challenge is not None else notification.data.get("type") or DEFAULT_TYPE
    data = {"challenge": challenge} if challenge is not None else _content(notification)
    message = {"type": type_, "timestamp": utc_milliseconds(notification.created_at), "data": data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _content(notification: Notification) -> dict[str, Any]:
    return {
        "id": str(notification.id),
        "subject": notification.subject,
        "body": notification.body,
        "priority": notification.priority,
        "metadata": notification.metadata,
    }


def sign(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """One signature for each secret, so that a receiver can use the old or the new secret while they change."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_signature(signing_secrets.decode(secret), signed)}" for secret in secrets)


def _signature(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(
    notification: Notification, secrets: Sequence[str], extra: Mapping[str, str], now: datetime, body: bytes
) -> dict[str, str]:
    message_id, timestamp = str(notification.id), int(now.timestamp())
    return {
        **extra,
        "Content-Type": "application/json; charset=utf-8",
        "Accept-Encoding": "identity",
        "User-Agent": "Yaninda-Webhook/1",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secrets, message_id, timestamp, body),
    }


def is_safe_header(name: str, value: Any) -> bool:
    """True if a receiver may choose this header."""
    # Many servers treat `_` and `-` alike.
    if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name.replace("_", "-")):
        return False
    return isinstance(value, str) and len(value) <= LONGEST_HEADER and _VALUE.fullmatch(value) is not None


def extra_headers(meta: Mapping[str, Any]) -> dict[str, str]:
    """The safe headers in a channel's metadata, at most `MOST_HEADERS`."""
    chosen = as_object(meta.get("headers"))
    safe = [(name, str(value)) for name, value in chosen.items() if is_safe_header(name, value)]
    return dict(safe[:MOST_HEADERS])


def is_echoed(challenge: str, answer: Mapping[str, Any]) -> bool:
    echoed = answer.get("challenge")
    return isinstance(echoed, str) and hmac.compare_digest(echoed.encode(errors="replace"), challenge.encode())
