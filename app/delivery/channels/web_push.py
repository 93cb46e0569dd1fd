"""Web Push to browsers: one request to the push service of the browser, encrypted for it and signed by us.

The addresses come from devices that anybody who is signed in may register, so they are treated as those of webhooks:
redirects are not followed, private addresses are refused, and the time and memory of a request are limited.
"""

import structlog

from app.delivery.channels.base import OutgoingMessage, Wiring
from app.delivery.channels.connections import Check, TimedBackend
from app.delivery.channels.http import Answer, HttpClient
from app.delivery.channels.http_channel import MessageRefused
from app.delivery.channels.parallel_channel import BEGIN_WITHIN_S, ParallelChannel
from app.delivery.channels.public_addresses import PrivateAddress, Resolver, require_public
from app.delivery.channels.vapid_tokens import VapidTokens
from app.delivery.channels.web_push_wire import encode_request, host_of, read_answer
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import Clock
from app.settings.vapid_keys import VapidKeys
from app.users.models import AddressKind

log = structlog.get_logger(__name__)

TYPES = (NotificationType.PUSH,)
# The same as of FCM: settings are for a type. A repeated push replaces the one that waits at the push service.
POLICY = RetryPolicy(timeout_s=3.0, retries=2, overloaded_backoff_s=(10.0, 30.0, 60.0))
SETTINGS = ("vapid_public_key", "vapid_private_key", "vapid_subject", *names_of_settings(TYPES[0]))
CONNECTIONS = 16


class WebPushChannel(ParallelChannel):
    address_kinds = frozenset({AddressKind.WEB_PUSH})

    def __init__(
        self,
        keys: VapidKeys,
        clock: Clock,
        *,
        policy: RetryPolicy = POLICY,
        connections: int = CONNECTIONS,
        begin_within_s: float = BEGIN_WITHIN_S,
        check: Check | None = require_public,
        resolver: Resolver | None = None,
        ca_file: str | None = None,
    ) -> None:
        super().__init__("web_push", TYPES, policy, connections=connections, begin_within_s=begin_within_s)
        self._clock = clock
        self._tokens = VapidTokens(keys)
        self._http = HttpClient(
            policy,
            connections=connections,
            network=TimedBackend(resolver, check),
            ca_file=ca_file,
            # A proxy would connect to any address, also to private ones.
            trust_env=False,
        )

    def provider(self, message: OutgoingMessage) -> str:
        """Each push service has its own breaker."""
        try:
            return f"{self.name}:{host_of(message)}"
        except MessageRefused:
            return self.name

    def send(self, message: OutgoingMessage) -> SendResult:
        try:
            request = encode_request(message, self._tokens, self._clock.now())
            answer = self._http.post(request.url, request.body, request.headers, auth=request.auth, needs_body=False)
        except MessageRefused as refused:
            return SendResult(Outcome.PERMANENT, refused.error_code, at_fault=False)
        except PrivateAddress:
            return SendResult(Outcome.PERMANENT, "PRIVATE_ADDRESS", at_fault=False)
        if not isinstance(answer, Answer):
            return answer
        if answer.status in (401, 403):
            log.error("push_service_refuses_us", status=answer.status, notification_id=str(message.id))
        return read_answer(answer, self._clock.now())

    def close(self) -> None:
        super().close()
        self._http.close()


def open_channel(wiring: Wiring) -> WebPushChannel | None:
    keys = wiring.settings.vapid_keys
    if keys is None:
        return None
    return WebPushChannel(keys, wiring.clock, policy=policy_of(wiring.settings, TYPES[0], POLICY))
