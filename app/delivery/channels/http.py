"""Sends one HTTP request to a provider, and converts failures and statuses to results."""

import json
import re
import time
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpcore

from app.delivery.channels.connections import TimedBackend
from app.delivery.channels.http_pools import HttpPools
from app.delivery.channels.http_url import credentials_of, parse_url
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Outcome

LONGEST_ANSWER_BYTES = 64 * 1024
# A body that is not needed is still read if it is not longer than this, so that the connection can be reused.
SHORT_ANSWER_BYTES = 1024
# The share of the timeout for looking up the name, connecting and TLS.
_CONNECT_SHARE = 1 / 3
_OUR_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "Yaninda/1"}
_WITHOUT_BODY = (204, 304)
# zlib's `wbits` for "gzip or zlib, detected from the header".
_GZIP_OR_ZLIB = 47

_NOT_CONNECTED = (httpcore.ConnectTimeout, httpcore.ConnectError, httpcore.ProxyError)
_FAILED = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)

_CODE = re.compile(r"[A-Z][A-Z0-9_]{1,62}")


class Headers(Mapping[str, str]):
    """Headers by name; upper and lower case are equal. The values of a repeated header are joined."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in raw:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            self._values[key] = f"{self._values[key]}, {text}" if key in self._values else text

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def json(self) -> dict[str, Any]:
        """Empty if the body is not a JSON object."""
        try:
            value: Any = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return as_object(value)


class _Progress:
    """Follows a request in httpcore's trace. If a proxy fails before its tunnel is open, nothing was sent to the
    provider."""

    def __init__(self) -> None:
        self.is_asking_proxy = False

    def __call__(self, event: str, details: Mapping[str, Any]) -> None:
        if event == "http11.send_request_headers.started":
            self.is_asking_proxy = details["request"].method == b"CONNECT"


class HttpClient:
    """Reuses connections, and limits the length of answers. No cookies, no redirects, no retries."""

    def __init__(
        self,
        policy: RetryPolicy,
        *,
        connections: int,
        network: TimedBackend | None = None,
        ca_file: str | None = None,
        trust_env: bool = True,
    ) -> None:
        """With `trust_env`, proxies and trusted certificates are read from the environment."""
        self._limit_s = policy.timeout_s
        self._pools = HttpPools(
            connections=connections, network=network or TimedBackend(), ca_file=ca_file, trust_env=trust_env
        )

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        method: str = "POST",
        auth: str | None = None,
        needs_body: bool = True,
    ) -> Answer | SendResult:
        """Returns the answer, or if none arrives within the policy's timeout, the result of that failure. `auth` is the
        Authorization header. Without `needs_body`, an answer counts even if its body never arrives."""
        try:
            target = parse_url(url)
            pool = self._pools.pool_for(target)
            fields = _header_fields(headers, auth or _basic_of(url))
        except ValueError:
            return _INVALID_REQUEST
        progress = _Progress()
        extensions = {"timeout": self._timeouts(), "trace": progress}
        try:
            with pool.stream(method, target, headers=fields, content=body, extensions=extensions) as response:
                return _read(response, needs_body)
        except httpcore.LocalProtocolError:
            return _INVALID_REQUEST
        except _NOT_CONNECTED:
            return _UNREACHABLE
        except (*_FAILED, zlib.error) as error:
            return _UNREACHABLE if progress.is_asking_proxy else _unknown(error)

    def _timeouts(self) -> dict[str, float]:
        """The monotonic times that `TimedBackend` expects as timeouts."""
        now = time.monotonic()
        until = now + self._limit_s
        return {"connect": now + self._limit_s * _CONNECT_SHARE, "write": until, "read": until}

    def close(self) -> None:
        self._pools.close()


# The URL or a header is invalid.
_INVALID_REQUEST = SendResult(Outcome.PERMANENT, "INVALID_ADDRESS")
# No connection was made, so nothing was sent. After a connection has broken, the provider may have taken the message.
_UNREACHABLE = SendResult(Outcome.TRANSIENT, "UNREACHABLE")


def _unknown(error: Exception) -> SendResult:
    return SendResult(Outcome.UNKNOWN, "TIMEOUT" if isinstance(error, httpcore.TimeoutException) else "CONNECTION_LOST")


def _header_fields(headers: Mapping[str, str], auth: str | None) -> list[tuple[bytes, bytes]]:
    """If headers differ only in case, the last one counts."""
    chosen = [*_OUR_HEADERS.items(), *headers.items(), *([("Authorization", auth)] if auth else [])]
    return [*{name.lower(): (name.encode("ascii"), value.encode("latin-1")) for name, value in chosen}.values()]


def _read(response: httpcore.Response, needs_body: bool) -> Answer:
    headers = Headers(response.headers)
    if needs_body:
        return Answer(response.status, headers, _decompressed(response, headers))
    length = headers.get("Content-Length", "")
    is_short = length.isascii() and length.isdigit() and int(length[:9]) <= SHORT_ANSWER_BYTES
    if response.status in _WITHOUT_BODY or is_short:
        # The status has arrived, so a failure here does not matter.
        with suppress(*_FAILED):
            response.read()
    return Answer(response.status, headers, b"")


def _decompressed(response: httpcore.Response, headers: Headers) -> bytes:
    """Some servers compress their answers although the request does not allow it."""
    is_compressed = headers.get("Content-Encoding", "").lower() in ("gzip", "x-gzip", "deflate")
    decompress = zlib.decompressobj(_GZIP_OR_ZLIB).decompress if is_compressed else None
    content = b""
    for piece in response.iter_stream():
        content += decompress(piece, LONGEST_ANSWER_BYTES - len(content)) if decompress else piece
        if len(content) >= LONGEST_ANSWER_BYTES:
            break
    return content[:LONGEST_ANSWER_BYTES]


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def _basic_of(url: str) -> str | None:
    credentials = credentials_of(url)
    return credentials and basic(*credentials)


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """The seconds to wait, from a number or a date; None if the value is neither."""
    value = (value or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max((at - now).total_seconds(), 0.0)


def judge_status(
    answer: Answer, now: datetime, error_code: str | None = None, *, throttled_s: float | None = None
) -> SendResult:
    """The default result for a status. `throttled_s` is the wait after a 429 without Retry-After."""
    code = error_code or f"HTTP_{answer.status}"
    wait_s = parse_retry_after(answer.headers.get("Retry-After"), now)
    match answer.status:
        case status if 200 <= status < 300:
            return SendResult(Outcome.SENT)
        case 401:
            return SendResult(Outcome.PERMANENT, error_code or "AUTH_REJECTED")
        case 408 | 425:
            return SendResult(Outcome.TRANSIENT, code, retry_after_s=wait_s)
        case 413:
            return SendResult(Outcome.PERMANENT, error_code or "PAYLOAD_TOO_LARGE")
        case 429:
            return throttled(answer, now, code, throttled_s)
        case 504:
            # A gateway in front of the provider timed out; the provider itself may have taken the message.
            return SendResult(Outcome.UNKNOWN, code, retry_after_s=wait_s, overloaded=True)
        case status if status >= 500:
            return SendResult(Outcome.TRANSIENT, code, retry_after_s=wait_s, overloaded=True)
        case _:
            return SendResult(Outcome.PERMANENT, code)


def throttled(answer: Answer, now: datetime, error_code: str, default_s: float | None = None) -> SendResult:
    """The provider asks us to send more slowly. The breaker does not count this as a failure."""
    wait_s = parse_retry_after(answer.headers.get("Retry-After"), now)
    wait_s = default_s if wait_s is None else wait_s
    return SendResult(Outcome.TRANSIENT, error_code, retry_after_s=wait_s, at_fault=False)


def as_code(value: Any) -> str | None:
    """The value if it looks like an error code, or None, because free text may contain an address or a token."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else None


def as_object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
