"""Push through Firebase Cloud Messaging.

firebase-admin handles the service account, but not the HTTP calls: its own sender retries (a 503 became five requests,
a read timeout a second push on the phone), waits for up to two minutes, and has no setting for the address. Here one
message is one request, and only the dispatcher retries.
"""

import structlog

from app.delivery.channels.base import OutgoingMessage, Wiring
from app.delivery.channels.fcm_auth import AccessTokens, CredentialsRejected, TokenUnavailable
from app.delivery.channels.fcm_wire import PushRefused, encode_message, read_answer
from app.delivery.channels.http import Answer, HttpClient, bearer
from app.delivery.channels.parallel_channel import BEGIN_WITHIN_S, ParallelChannel
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import Clock
from app.settings.settings import PushMode
from app.users.models import AddressKind

log = structlog.get_logger(__name__)

TYPES = (NotificationType.PUSH,)
# FCM asks for a pause of at least 10 s after a 5xx. A repeated push replaces the one that the phone shows.
POLICY = RetryPolicy(timeout_s=3.0, retries=2, overloaded_backoff_s=(10.0, 30.0, 60.0))
SETTINGS = ("push", "firebase_credentials", "fcm_base_url", "fcm_connections", *names_of_settings(TYPES[0]))


# These errors concern the whole project, not one phone: no push arrives until an operator acts.
_OUR_FAULT = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "THIRD_PARTY_AUTH_ERROR"})


class FcmChannel(ParallelChannel):
    address_kinds = frozenset({AddressKind.TOKEN, AddressKind.FID})

    def __init__(
        self,
        credentials_path: str,
        clock: Clock,
        *,
        base_url: str = "https://fcm.googleapis.com",
        policy: RetryPolicy = POLICY,
        connections: int = 8,
        begin_within_s: float = BEGIN_WITHIN_S,
    ) -> None:
        super().__init__("fcm", TYPES, policy, connections=connections, begin_within_s=begin_within_s)
        self._clock = clock
        self._http = HttpClient(policy, connections=connections)
        self._tokens = AccessTokens(credentials_path, self._http)
        self._url = f"{base_url.rstrip('/')}/v1/projects/{self._tokens.project_id}/messages:send"

    def send(self, message: OutgoingMessage) -> SendResult:
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
        super().close()
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
