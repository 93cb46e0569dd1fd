"""The common part of channels that send each message with one POST."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from app.delivery.channels.base import OutgoingMessage, SingleProvider
from app.delivery.channels.http import Answer, HttpClient
from app.delivery.messages.addresses import InvalidAddress, check_address, is_abroad
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.traits import traits_of
from app.delivery.messages.values import Notification, Outcome
from app.foundation.clock import Clock

log = structlog.get_logger(__name__)

# After these errors, no message of the channel arrives until an operator acts.
_OUR_FAULT = frozenset({"AUTH_REJECTED", "ACCOUNT_BLOCKED"})


@dataclass(frozen=True)
class ProviderRequest:
    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    auth: str | None = field(default=None, repr=False)
    """The Authorization header."""


class MessageRefused(Exception):
    """The message cannot be sent as it is; no request was made."""

    def __init__(self, error_code: str) -> None:
        super().__init__(error_code)
        self.error_code = error_code


class HttpChannel(SingleProvider, ABC):
    def __init__(
        self, name: str, types: Collection[str], policy: RetryPolicy, clock: Clock, *, connections: int
    ) -> None:
        super().__init__(name, types, policy)
        self._clock = clock
        self._http = HttpClient(policy, connections=connections)

    @abstractmethod
    def encode(self, message: OutgoingMessage) -> ProviderRequest:
        """May raise `MessageRefused`."""

    @abstractmethod
    def read(self, answer: Answer) -> SendResult: ...

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        return [self._send(message) for message in messages]

    def _send(self, message: OutgoingMessage) -> SendResult:
        try:
            request = self.encode(message)
        except MessageRefused as refused:
            return SendResult(Outcome.PERMANENT, refused.error_code, at_fault=False)
        answer = self._http.post(request.url, request.body, request.headers, auth=request.auth)
        if not isinstance(answer, Answer):
            return answer
        result = self.read(answer)
        if result.error_code in _OUR_FAULT:
            log.error(
                "provider_refuses_us",
                channel=self.name,
                error_code=result.error_code,
                status=answer.status,
                notification_id=str(message.id),
            )
        return result

    def close(self) -> None:
        self._http.close()


def phone_of(notification: Notification, country_code: str, countries: tuple[str, ...] = ()) -> str:
    try:
        phone = check_address(notification.notification_type, notification.recipient, country_code)
    except InvalidAddress:
        raise MessageRefused("INVALID_ADDRESS") from None
    if is_abroad(notification.notification_type, phone, countries):
        raise MessageRefused("COUNTRY_NOT_ALLOWED")
    return phone


def words_of(notification: Notification) -> str:
    """The text for providers without subjects: the body, or the subject if there is no body."""
    text = notification.body or notification.subject
    if not text:
        raise MessageRefused("EMPTY_MESSAGE")
    longest = traits_of(notification.notification_type).longest_text
    if longest is not None and len(text) > longest:
        raise MessageRefused("PAYLOAD_TOO_LARGE")
    return text
