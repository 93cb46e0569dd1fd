"""One HTTP request to a provider, and what its failure says about the message."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from typing import Any, cast

import requests
import urllib3
from urllib3.exceptions import LocationParseError, MaxRetryError, NewConnectionError

from app.delivery.channels.connections import TimedAdapter, over_within
from app.delivery.messages.retry import Result, RetryPolicy
from app.delivery.messages.values import Outcome

MOST_OF_AN_ANSWER = 64 * 1024
# An answer nobody reads is taken from the line up to this length, so that the connection can be used again.
SHORT_ANSWER = 1024
# The request is not one that could be made: there is no such URL, or no such header.
_IMPOSSIBLE = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.exceptions.InvalidHeader,
    LocationParseError,
)

_CODE = re.compile(r"[A-Z][A-Z0-9_]{1,62}")

Auth = Callable[[requests.PreparedRequest], requests.PreparedRequest] | tuple[str, str]


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


class _Straight(requests.Session):
    """Of an answer that is a redirect, requests reads all that it holds and makes out where it leads even if it is not
    to go there: gigabytes, unpacked, for whoever wants our memory to be full."""

    def get_redirect_target(self, resp: Any) -> None:
        return None


class HttpClient:
    """Keeps connections, follows nothing, tries once, and reads no more than it must."""

    def __init__(
        self, policy: RetryPolicy, *, connections: int, adapter: TimedAdapter | None = None, trust_env: bool = True
    ) -> None:
        self.session = _Straight()
        # Proxies, certificates and passwords that the environment names.
        self.session.trust_env = trust_env
        # What one answer sets must not travel with the next message, which may be another person's.
        self.session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = adapter or TimedAdapter(connections=connections)
        for scheme in ("https://", "http://"):
            self.session.mount(scheme, adapter)
        self._limit_s = policy.timeout_s
        self.timeout = (policy.timeout_s / 3, policy.timeout_s * 2 / 3)
        """Of connecting and of answering, for those who use the session themselves."""

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        method: str = "POST",
        auth: Auth | None = None,
        needs_body: bool = True,
    ) -> Answer | Result:
        """The answer; where there is none, what that means for the message. It is over within the policy's timeout.

        Who needs no body gets the answer even if its body never comes."""
        try:
            with (
                over_within(self._limit_s),
                self.session.request(
                    method,
                    url,
                    data=body,
                    headers=dict(headers),
                    auth=auth,
                    timeout=(self.timeout[0], self._limit_s),
                    allow_redirects=False,
                    stream=True,
                ) as answer,
            ):
                told = _read(answer) if needs_body else _skip(answer)
                return Answer(answer.status_code, answer.headers, told)
        except _IMPOSSIBLE:
            return Result(Outcome.PERMANENT, "INVALID_ADDRESS")
        except (requests.ConnectTimeout, requests.exceptions.SSLError, requests.exceptions.ProxyError):
            return Result(Outcome.TRANSIENT, "UNREACHABLE")
        except (requests.Timeout, TimeoutError, urllib3.exceptions.TimeoutError):
            return Result(Outcome.UNKNOWN, "TIMEOUT")
        except urllib3.exceptions.HTTPError:
            return Result(Outcome.UNKNOWN, "CONNECTION_LOST")
        except requests.RequestException as error:
            return _broken_off(error)

    def close(self) -> None:
        self.session.close()


def _read(answer: requests.Response) -> bytes:
    told = b""
    while len(told) < MOST_OF_AN_ANSWER and (piece := answer.raw.read1(8192, decode_content=True)):
        told += piece
    return told


def _skip(answer: requests.Response) -> bytes:
    length = answer.headers.get("Content-Length", "")
    if length.isascii() and length.isdigit() and int(length[:9]) <= SHORT_ANSWER:
        # Whatever it is that breaks here, the status has been told.
        with suppress(urllib3.exceptions.HTTPError, OSError):
            answer.raw.read(decode_content=False)
    return b""


def _broken_off(error: requests.RequestException) -> Result:
    """A connection that was never made carried nothing; one that broke may have carried the message."""
    cause = error.args[0] if error.args else None
    reason = cause.reason if isinstance(cause, MaxRetryError) else None
    if isinstance(reason, NewConnectionError):
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
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max((at - now).total_seconds(), 0.0)


def judge_status(
    answer: Answer, now: datetime, error_code: str | None = None, *, throttled_s: float | None = None
) -> Result:
    """What a status means where the provider gives it no meaning of its own; `throttled_s` is how long a 429 waits
    that does not say so itself.
    """
    code = error_code or f"HTTP_{answer.status}"
    wait_s = parse_retry_after(answer.headers.get("Retry-After"), now)
    match answer.status:
        case status if 200 <= status < 300:
            return Result(Outcome.SENT)
        case 401:
            return Result(Outcome.PERMANENT, error_code or "AUTH_REJECTED")
        case 408 | 425:
            return Result(Outcome.TRANSIENT, code, retry_after_s=wait_s)
        case 413:
            return Result(Outcome.PERMANENT, error_code or "PAYLOAD_TOO_LARGE")
        case 429:
            return throttled(answer, now, code, throttled_s)
        case 504:
            # Somebody in front of the provider lost patience; the provider itself may well have taken it.
            return Result(Outcome.UNKNOWN, code, retry_after_s=wait_s, overloaded=True)
        case status if status >= 500:
            return Result(Outcome.TRANSIENT, code, retry_after_s=wait_s, overloaded=True)
        case _:
            return Result(Outcome.PERMANENT, code)


def throttled(answer: Answer, now: datetime, error_code: str, default_s: float | None = None) -> Result:
    """We are asked to slow down, which says nothing against the provider."""
    wait_s = parse_retry_after(answer.headers.get("Retry-After"), now)
    wait_s = default_s if wait_s is None else wait_s
    return Result(Outcome.TRANSIENT, error_code, retry_after_s=wait_s, at_fault=False)


def as_code(value: Any) -> str | None:
    """A provider's error code, unless it is something else: free text may repeat an address or a token."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else None


def as_object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
