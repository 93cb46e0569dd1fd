"""Fetches the OAuth2 access token for FCM with a service account, and keeps it until it is stale."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import google.auth.exceptions
import structlog
from google.auth.credentials import TokenState

from app.delivery.channels.http import Answer, HttpClient

log = structlog.get_logger(__name__)


class TokenUnavailable(Exception):
    """The token server does not answer; a later attempt may succeed."""


class CredentialsRejected(Exception):
    """The service account is refused. An operator has to act."""


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    data: bytes


class _TransportWithoutRetries:
    """A transport for google-auth with our own timeout. google-auth repeats requests after temporary errors, but not
    after a `TransportError`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: Any,
    ) -> _Answer:
        answer = self._http.post(url, body or b"", headers or {}, method=method)
        if not isinstance(answer, Answer):
            raise google.auth.exceptions.TransportError(f"token address: {answer.error_code}")
        if answer.status in (408, 429) or answer.status >= 500 or not _is_json_object(answer.body):
            raise google.auth.exceptions.TransportError(f"token address answered {answer.status}")
        return _Answer(answer.status, answer.headers, answer.body)


def _is_json_object(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except ValueError:
        return False


class AccessTokens:
    def __init__(self, credentials_path: str, http: HttpClient) -> None:
        # Imported here because the library is large, and copies without FCM do not need it.
        from firebase_admin import credentials  # pyright: ignore[reportMissingTypeStubs]

        account: Any = credentials.Certificate(credentials_path)
        self.project_id: str = account.project_id
        self._credential: Any = account.get_credential()
        self._transport = _TransportWithoutRetries(http)
        self._lock = threading.Lock()
        self._failure: tuple[float, Exception] | None = None

    def get(self) -> str:
        if self._credential.token_state is TokenState.FRESH:
            return self._credential.token
        asked_at = time.monotonic()
        with self._lock:
            if self._credential.token_state is TokenState.FRESH:
                return self._credential.token
            # Threads that waited while a fetch failed share its failure. If each of them fetched in turn, that would
            # take longer than their leases.
            if self._failure is not None and self._failure[0] > asked_at:
                raise self._failure[1]
            return self._fetch()

    def _fetch(self) -> str:
        try:
            self._credential.refresh(self._transport)
        except google.auth.exceptions.GoogleAuthError as error:
            if self._credential.token_state is TokenState.STALE:
                return self._credential.token
            failure = _translate(error)
            self._failure = (time.monotonic(), failure)
            raise failure from None
        return self._credential.token

    def forget(self, token: str) -> None:
        """Call this when FCM refused the token, so that the next message gets a new one."""
        with self._lock:
            if self._credential.token == token:
                self._credential.token = None


def _translate(error: Any) -> Exception:
    if isinstance(error, google.auth.exceptions.TransportError) or error.retryable:
        log.warning("fcm_token_unavailable", error=str(error))
        return TokenUnavailable()
    log.critical("fcm_credentials_rejected", error=str(error), hint="check FIREBASE_CREDENTIALS and its rights")
    return CredentialsRejected()
