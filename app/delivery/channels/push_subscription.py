"""Reads the subscription of a browser to pushes, as its page has got it. Pure.

The address of a subscription is chosen by whoever registers a device, and our servers call it. So it must be the HTTPS
address of a named host, and the channel refuses names that lead into private networks.
"""

import json
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

from app.delivery.messages.addresses import InvalidAddress, check_address
from app.delivery.messages.values import NotificationType
from app.foundation.base64url import decode_base64url, encode_base64url
from app.foundation.p256 import is_point

AUTH_BYTES = 16


@dataclass(frozen=True)
class PushSubscription:
    endpoint: str = field(repr=False)
    """Whoever knows it can send to the browser."""
    public_key: bytes = field(repr=False)
    auth: bytes = field(repr=False)

    @property
    def token(self) -> str:
        """The only spelling of this subscription, because a device is known by its token."""
        keys = {"auth": encode_base64url(self.auth), "p256dh": encode_base64url(self.public_key)}
        return json.dumps({"endpoint": self.endpoint, "keys": keys}, separators=(",", ":"))

    @property
    def origin(self) -> str:
        """Scheme, host and port of the push service, as a browser writes them."""
        return f"https://{urlsplit(self.endpoint).netloc.removesuffix(':443')}"


def read_subscription(text: str) -> PushSubscription:
    """Takes what `JSON.stringify(subscription)` gives in a page. Raises `InvalidAddress`."""
    subscription = _object(_parsed(text))
    if not subscription:
        raise InvalidAddress("must be the JSON of a push subscription")
    keys = _object(subscription.get("keys"))
    public_key, auth = _key(keys, "p256dh"), _key(keys, "auth")
    if not is_point(public_key):
        raise InvalidAddress("has a `p256dh` that is no public key of P-256")
    if len(auth) != AUTH_BYTES:
        raise InvalidAddress(f"has an `auth` that is not {AUTH_BYTES} bytes")
    return PushSubscription(_endpoint(subscription.get("endpoint")), public_key, auth)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _endpoint(value: Any) -> str:
    try:
        url = check_address(NotificationType.WEBHOOK, value if isinstance(value, str) else "", "")
    except InvalidAddress as error:
        raise InvalidAddress(f"has an `endpoint` that {error}") from None
    host = urlsplit(url).hostname or ""
    if not url.startswith("https://") or "." not in host or _is_number(host):
        raise InvalidAddress("has an `endpoint` that is not at the https:// address of a named host")
    return url


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _key(keys: dict[str, Any], name: str) -> bytes:
    value = keys.get(name)
    try:
        return decode_base64url(value) if isinstance(value, str) else b""
    except ValueError:
        return b""
