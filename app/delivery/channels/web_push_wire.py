"""The requests to push services (RFC 8030) and what their answers mean. No I/O."""

import hashlib
from datetime import datetime
from urllib.parse import urlsplit

from app.delivery.channels.base import OutgoingMessage
from app.delivery.channels.http import Answer, judge_status
from app.delivery.channels.http_channel import MessageRefused, ProviderRequest
from app.delivery.channels.push_encryption import encrypt
from app.delivery.channels.push_subscription import PushSubscription, read_subscription
from app.delivery.channels.vapid_tokens import VapidTokens
from app.delivery.messages.addresses import InvalidAddress
from app.delivery.messages.content import LARGEST_WEB_PUSH_BYTES, as_json, fault_of_push, push_content
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import Outcome
from app.foundation.base64url import encode_base64url

LONGEST_TTL_S = 28 * 24 * 3600
DEFAULT_RETRY_AFTER_S = 60.0
TOPIC_BYTES = 24
"""As base64url 32 characters, the most that a topic may have."""


def encode_request(message: OutgoingMessage, tokens: VapidTokens, now: datetime) -> ProviderRequest:
    """May raise `MessageRefused`. The service worker gets the same content as an app from FCM."""
    notification = message.notification
    content = push_content(notification.subject, notification.body, notification.data)
    fault = fault_of_push(content, LARGEST_WEB_PUSH_BYTES)
    if fault is not None:
        raise MessageRefused(fault)
    subscription = subscription_of(message)
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(_ttl_s(message, now)),
        "Urgency": "high",
        "Topic": _topic(message),
    }
    return ProviderRequest(
        subscription.endpoint,
        encrypt(as_json(content), subscription),
        headers,
        tokens.authorization(subscription.origin, now.timestamp()),
    )


def subscription_of(message: OutgoingMessage) -> PushSubscription:
    try:
        return read_subscription(message.address)
    except InvalidAddress:
        raise MessageRefused("INVALID_ADDRESS") from None


def host_of(message: OutgoingMessage) -> str:
    """The push service of a browser."""
    return urlsplit(subscription_of(message).endpoint).netloc


def read_answer(answer: Answer, now: datetime) -> SendResult:
    if answer.status in (404, 410):
        return SendResult(Outcome.RECIPIENT_GONE, "SUBSCRIPTION_GONE")
    if answer.status in (401, 403):
        return SendResult(Outcome.PERMANENT, "VAPID_REJECTED", at_fault=False)
    if 300 <= answer.status < 400:
        return SendResult(Outcome.PERMANENT, "REDIRECT_REFUSED", at_fault=False)
    return judge_status(answer, now, throttled_s=DEFAULT_RETRY_AFTER_S)


def _ttl_s(message: OutgoingMessage, now: datetime) -> int:
    expires_at = message.notification.expires_at
    if expires_at is None:
        return LONGEST_TTL_S
    return min(max(int((expires_at - now).total_seconds()), 0), LONGEST_TTL_S)


def _topic(message: OutgoingMessage) -> str:
    """Of the messages about one task, a browser that was away gets the newest. A hash, because push services see it."""
    about = message.notification.data.get("taskId") or str(message.id)
    return encode_base64url(hashlib.sha256(about.encode()).digest()[:TOPIC_BYTES])
