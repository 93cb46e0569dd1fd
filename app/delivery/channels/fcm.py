"""Push through Firebase Cloud Messaging.

The service account is firebase-admin's, the HTTP call is ours: firebase-admin's sender tries again inside (a 503
became five requests, a read timeout a second push on the phone), waits for up to two minutes, and has no setting
for the address. Here one `send` is one request, and the dispatcher's policy is the only one that tries again.
"""

from collections.abc import Callable, Sequence

import requests
import structlog
from requests.adapters import HTTPAdapter
from urllib3.exceptions import MaxRetryError, NewConnectionError

from app.clock import Clock
from app.delivery.channels.base import Parcel
from app.delivery.channels.fcm_auth import AccessTokens, CredentialsRejected, TokenUnavailable
from app.delivery.channels.fcm_wire import PayloadTooLarge, encode_message, read_answer
from app.delivery.models import Outcome
from app.delivery.retry import PUSH_POLICY, Result, RetryPolicy

log = structlog.get_logger(__name__)

# These concern the whole project, not one phone: nothing will arrive until somebody mends it.
_OUR_FAULT = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "THIRD_PARTY_AUTH_ERROR"})


def _bearer(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    """Given as `auth`, because requests would let a netrc file overrule a header."""

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return sign


class FcmChannel:
    def __init__(
        self,
        credentials_path: str,
        clock: Clock,
        *,
        base_url: str = "https://fcm.googleapis.com",
        policy: RetryPolicy = PUSH_POLICY,
        connections: int = 8,
    ) -> None:
        self.policy = policy
        self.batch_size = 1
        self.needs_device = True
        self._clock = clock
        self._session = requests.Session()
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=connections, max_retries=0))
        self._timeout = (policy.timeout_s / 3, policy.timeout_s * 2 / 3)
        self._tokens = AccessTokens(credentials_path, self._session, self._timeout)
        self._url = f"{base_url.rstrip('/')}/v1/projects/{self._tokens.project_id}/messages:send"

    def send(self, parcels: Sequence[Parcel]) -> list[Result]:
        return [self._send_one(parcel) for parcel in parcels]

    def _send_one(self, parcel: Parcel) -> Result:
        try:
            message = encode_message(parcel, self._clock.now())
            token = self._tokens.get()
        except PayloadTooLarge:
            return Result(Outcome.PERMANENT, "PAYLOAD_TOO_LARGE")
        except TokenUnavailable:
            return Result(Outcome.TRANSIENT, "AUTH_UNAVAILABLE")
        except CredentialsRejected:
            return Result(Outcome.PERMANENT, "AUTH_REJECTED")
        return self._post(message, token, parcel)

    def _post(self, message: bytes, token: str, parcel: Parcel) -> Result:
        try:
            answer = self._session.post(
                self._url,
                data=message,
                headers={"Content-Type": "application/json; charset=UTF-8"},
                auth=_bearer(token),
                timeout=self._timeout,
                allow_redirects=False,
            )
        except (requests.ConnectTimeout, requests.exceptions.SSLError, requests.exceptions.ProxyError):
            return Result(Outcome.TRANSIENT, "UNREACHABLE")
        except requests.Timeout:
            return Result(Outcome.UNKNOWN, "TIMEOUT")
        except requests.RequestException as error:
            return _broken_off(error)
        if answer.status_code == 401:
            self._tokens.forget(token)
        result = read_answer(answer.status_code, answer.headers, answer.content, self._clock.now())
        if result.error_code in _OUR_FAULT:
            log.error("fcm_refuses_us", error_code=result.error_code, notification_id=str(parcel.notification_id))
        return result

    def close(self) -> None:
        self._session.close()


def _broken_off(error: requests.RequestException) -> Result:
    """A connection that was never made carried nothing; one that broke may have carried the message."""
    cause = error.args[0] if error.args else None
    if isinstance(cause, MaxRetryError) and isinstance(cause.reason, NewConnectionError):
        return Result(Outcome.TRANSIENT, "UNREACHABLE")
    return Result(Outcome.UNKNOWN, "CONNECTION_LOST")
