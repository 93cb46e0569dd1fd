"""SMS through Twilio's Messages resource."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from app.delivery.channels.base import OutgoingMessage, Wiring
from app.delivery.channels.http import Answer, basic, judge_status, throttled
from app.delivery.channels.http_channel import HttpChannel, ProviderRequest, phone_of, words_of
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import Clock

TYPES = (NotificationType.SMS,)
POLICY = RetryPolicy(timeout_s=8.0, retries=2, repeatable=False)
SETTINGS = (
    "twilio_account_sid",
    "twilio_auth_token",
    "twilio_from",
    "twilio_base_url",
    "country_code",
    "sms_countries",
    "notification_queue_consumer_threads",
    *names_of_settings(TYPES[0]),
)


# Error codes of Twilio. For other codes the HTTP status decides.
_OPTED_OUT = 21610
# The number is invalid, cannot get SMS, is a landline, is a short code, is our own, or is not in use.
_NO_SUCH_PHONE = frozenset({21211, 21217, 21265, 21266, 21614, 21635, 30005, 30006})
# The phone has been off for days, or blocks us.
_PHONE_REFUSES = frozenset({30003, 30004})
_TOO_LONG = frozenset({21617, 21605})
_NOT_ALLOWED = frozenset({20003, 20008, 20403})
_BLOCKED = frozenset({20005, 30002, 90010})
# Too many requests, too many at the same time, or a full queue at the sender or the carrier.
_THROTTLED = frozenset({20429, 21611, 30001, 30022})
_OVERLOADED = frozenset({20500, 20503, 30017})
_NOT_SENT_STATUSES = frozenset({"failed", "undelivered", "canceled"})


@dataclass(frozen=True)
class Account:
    sid: str
    auth_token: str = field(repr=False)
    sender: str
    """A phone number, or the id of a messaging service (`MG…`) that chooses one."""
    base_url: str = "https://api.twilio.com"
    country_code: str = "90"
    countries: tuple[str, ...] = ()
    """The country codes that SMS go to; empty for all."""


class TwilioChannel(HttpChannel):
    def __init__(self, account: Account, clock: Clock, *, policy: RetryPolicy = POLICY, connections: int = 2) -> None:
        super().__init__("twilio", TYPES, policy, clock, connections=connections)
        self._account = account
        self._url = f"{account.base_url.rstrip('/')}/2010-04-01/Accounts/{quote(account.sid, safe='')}/Messages.json"

    def encode(self, message: OutgoingMessage) -> ProviderRequest:
        account = self._account
        sender_field = "MessagingServiceSid" if account.sender.startswith("MG") else "From"
        form = {
            "To": phone_of(message.notification, account.country_code, account.countries),
            sender_field: account.sender,
            "Body": words_of(message.notification),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return ProviderRequest(self._url, urlencode(form).encode(), headers, basic(account.sid, account.auth_token))

    def read(self, answer: Answer) -> SendResult:
        content = answer.json()
        now = self._clock.now()
        if answer.status >= 300:
            code = _number(content.get("code"))
            return _by_code(code, answer, now) or judge_status(answer, now, _name(code))
        if content.get("status") in _NOT_SENT_STATUSES:
            code = _number(content.get("error_code"))
            return _by_code(code, answer, now) or SendResult(Outcome.PERMANENT, _name(code) or "NOT_DELIVERED")
        sid = content.get("sid")
        if isinstance(sid, str) and sid:
            return SendResult(Outcome.SENT, provider_message_id=sid[:200])
        return SendResult(Outcome.UNKNOWN, "INVALID_ANSWER")


def _by_code(code: int | None, answer: Answer, now: datetime) -> SendResult | None:
    name = _name(code)
    if code == _OPTED_OUT:
        return SendResult(Outcome.RECIPIENT_GONE, name, at_fault=False, disables=True)
    if code in _NO_SUCH_PHONE:
        return SendResult(Outcome.RECIPIENT_GONE, name, at_fault=False)
    if code in _PHONE_REFUSES:
        return SendResult(Outcome.PERMANENT, name, at_fault=False)
    if code in _TOO_LONG:
        return SendResult(Outcome.PERMANENT, "PAYLOAD_TOO_LARGE", at_fault=False)
    if code in _NOT_ALLOWED:
        return SendResult(Outcome.PERMANENT, "AUTH_REJECTED")
    if code in _BLOCKED:
        return SendResult(Outcome.PERMANENT, "ACCOUNT_BLOCKED")
    if code in _THROTTLED:
        return throttled(answer, now, f"TWILIO_{code}")
    if code in _OVERLOADED:
        return replace(throttled(answer, now, f"TWILIO_{code}"), overloaded=True, at_fault=True)
    return None


def _number(value: Any) -> int | None:
    """The value if it has five digits, like all codes of Twilio. A longer number might be a phone number."""
    return value if isinstance(value, int) and 10_000 <= value <= 99_999 else None


def _name(code: int | None) -> str | None:
    return None if code is None else f"TWILIO_{code}"


def open_channel(wiring: Wiring) -> TwilioChannel | None:
    settings = wiring.settings
    if settings.twilio_account_sid is None:
        return None
    assert settings.twilio_auth_token and settings.twilio_from, "settings refuse half of an account"
    account = Account(
        sid=settings.twilio_account_sid,
        auth_token=settings.twilio_auth_token,
        sender=settings.twilio_from,
        base_url=settings.twilio_base_url,
        country_code=settings.country_code,
        countries=settings.sms_country_codes,
    )
    return TwilioChannel(
        account,
        wiring.clock,
        policy=policy_of(settings, TYPES[0], POLICY),
        connections=settings.notification_queue_consumer_threads,
    )
