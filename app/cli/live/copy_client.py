"""Calls the public API of a running copy as any of its people."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

TIMEOUT_S = 10.0
DEFAULT_REST_S = 5.0


class CopyUnreachable(Exception):
    """The copy does not answer, or answers that it cannot just now; it may be restarting."""


@dataclass(frozen=True)
class CopyAnswer:
    status: int
    body: Any
    retry_after_s: float = DEFAULT_REST_S

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def code(self) -> str:
        """Of a refusal."""
        return self.body["code"]


class DemoCaller(Protocol):
    def call(self, user_id: int, method: str, path: str, body: Any = None) -> CopyAnswer:
        """Raises CopyUnreachable."""
        ...


class CopyClient:
    def __init__(self, address: str, token_of: Callable[[int], str]) -> None:
        parts = urlsplit(address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connect = lambda: kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._token_of = token_of

    def call(self, user_id: int, method: str, path: str, body: Any = None) -> CopyAnswer:
        connection = self._connect()
        # Tokens are valid for a day. A new one for each call lets this run longer.
        headers = {"Authorization": f"Bearer {self._token_of(user_id)}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise CopyUnreachable(type(error).__name__) from None
        finally:
            connection.close()
        if response.status >= 500:
            raise CopyUnreachable(f"it answered {response.status}")
        return CopyAnswer(response.status, _json(content), _rest_s(response.getheader("Retry-After")))


def _json(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:
        raise CopyUnreachable("it answered something else than JSON") from None


def _rest_s(given: str | None) -> float:
    return float(given) if given and given.isdigit() else DEFAULT_REST_S
