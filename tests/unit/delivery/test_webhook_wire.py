"""Signatures according to Standard Webhooks, and safe headers."""

import base64
import hashlib
import hmac
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.delivery.channels import webhook_wire
from app.settings import signing_secrets
from tests.support.delivery import notification

# The example in the tests of the specification's own libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE_ID, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

NOW = datetime(2026, 3, 12, 9, 0, 1, 700_000, tzinfo=UTC)


def test_signature_is_that_of_the_specification() -> None:
    assert webhook_wire.sign([SECRET], MESSAGE_ID, TIMESTAMP, BODY) == SIGNATURE


def test_during_a_change_each_secret_signs_and_the_newest_comes_first() -> None:
    new = "whsec_" + base64.b64encode(b"n" * 64).decode()
    signed = f"{MESSAGE_ID}.{TIMESTAMP}.".encode() + BODY
    of_the_new = base64.b64encode(hmac.new(b"n" * 64, signed, hashlib.sha256).digest()).decode()
    assert webhook_wire.sign([new, SECRET], MESSAGE_ID, TIMESTAMP, BODY) == f"v1,{of_the_new} {SIGNATURE}"


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "whsec", SECRET.removeprefix("whsec_"), SECRET + "!", "whsec_" + "A" * 28, "whsec_" + "A" * 88],
)
def test_invalid_secret_is_refused_without_being_quoted(secret: str) -> None:
    with pytest.raises(signing_secrets.InvalidSecret) as error:
        signing_secrets.decode(secret)
    assert len(secret) < 7 or secret not in str(error.value)


def test_new_secrets_are_long_and_different() -> None:
    one, other = signing_secrets.create(), signing_secrets.create()
    assert one != other and len(signing_secrets.decode(one)) == 32


def test_body_has_type_and_time() -> None:
    one = notification(metadata={"data": {"type": "task.assigned", "taskId": "7"}, "orderId": 5})
    assert json.loads(webhook_wire.encode(one)) == {
        "type": "task.assigned",
        "timestamp": "2026-03-12T09:00:00.000Z",
        "data": {
            "id": str(one.id),
            "subject": "Yeni talep",
            "body": "Yakınında yeni bir talep var!",
            "priority": "NORMAL",
            "metadata": {"data": {"type": "task.assigned", "taskId": "7"}, "orderId": 5},
        },
    }


def test_message_without_a_type_is_a_notification() -> None:
    assert json.loads(webhook_wire.encode(notification(metadata={})))["type"] == "notification"


def test_body_of_a_challenge_has_nothing_else() -> None:
    body = json.loads(webhook_wire.encode(notification(), "c-1"))
    assert body == {
        "type": "channel.verification",
        "timestamp": "2026-03-12T09:00:00.000Z",
        "data": {"challenge": "c-1"},
    }


def test_headers_have_id_time_and_signature() -> None:
    one = notification()
    made = webhook_wire.headers(one, [SECRET], {"X-Region": "tr"}, NOW, b"{}")
    assert (made["webhook-id"], made["webhook-timestamp"]) == (str(one.id), str(int(NOW.timestamp())))
    assert made["webhook-signature"] == webhook_wire.sign([SECRET], str(one.id), int(NOW.timestamp()), b"{}")
    assert made["X-Region"] == "tr"


SAFE: list[tuple[str, Any]] = [
    ("X-Api-Key", "abc"),
    ("Authorization", "Bearer a.b.c"),
    ("X-Empty", ""),
    ("x", "with spaces inside"),
    ("X-Long", "a" * 1024),
]
UNSAFE: list[tuple[str, Any]] = [
    ("Host", "internal"),
    ("hOsT", "internal"),
    ("Content-Length", "0"),
    ("Content-Type", "text/plain"),
    ("content-encoding", "gzip"),
    ("Webhook-Id", "1"),
    ("webhook_signature", "v1,x"),
    ("webhook-signature", "v1,x"),
    ("Transfer-Encoding", "chunked"),
    ("Connection", "close"),
    ("Keep-Alive", "1"),
    ("Proxy-Authorization", "x"),
    ("TE", "trailers"),
    ("Trailer", "x"),
    ("Upgrade", "h2c"),
    ("Expect", "100-continue"),
    ("Accept-Encoding", "gzip"),
    ("Cookie", "a=b"),
    ("", "x"),
    ("X Y", "x"),
    ("X:Y", "x"),
    ("X\r\nHost", "x"),
    ("X-Ünsal", "x"),
    ("X-Line", "a\r\nHost: internal"),
    ("X-Line", "a\n"),
    ("X-Tab", "a\tb"),
    ("X-Nul", "a\x00"),
    ("X-Turkish", "şifre"),
    ("X-Edge", " a"),
    ("X-Long", "a" * 1025),
    ("X-Number", 5),
    ("X-List", ["a"]),
    ("X-None", None),
]


@pytest.mark.parametrize(("name", "value"), SAFE)
def test_safe_headers_are_sent(name: str, value: Any) -> None:
    assert webhook_wire.extra_headers({"headers": {name: value}}) == {name: value}


@pytest.mark.parametrize(("name", "value"), UNSAFE)
def test_unsafe_headers_are_dropped(name: str, value: Any) -> None:
    assert webhook_wire.extra_headers({"headers": {name: value, "X-Good": "1"}}) == {"X-Good": "1"}


@pytest.mark.parametrize("meta", [{}, {"headers": None}, {"headers": "X: y"}, {"headers": ["X"]}])
def test_channel_without_headers_has_none(meta: dict[str, Any]) -> None:
    assert webhook_wire.extra_headers(meta) == {}


def test_number_of_headers_is_limited() -> None:
    meta = {"headers": {f"X-{number}": "1" for number in range(50)}}
    assert len(webhook_wire.extra_headers(meta)) == webhook_wire.MOST_HEADERS


@pytest.mark.parametrize(
    "answer", [{}, {"challenge": None}, {"challenge": 5}, {"challenge": "c-2"}, {"challenge": "\ud800"}]
)
def test_wrong_challenge_is_not_accepted(answer: dict[str, Any]) -> None:
    assert not webhook_wire.is_echoed("c-1", answer)
    assert webhook_wire.is_echoed("c-1", {"challenge": "c-1"})


PAGE = Path(__file__).resolve().parents[3] / "docs" / "webhooks.md"


def example() -> dict[str, Any]:
    """The function that docs/webhooks.md shows to receivers."""
    found = re.search(r"```python\n(import base64.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, "the page has no example"
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names


def test_example_in_the_webhooks_page_accepts_our_signature() -> None:
    verify = example()["verify"]
    old, body = signing_secrets.create(), b'{"a":1}'
    now = datetime.now(UTC)
    made = webhook_wire.headers(notification(), [SECRET, old], {}, now, body)
    for secret in (SECRET, old):
        assert verify(secret, made, body)
    assert not verify(signing_secrets.create(), made, body)
    assert not verify(SECRET, made, body + b" ")
    assert not verify(SECRET, {**made, "webhook-id": "another"}, body)
    early = webhook_wire.headers(notification(), [SECRET], {}, NOW.replace(year=2020), body)
    assert not verify(SECRET, early, body)
