"""The subscription of a browser, as a page registers it."""

import json
from typing import Any

import pytest

from app.delivery.channels.push_subscription import read_subscription
from app.delivery.messages.addresses import InvalidAddress
from tests.support.push_service import Browser, b64encode, point

ENDPOINT = "https://updates.push.example/wpush/v2/gAAAA?a=b"
BROWSER = Browser(ENDPOINT)
POINT = point(BROWSER.key.public_key())


def with_keys(**keys: Any) -> dict[str, Any]:
    given = BROWSER.subscription
    return given | {"keys": given["keys"] | keys}


def test_subscription_of_a_page_is_read() -> None:
    found = read_subscription(json.dumps(BROWSER.subscription))
    assert (found.endpoint, found.public_key, found.auth) == (ENDPOINT, POINT, BROWSER.auth)
    assert found.origin == "https://updates.push.example"


def test_spellings_of_one_subscription_are_one_token() -> None:
    """A token belongs to one device, so it must not have two forms."""
    spellings = [
        BROWSER.subscription,
        {"keys": BROWSER.subscription["keys"], "endpoint": ENDPOINT, "more": [1]},
        BROWSER.subscription | {"endpoint": ENDPOINT.replace("https://updates", "https://UPDATES")},
        with_keys(p256dh=b64encode(POINT) + "=", more=1),
    ]
    tokens = {read_subscription(json.dumps(spelling, indent=1)).token for spelling in spellings}
    assert len(tokens) == 1
    assert read_subscription(*tokens).token in tokens


@pytest.mark.parametrize(
    ("endpoint", "origin"),
    [
        ("https://push.example:443/1", "https://push.example"),
        ("https://push.example:8443/1", "https://push.example:8443"),
    ],
)
def test_origin_is_as_a_browser_writes_it(endpoint: str, origin: str) -> None:
    assert read_subscription(json.dumps(BROWSER.subscription | {"endpoint": endpoint})).origin == origin


OFF_THE_CURVE = POINT[:64] + bytes([POINT[64] ^ 1])


@pytest.mark.parametrize(
    "given",
    [
        "",
        "token-of-a-phone",
        "[" * 4000,
        "[]",
        "{}",
        "7",
        {"endpoint": ENDPOINT},
        {"endpoint": ENDPOINT, "keys": []},
        *(
            BROWSER.subscription | {"endpoint": endpoint}
            for endpoint in [
                None,
                7,
                "",
                "http://push.example/1",
                "https://",
                "https://push/1",
                "https://localhost/1",
                "https://127.0.0.1/1",
                "https://8.8.8.8/1",
                "https://[2606:4700::1]/1",
                "https://2130706433/1",
                "https://user:pass@push.example/1",
                "https://push.example/1#2",
                "https://push.example/a b",
                "ftp://push.example/1",
                f"https://push.example/{'a' * 2048}",
            ]
        ),
        with_keys(p256dh=None),
        with_keys(p256dh=b64encode(POINT[:64])),
        with_keys(p256dh=b64encode(POINT + b"\0")),
        with_keys(p256dh=b64encode(OFF_THE_CURVE)),
        with_keys(p256dh=b64encode(b"\x04" + b"\0" * 64)),
        with_keys(p256dh=b64encode(b"\x04" + b"\xff" * 64)),
        with_keys(p256dh=b64encode(b"\x02" + POINT[1:33])),
        with_keys(p256dh=b64encode(POINT).replace("-", "+").replace("_", "/") + "!"),
        with_keys(auth=None),
        with_keys(auth=""),
        with_keys(auth=b64encode(b"a" * 15)),
        with_keys(auth=b64encode(b"a" * 17)),
    ],
)
def test_anything_else_is_refused_without_being_quoted(given: Any) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    with pytest.raises(InvalidAddress) as error:
        read_subscription(text)
    assert "push.example" not in str(error.value) and b64encode(POINT) not in str(error.value)
