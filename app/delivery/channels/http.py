"""One HTTP request to a provider, and what its failure says about the message."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.exceptions import MaxRetryError, NewConnectionError

from app.delivery.models import Outcome
from app.delivery.retry import Result, RetryPolicy

MOST_OF_AN_ANSWER = 64 * 1024


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def json(self) -> dict[str, Any]:
        """Empty where the body is no JSON object."""
        try:
            value: Any = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return as_object(value)


class HttpClient:
    """Keeps connections, follows nothing, tries once, and reads no more than it must."""

    def __init__(self, policy: RetryPolicy, *, connections: int, adapter: HTTPAdapter | None = None) -> None:
        self.session = requests.Session()
        adapter = adapter or HTTPAdapter(pool_maxsize=connections, max_retries=0)
        for scheme in ("https://", "http://"):
            self.session.mount(scheme, adapter)
        self.timeout = (policy.timeout_s / 3, policy.timeout_s * 2 / 3)

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        method: str = "POST",
        auth: Callable[[requests.PreparedRequest], requests.PreparedRequest] | tuple[str, str] | None = None,
    ) -> Answer | Result:
        """The answer; where there is none, what that means for the message."""
        try:
            with self.session.request(
                method,
                url,
                data=body,
                headers=dict(headers),
                auth=auth,
                timeout=self.timeout,
                allow_redirects=False,
                stream=True,
            ) as answer:
                return Answer(answer.status_code, answer.headers, self._read(answer))
        except (requests.ConnectTimeout, requests.exceptions.SSLError, requests.exceptions.ProxyError):
            return Result(Outcome.TRANSIENT, "UNREACHABLE")
        except (requests.Timeout, TimeoutError, urllib3.exceptions.TimeoutError):
            return Result(Outcome.UNKNOWN, "TIMEOUT")
        except urllib3.exceptions.HTTPError:
            return Result(Outcome.UNKNOWN, "CONNECTION_LOST")
        except requests.RequestException as error:
            return _broken_off(error)

    def _read(self, answer: requests.Response) -> bytes:
        """Piece by piece, because a timeout of the socket starts anew with every byte that trickles in."""
        until = time.monotonic() + self.timeout[1]
        told = b""
        while len(told) < MOST_OF_AN_ANSWER and (piece := answer.raw.read1(8192, decode_content=True)):
            told += piece
            if time.monotonic() > until:
                raise TimeoutError
        return told

    def close(self) -> None:
        self.session.close()


def _broken_off(error: requests.RequestException) -> Result:
    """A connection that was never made carried nothing; one that broke may have carried the message."""
    cause = error.args[0] if error.args else None
    if isinstance(cause, MaxRetryError) and isinstance(cause.reason, NewConnectionError):
        return Result(Outcome.TRANSIENT, "UNREACHABLE")
    return Result(Outcome.UNKNOWN, "CONNECTION_LOST")


def bearer(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    """Given as `auth`, because requests would let a netrc file overrule a header."""

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return sign


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait, whether they were given as such or as a date; None for neither."""
    value = (value or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, IndexError, TypeError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max((at - now).total_seconds(), 0.0)


def as_object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
