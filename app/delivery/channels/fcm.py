"""Push through Firebase Cloud Messaging.

firebase-admin handles the service account, but not the HTTP calls: its own sender retries (a 503 became five requests,
a read timeout a second push on the phone), waits for up to two minutes, and has no setting for the address. Here one
message is one request, and only the dispatcher retries.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue

import structlog

from app.delivery.channels.base import MayBegin, OutgoingMessage, SingleProvider, Wiring
from app.delivery.channels.fcm_auth import AccessTokens, CredentialsRejected, TokenUnavailable
from app.delivery.channels.fcm_wire import PushRefused, encode_message, read_answer
from app.delivery.channels.http import Answer, HttpClient, bearer
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import Clock
from app.foundation.logs import describe_error
from app.settings.settings import PushMode

log = structlog.get_logger(__name__)

TYPES = (NotificationType.PUSH,)
# FCM asks for a pause of at least 10 s after a 5xx. A repeated push replaces the one that the phone shows.
POLICY = RetryPolicy(timeout_s=3.0, retries=2, overloaded_backoff_s=(10.0, 30.0, 60.0))
SETTINGS = ("push", "firebase_credentials", "fcm_base_url", "fcm_connections", *names_of_settings(TYPES[0]))


# These errors concern the whole project, not one phone: no push arrives until an operator acts.
_OUR_FAULT = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "THIRD_PARTY_AUTH_ERROR"})

# If FCM answers slowly, the other messages of a batch are not begun, because their leases would run out.
_BEGIN_WITHIN_S = 5.0


class FcmChannel(SingleProvider):
    """FCM has no request for several messages, so a batch is sent over several connections at the same time."""

    needs_device = True

    def __init__(
        self,
        credentials_path: str,
        clock: Clock,
        *,
        base_url: str = "https://fcm.googleapis.com",
        policy: RetryPolicy = POLICY,
        connections: int = 8,
        begin_within_s: float = _BEGIN_WITHIN_S,
    ) -> None:
        super().__init__("fcm", TYPES, policy)
        self._clock = clock
        self._http = HttpClient(policy, connections=connections)
        self._tokens = AccessTokens(credentials_path, self._http)
        self._url = f"{base_url.rstrip('/')}/v1/projects/{self._tokens.project_id}/messages:send"
        self._begin_within_s = begin_within_s
        self._connections = connections
        # Enough that the connections seldom wait for the last answers of a batch, and so few that a message which comes
        # later does not wait long for its own.
        self.batch_size = 4 * connections
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix="fcm")

    @property
    def longest_s(self) -> float:
        # Fetching an access token and sending may take one timeout each.
        return self._begin_within_s + 2 * self.policy.timeout_s

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult | None]:
        results = dict(self.answers(messages, lambda: True))
        return [results[place] for place in range(len(messages))]

    def answers(
        self, messages: Sequence[OutgoingMessage], may_begin: MayBegin
    ) -> Iterator[tuple[int, SendResult | None]]:
        """Holds no more messages at once than there are connections, so that two batches share them evenly."""
        until = time.monotonic() + self._begin_within_s
        answered: SimpleQueue[tuple[int, SendResult | None]] = SimpleQueue()

        def send(place: int) -> None:
            begins = may_begin() and time.monotonic() <= until
            answered.put((place, self._send_apart(messages[place]) if begins else None))

        if len(messages) == 1:
            send(0)
            yield answered.get()
            return
        waiting = iter(range(len(messages)))
        for place in islice(waiting, self._connections):
            self._pool.submit(send, place)
        for _ in messages:
            answer = answered.get()
            for place in islice(waiting, 1):
                self._pool.submit(send, place)
            yield answer

    def _send_apart(self, message: OutgoingMessage) -> SendResult:
        """An unexpected error of one message must not lose the results of the others in its batch."""
        try:
            return self._send(message)
        except Exception as error:
            log.error("channel_failed", channel=self.name, notification_id=str(message.id), **describe_error(error))
            return SendResult(Outcome.UNKNOWN, "CHANNEL_ERROR")

    def _send(self, message: OutgoingMessage) -> SendResult:
        try:
            content = encode_message(message, self._clock.now())
            token = self._tokens.get()
        except PushRefused as refused:
            return SendResult(Outcome.PERMANENT, refused.error_code)
        except TokenUnavailable:
            return SendResult(Outcome.TRANSIENT, "AUTH_UNAVAILABLE")
        except CredentialsRejected:
            return SendResult(Outcome.PERMANENT, "AUTH_REJECTED")
        answer = self._http.post(
            self._url, content, {"Content-Type": "application/json; charset=UTF-8"}, auth=bearer(token)
        )
        return self._read(answer, token, message) if isinstance(answer, Answer) else answer

    def _read(self, answer: Answer, token: str, message: OutgoingMessage) -> SendResult:
        if answer.status == 401:
            self._tokens.forget(token)
        result = read_answer(answer, self._clock.now())
        if result.error_code in _OUR_FAULT:
            log.error("fcm_refuses_us", error_code=result.error_code, notification_id=str(message.id))
        return result

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._http.close()


def open_channel(wiring: Wiring) -> FcmChannel | None:
    settings = wiring.settings
    if settings.push is not PushMode.FCM:
        return None
    assert settings.firebase_credentials is not None, "settings refuse PUSH=fcm without credentials"
    return FcmChannel(
        settings.firebase_credentials,
        wiring.clock,
        base_url=settings.fcm_base_url,
        policy=policy_of(settings, TYPES[0], POLICY),
        connections=settings.fcm_connections,
    )
