"""SMS through any gateway that takes a POST. One template writes the request, another one reads the answer."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from app.delivery.channels.base import OutgoingMessage, Wiring
from app.delivery.channels.http import Answer, as_code, bearer, judge_status
from app.delivery.channels.http_channel import HttpChannel, MessageRefused, ProviderRequest, phone_of, words_of
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import Clock
from app.settings.gateway_templates import GatewayRenderFailed, answer_template, render, request_template

TYPES = (NotificationType.SMS,)
POLICY = RetryPolicy(timeout_s=8.0, retries=2, repeatable=False)
SETTINGS = (
    "sms_gateway_url",
    "sms_gateway_token",
    "sms_gateway_content_type",
    "sms_gateway_request",
    "sms_gateway_answer",
    "country_code",
    "sms_countries",
    "notification_queue_consumer_threads",
    *names_of_settings(TYPES[0]),
)


_ID = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True)
class Gateway:
    """The settings of a gateway. `request` and `answer` are Jinja templates; None means the default."""

    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    content_type: str = "application/json"
    request: str | None = None
    answer: str | None = None
    country_code: str = "90"
    countries: tuple[str, ...] = ()
    """The country codes that SMS go to; empty for all."""


class SmsGatewayChannel(HttpChannel):
    def __init__(self, gateway: Gateway, clock: Clock, *, policy: RetryPolicy = POLICY, connections: int = 2) -> None:
        super().__init__("sms_gateway", TYPES, policy, clock, connections=connections)
        self._gateway = gateway
        self._request = request_template(gateway.request, gateway.content_type)
        self._answer = answer_template(gateway.answer)

    def encode(self, message: OutgoingMessage) -> ProviderRequest:
        gateway, notification = self._gateway, message.notification
        values = {
            "id": str(notification.id),
            "to": phone_of(notification, gateway.country_code, gateway.countries),
            "text": words_of(notification),
            "priority": notification.priority.value,
            "token": gateway.token or "",
        }
        try:
            body = render(self._request, values).encode()
        except GatewayRenderFailed:
            raise MessageRefused("TEMPLATE_RENDER_FAILED") from None
        # A gateway that supports the header recognises a repeated message by it.
        headers = {"Content-Type": gateway.content_type, "Idempotency-Key": str(notification.id)}
        return ProviderRequest(gateway.url, body, headers, bearer(gateway.token) if gateway.token else None)

    def read(self, answer: Answer) -> SendResult:
        usual = _by_status(judge_status(answer, self._clock.now()), answer)
        if self._answer is None:
            return usual
        values = {
            "status": answer.status,
            "json": _json(answer),
            "text": answer.body.decode(errors="replace"),
            "headers": answer.headers,
        }
        try:
            verdict, _, rest = render(self._answer, values).strip().partition(" ")
        except GatewayRenderFailed:
            return _result_of_unreadable(usual)
        if not verdict:
            return usual
        return _by_verdict(verdict, rest.strip(), usual, answer.status)


def _by_status(result: SendResult, answer: Answer) -> SendResult:
    if answer.status == 403:
        return SendResult(Outcome.PERMANENT, "AUTH_REJECTED")
    if result.outcome is not Outcome.SENT:
        return result
    content = answer.json()
    return replace(
        result, provider_message_id=_id(content.get("id") or content.get("messageId") or content.get("message_id"))
    )


def _by_verdict(verdict: str, rest: str, usual: SendResult, status: int) -> SendResult:
    """The template decides the outcome. For outcomes that are retried, the pause that the provider asked for and the
    fault are still those of the HTTP status."""
    if verdict == Outcome.SENT:
        return SendResult(Outcome.SENT, provider_message_id=_id(rest))
    code = as_code(rest.upper()) or f"HTTP_{status}"
    wait_s, overloaded = usual.retry_after_s, usual.overloaded
    match verdict:
        case Outcome.TRANSIENT | Outcome.UNKNOWN:
            return SendResult(
                Outcome(verdict), code, retry_after_s=wait_s, overloaded=overloaded, at_fault=usual.at_fault
            )
        case Outcome.PERMANENT:
            return SendResult(Outcome.PERMANENT, code)
        case Outcome.RECIPIENT_GONE:
            return SendResult(Outcome.RECIPIENT_GONE, code, at_fault=False)
        case _:
            return _result_of_unreadable(usual)


def _result_of_unreadable(usual: SendResult) -> SendResult:
    """The result if the template cannot read the answer. A status of failure counts. After a status of success the
    outcome is unknown."""
    return SendResult(Outcome.UNKNOWN, "INVALID_ANSWER") if usual.outcome is Outcome.SENT else usual


def _json(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        return None


def _id(value: Any) -> str | None:
    text = str(value) if isinstance(value, str | int) else ""
    return text if _ID.fullmatch(text) else None


def open_channel(wiring: Wiring) -> SmsGatewayChannel | None:
    settings = wiring.settings
    if settings.sms_gateway_url is None:
        return None
    gateway = Gateway(
        url=settings.sms_gateway_url,
        token=settings.sms_gateway_token,
        content_type=settings.sms_gateway_content_type,
        request=settings.sms_gateway_request,
        answer=settings.sms_gateway_answer,
        country_code=settings.country_code,
        countries=settings.sms_country_codes,
    )
    return SmsGatewayChannel(
        gateway,
        wiring.clock,
        policy=policy_of(settings, TYPES[0], POLICY),
        connections=settings.notification_queue_consumer_threads,
    )
