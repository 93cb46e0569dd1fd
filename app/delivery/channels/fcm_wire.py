"""The requests and answers of Firebase Cloud Messaging (HTTP v1). No I/O."""

from datetime import datetime
from typing import Any

from app.delivery.channels.base import OutgoingMessage
from app.delivery.channels.http import Answer, as_code, as_list, as_object, judge_status
from app.delivery.messages.content import as_json, fault_of_push, push_content
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import Outcome
from app.users.models import AddressKind

LONGEST_TTL_S = 28 * 24 * 3600
DEFAULT_RETRY_AFTER_S = 60.0

_FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_TOKEN_FIELDS = frozenset({"message.token", "message.fid"})


class PushRefused(Exception):
    """FCM would not take the message; no request was made."""

    def __init__(self, error_code: str) -> None:
        super().__init__(error_code)
        self.error_code = error_code


def encode_message(message: OutgoingMessage, now: datetime) -> bytes:
    assert message.device is not None, "the dispatcher gives this channel only messages with a device"
    notification = message.notification
    content = push_content(notification.subject, notification.body, notification.data)
    fault = fault_of_push(content)
    if fault is not None:
        raise PushRefused(fault)
    address = "fid" if message.device.address_kind is AddressKind.FID else "token"
    encoded = {address: message.device.token, **content, "android": _android(message, now), "apns": _apns(message)}
    return as_json({"message": encoded})


def _android(message: OutgoingMessage, now: datetime) -> dict[str, Any]:
    android: dict[str, Any] = {"priority": "high"}
    if message.notification.expires_at is not None:
        left_s = int((message.notification.expires_at - now).total_seconds())
        android["ttl"] = f"{min(max(left_s, 0), LONGEST_TTL_S)}s"
    if not message.notification.is_data_only:
        # A repeated message replaces the one that the phone shows.
        android["notification"] = {"tag": str(message.id)}
    return android


def _apns(message: OutgoingMessage) -> dict[str, Any]:
    headers = {"apns-collapse-id": str(message.id)}
    if message.notification.expires_at is not None:
        headers["apns-expiration"] = str(int(message.notification.expires_at.timestamp()))
    if message.notification.is_data_only:
        # Apple refuses a background push of priority 10.
        headers |= {"apns-priority": "5", "apns-push-type": "background"}
        return {"headers": headers, "payload": {"aps": {"content-available": 1}}}
    headers |= {"apns-priority": "10", "apns-push-type": "alert"}
    return {"headers": headers, "payload": {"aps": {"sound": "default"}}}


def read_answer(answer: Answer, now: datetime) -> SendResult:
    content = answer.json()
    if answer.status == 200:
        name = content.get("name")
        if isinstance(name, str):
            return SendResult(Outcome.SENT, provider_message_id=name[:200])
        return SendResult(Outcome.UNKNOWN, "INVALID_ANSWER")
    error = as_object(content.get("error"))
    details = [as_object(detail) for detail in as_list(error.get("details"))]
    code = _error_code(error, details)
    if code == "UNREGISTERED":
        return SendResult(Outcome.RECIPIENT_GONE, code)
    if answer.status == 400 and _token_is_at_fault(error, details):
        return SendResult(Outcome.RECIPIENT_GONE, "INVALID_TOKEN")
    if answer.status < 300:
        return SendResult(Outcome.UNKNOWN, "INVALID_ANSWER")
    return judge_status(answer, now, code, throttled_s=DEFAULT_RETRY_AFTER_S)


def _error_code(error: dict[str, Any], details: list[dict[str, Any]]) -> str | None:
    codes = [detail.get("errorCode") for detail in details if detail.get("@type") == _FCM_ERROR]
    return next(filter(None, map(as_code, (*codes, error.get("status")))), None)


def _token_is_at_fault(error: dict[str, Any], details: list[dict[str, Any]]) -> bool:
    """INVALID_ARGUMENT means a bad token or a bad payload. A device with a bad token is deleted, so the two must not be
    confused.

    For a payload, Firebase names the field in `BadRequest` details. For an invalid token, it documents an `FcmError`
    without them, and the message that is matched here.
    """
    violations = [
        as_object(violation)
        for detail in details
        if detail.get("@type") == _BAD_REQUEST
        for violation in as_list(detail.get("fieldViolations"))
    ]
    if violations:
        return all(violation.get("field") in _TOKEN_FIELDS for violation in violations)
    from_fcm = any(
        detail.get("@type") == _FCM_ERROR and detail.get("errorCode") == "INVALID_ARGUMENT" for detail in details
    )
    return from_fcm and "registration token is not a valid" in str(error.get("message"))
