"""WhatsApp through Meta's Cloud API.

More than 24 hours after a person last wrote, WhatsApp takes approved templates only. `metadata["whatsappTemplate"]`
names the template, its language and its parameters.
"""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from app.delivery.channels.base import OutgoingMessage, Wiring
from app.delivery.channels.http import Answer, as_list, as_object, bearer, judge_status, throttled
from app.delivery.channels.http_channel import HttpChannel, MessageRefused, ProviderRequest, phone_of, words_of
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import Notification, NotificationType, Outcome
from app.foundation.clock import Clock

TYPES = (NotificationType.WHATSAPP,)
POLICY = RetryPolicy(timeout_s=8.0, retries=1, repeatable=False)
SETTINGS = (
    "whatsapp_phone_number_id",
    "whatsapp_access_token",
    "whatsapp_base_url",
    "country_code",
    "notification_queue_consumer_threads",
    *names_of_settings(TYPES[0]),
)


# The error codes of Meta decide, because its HTTP statuses are misleading: a missing permission is a 500.
_NOT_ALLOWED = frozenset({0, 3, 10, 190, 131005}) | frozenset(range(200, 300))
_BLOCKED = frozenset({368, 131031, 131042, 131045})
# Too many requests by the app, the account or the number, or too many messages that people reported as spam.
_THROTTLED = frozenset({4, 80007, 130429, 131048, 133016})
# One person gets at most one message in six seconds.
_THROTTLED_FOR_RECIPIENT = 131056
_PAIR_PAUSE_S = 6.0
_OVERLOADED = frozenset({1, 2, 131000, 131016, 131057, 133004})
# The number has no WhatsApp or a version that is too old, or a test account may not write to it.
_NOT_REACHABLE = frozenset({131026, 131030})
# WhatsApp refuses the message for this person: it has to be a template, or the person is part of an experiment, gets
# too much advertising, or does not want any.
_REFUSED_FOR_RECIPIENT = frozenset({131047, 130472, 131049, 131050})


@dataclass(frozen=True)
class WhatsAppNumber:
    phone_number_id: str
    access_token: str = field(repr=False)
    base_url: str = "https://graph.facebook.com/v21.0"
    country_code: str = "90"


class WhatsAppChannel(HttpChannel):
    def __init__(
        self, sender: WhatsAppNumber, clock: Clock, *, policy: RetryPolicy = POLICY, connections: int = 2
    ) -> None:
        super().__init__("whatsapp", TYPES, policy, clock, connections=connections)
        self._sender = sender
        self._url = f"{sender.base_url.rstrip('/')}/{quote(sender.phone_number_id, safe='')}/messages"

    def encode(self, message: OutgoingMessage) -> ProviderRequest:
        payload: dict[str, Any] = {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": phone_of(message.notification, self._sender.country_code),
        }
        body = json.dumps(payload | _content(message.notification), ensure_ascii=False).encode()
        return ProviderRequest(
            self._url, body, {"Content-Type": "application/json; charset=utf-8"}, bearer(self._sender.access_token)
        )

    def read(self, answer: Answer) -> SendResult:
        content = answer.json()
        now = self._clock.now()
        error = as_object(content.get("error"))
        code = _number(error.get("code"))
        if answer.status >= 300 or error:
            return _by_code(code, answer, now) or _by_status(answer, now, code)
        for message in as_list(content.get("messages"))[:1]:
            id_ = as_object(message).get("id")
            if isinstance(id_, str) and id_:
                return SendResult(Outcome.SENT, provider_message_id=id_[:200])
        return SendResult(Outcome.UNKNOWN, "INVALID_ANSWER")


def _content(notification: Notification) -> dict[str, Any]:
    chosen: Any = notification.metadata.get("whatsappTemplate")
    if chosen is not None:
        return {"type": "template", "template": _template(as_object(chosen))}
    return {"type": "text", "text": {"preview_url": False, "body": words_of(notification)}}


def _template(chosen: dict[str, Any]) -> dict[str, Any]:
    name, language = chosen.get("name"), chosen.get("language", "tr")
    if not (isinstance(name, str) and name and isinstance(language, str)):
        raise MessageRefused("INVALID_TEMPLATE")
    template: dict[str, Any] = {"name": name, "language": {"code": language}}
    filled = _parameters(chosen.get("parameters", []))
    return template | ({"components": [{"type": "body", "parameters": filled}]} if filled else {})


def _parameters(given: Any) -> list[dict[str, Any]]:
    """A list holds parameters by position, an object holds named parameters."""
    if isinstance(given, dict):
        filled = [{"type": "text", "parameter_name": name, "text": value} for name, value in as_object(given).items()]
    elif isinstance(given, list):
        filled = [{"type": "text", "text": value} for value in as_list(given)]
    else:
        raise MessageRefused("INVALID_TEMPLATE")
    if not all(isinstance(parameter["text"], str | int | float) for parameter in filled):
        raise MessageRefused("INVALID_TEMPLATE")
    return [{**parameter, "text": str(parameter["text"])} for parameter in filled]


def _by_code(code: int | None, answer: Answer, now: datetime) -> SendResult | None:
    name = f"WHATSAPP_{code}"
    if code in _NOT_ALLOWED:
        return SendResult(Outcome.PERMANENT, "AUTH_REJECTED")
    if code in _BLOCKED:
        return SendResult(Outcome.PERMANENT, "ACCOUNT_BLOCKED")
    if code in _THROTTLED:
        return throttled(answer, now, name)
    if code == _THROTTLED_FOR_RECIPIENT:
        return throttled(answer, now, name, _PAIR_PAUSE_S)
    if code in _OVERLOADED:
        return replace(throttled(answer, now, name), overloaded=True, at_fault=True)
    if code in _NOT_REACHABLE:
        return SendResult(Outcome.RECIPIENT_GONE, name, at_fault=False)
    if code in _REFUSED_FOR_RECIPIENT:
        return SendResult(Outcome.PERMANENT, name, at_fault=False)
    return None


def _by_status(answer: Answer, now: datetime, code: int | None) -> SendResult:
    name = None if code is None else f"WHATSAPP_{code}"
    if answer.status < 300:
        return SendResult(Outcome.PERMANENT, name or "INVALID_ANSWER")
    return judge_status(answer, now, name)


def _number(value: Any) -> int | None:
    """None for a number that is longer than the codes of Meta, because it might be a phone number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 9_999_999 else None


def open_channel(wiring: Wiring) -> WhatsAppChannel | None:
    settings = wiring.settings
    if settings.whatsapp_phone_number_id is None:
        return None
    assert settings.whatsapp_access_token, "settings refuse half of a sender"
    sender = WhatsAppNumber(
        phone_number_id=settings.whatsapp_phone_number_id,
        access_token=settings.whatsapp_access_token,
        base_url=settings.whatsapp_base_url,
        country_code=settings.country_code,
    )
    return WhatsAppChannel(
        sender,
        wiring.clock,
        policy=policy_of(settings, TYPES[0], POLICY),
        connections=settings.notification_queue_consumer_threads,
    )
