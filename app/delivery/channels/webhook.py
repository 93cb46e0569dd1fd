"""Webhooks: sends signed messages to URLs that users enter. The URLs are not trusted: redirects are not followed,
private addresses are refused, and the time and memory of a request are limited.
"""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from app.delivery.channels import webhook_wire
from app.delivery.channels.base import OutgoingMessage, SingleProvider, Wiring
from app.delivery.channels.connections import TimedBackend
from app.delivery.channels.http import Answer, HttpClient, judge_status
from app.delivery.channels.public_addresses import PrivateAddress, Resolver, require_public
from app.delivery.messages.addresses import InvalidAddress, check_address
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import CHALLENGE, NotificationType, Outcome
from app.foundation.clock import Clock

TYPES = (NotificationType.WEBHOOK,)
POLICY = RetryPolicy(timeout_s=5.0, retries=3)
SETTINGS = (
    "webhook_secret",
    "webhook_allow_private",
    "notification_queue_consumer_threads",
    *names_of_settings(TYPES[0]),
)


_PORTS = {"http": 80, "https": 443}


class WebhookChannel(SingleProvider):
    def __init__(
        self,
        clock: Clock,
        *,
        secret: str | None = None,
        allow_private: bool = False,
        policy: RetryPolicy = POLICY,
        connections: int = 8,
        resolver: Resolver | None = None,
        ca_file: str | None = None,
    ) -> None:
        super().__init__("webhook", TYPES, policy)
        self._clock = clock
        self._secrets = (secret,) if secret else ()
        check = None if allow_private else require_public
        self._http = HttpClient(
            policy,
            connections=connections,
            network=TimedBackend(resolver, check),
            ca_file=ca_file,
            # A proxy would connect to any address, also to private ones.
            trust_env=False,
        )

    def provider(self, message: OutgoingMessage) -> str:
        """Each receiver has its own breaker."""
        try:
            parts = urlsplit(message.notification.recipient)
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            return self.name
        return f"{parts.hostname}:{port}" if parts.hostname and port else self.name

    def recipient(self, message: OutgoingMessage) -> str:
        """A receiver is its own provider, so each message counts."""
        return str(message.id)

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        return [self._send(message) for message in messages]

    def _send(self, message: OutgoingMessage) -> SendResult:
        secrets = message.recipient_channel.secrets if message.recipient_channel else self._secrets
        if not secrets:
            return SendResult(Outcome.PERMANENT, "NO_SECRET")
        try:
            url = check_address(NotificationType.WEBHOOK, message.notification.recipient, "")
        except InvalidAddress:
            return SendResult(Outcome.PERMANENT, "INVALID_ADDRESS")
        meta = message.recipient_channel.meta if message.recipient_channel else {}
        # Slack does not echo a challenge. That it takes the message proves that the address is one of its own.
        challenge = None if webhook_wire.is_for_slack(meta) else challenge_of(message)
        body = (
            webhook_wire.encode_for_slack(message.notification)
            if webhook_wire.is_for_slack(meta)
            else webhook_wire.encode(message.notification, challenge)
        )
        extra = webhook_wire.extra_headers(meta)
        headers = webhook_wire.headers(message.notification, secrets, extra, self._clock.now(), body)
        try:
            answer = self._http.post(url, body, headers, needs_body=challenge is not None)
        except PrivateAddress:
            return SendResult(Outcome.PERMANENT, "PRIVATE_ADDRESS")
        return self._judge(answer, challenge) if isinstance(answer, Answer) else answer

    def _judge(self, answer: Answer, challenge: str | None) -> SendResult:
        if 300 <= answer.status < 400:
            return SendResult(Outcome.PERMANENT, "REDIRECT_REFUSED")
        if answer.status == 410:
            return SendResult(Outcome.RECIPIENT_GONE, "HTTP_410", disables=True, at_fault=False)
        if answer.status == 401:
            # At other providers a 401 means that our account is refused; here it concerns only this receiver.
            return SendResult(Outcome.PERMANENT, "HTTP_401", at_fault=False)
        result = judge_status(answer, self._clock.now())
        if result.outcome is Outcome.SENT and challenge is not None:
            return result if webhook_wire.is_echoed(challenge, answer.json()) else _CHALLENGE_FAILED
        return replace(result, at_fault=answer.status >= 500) if answer.status >= 400 else result

    def close(self) -> None:
        self._http.close()


_CHALLENGE_FAILED = SendResult(Outcome.PERMANENT, "CHALLENGE_FAILED", at_fault=False)


def challenge_of(message: OutgoingMessage) -> str | None:
    """The challenge of a verification. Only channels of the directory are verified; without one, the key in the
    metadata is the caller's own data."""
    challenge = message.notification.metadata.get(CHALLENGE)
    return challenge if message.recipient_channel is not None and isinstance(challenge, str) else None


def open_channel(wiring: Wiring) -> WebhookChannel:
    settings = wiring.settings
    return WebhookChannel(
        wiring.clock,
        secret=settings.webhook_secret,
        allow_private=settings.webhook_allow_private,
        policy=policy_of(settings, TYPES[0], POLICY),
        connections=settings.notification_queue_consumer_threads,
    )
