"""SMS through a gateway that two templates in the settings describe."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from app.delivery.channels.sms_gateway import Gateway, SmsGatewayChannel
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome, Priority
from app.foundation.clock import FakeClock
from tests.support.delivery import outgoing
from tests.support.provider_server import Answer, Hang, ProviderServer, retry_afters

QUICK = RetryPolicy(timeout_s=2.0, retries=2, repeatable=False)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
PHONE = "+905551234567"
SENT, TRANSIENT, PERMANENT, UNKNOWN = Outcome.SENT, Outcome.TRANSIENT, Outcome.PERMANENT, Outcome.UNKNOWN
GONE = Outcome.RECIPIENT_GONE
# An older kind of gateway: the status is always 200, and a number in the text is the result.
OLD_REQUEST = "user=yaninda&pass={{ token | urlencode }}&gsm={{ to[1:] }}&msg={{ text | urlencode }}"
OLD_ANSWER = """
{%- set code = text.split(" ")[0] -%}
{% if code == "00" %}SENT {{ text.split(" ")[1] }}
{% elif code == "70" %}PERMANENT BAD_PARAMETERS
{% elif code == "80" %}TRANSIENT LIMIT
{% elif code == "20" %}RECIPIENT_GONE BAD_NUMBER
{% elif code == "99" %}UNKNOWN LOST_TRACK
{% elif code == "??" %}{{ code }}
{% endif %}
"""
JSON_ANSWER = """
{%- if json.result.ok %}SENT {{ json.result.ids[0] }}{% else %}PERMANENT GW_{{ json.result.code }}{% endif %}"""

Send = Callable[..., SendResult]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(Answer(200, {"id": "m-1"})).running() as running:
        yield running


@pytest.fixture
def send(server: ProviderServer) -> Iterator[Send]:
    opened: list[SmsGatewayChannel] = []

    def sent(
        scripted: Answer | Hang | None = None, /, *, changes: dict[str, Any] | None = None, **gateway: Any
    ) -> SendResult:
        if scripted is not None:
            server.answers.append(scripted)
        channel = SmsGatewayChannel(Gateway(f"{server.base_url}/send", **gateway), FakeClock(), policy=QUICK)
        opened.append(channel)
        values: dict[str, Any] = {"notification_type": NotificationType.SMS, "recipient": PHONE}
        [result] = channel.handle([outgoing(None, **(values | (changes or {})))])
        return result

    yield sent
    for channel in opened:
        channel.close()


def test_without_templates_the_request_is_json(send: Send, server: ProviderServer) -> None:
    assert send(token="key", changes={"priority": Priority.URGENT}) == SendResult(SENT, provider_message_id="m-1")
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/send")
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Authorization"] == "Bearer key"
    body = request.json()
    assert body | {"id": ""} == {"id": "", "to": PHONE, "text": "Yakınında yeni bir talep var!", "priority": "URGENT"}
    assert request.headers["Idempotency-Key"] == body["id"]


def test_without_a_token_there_is_no_authorization_header(send: Send, server: ProviderServer) -> None:
    send()
    assert server.requests[0].headers["Authorization"] is None


def test_template_writes_the_request(send: Send, server: ProviderServer) -> None:
    words = 'Ayşe & "Ali"\n%100 = 1+1'
    result = send(
        Answer(200, "00 123456", {"Content-Type": "text/plain"}),
        token="p&q",
        content_type="application/x-www-form-urlencoded; charset=utf-8",
        request=OLD_REQUEST,
        answer=OLD_ANSWER,
        changes={"body": words},
    )
    assert result == SendResult(SENT, provider_message_id="123456")
    [request] = server.requests
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded; charset=utf-8"
    assert parse_qs(request.body.decode()) == {
        "user": ["yaninda"],
        "pass": ["p&q"],
        "gsm": ["905551234567"],
        "msg": [words],
    }


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(200, "70 no"), SendResult(PERMANENT, "BAD_PARAMETERS")),
        (Answer(200, "80 wait"), SendResult(TRANSIENT, "LIMIT")),
        (Answer(429, "80 wait", {"Retry-After": "9"}), SendResult(TRANSIENT, "LIMIT", retry_after_s=9, at_fault=False)),
        (Answer(503, "80 wait"), SendResult(TRANSIENT, "LIMIT", overloaded=True)),
        (Answer(200, "20 +905551234567"), SendResult(GONE, "BAD_NUMBER", at_fault=False)),
        (Answer(200, "99"), SendResult(UNKNOWN, "LOST_TRACK")),
        # The template renders nothing, so the status decides.
        (Answer(200, "55"), SendResult(SENT)),
        (Answer(500, "55"), SendResult(TRANSIENT, "HTTP_500", overloaded=True)),
        # The template renders an invalid verdict, so only a refusal by the status counts.
        (Answer(200, "??"), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Answer(403, "??"), SendResult(PERMANENT, "AUTH_REJECTED")),
        (Hang(), SendResult(UNKNOWN, "TIMEOUT")),
    ],
)
def test_template_reads_the_answer(send: Send, answer: Answer | Hang, expected: SendResult) -> None:
    assert send(answer, answer=OLD_ANSWER) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(200, {"result": {"ok": True, "ids": [77]}}), SendResult(SENT, provider_message_id="77")),
        (Answer(200, {"result": {"ok": True}}), SendResult(SENT)),
        (Answer(200, {"result": {"ok": False, "code": "quota"}}), SendResult(PERMANENT, "GW_QUOTA")),
        (Answer(200, {"result": {"ok": False, "code": 12}}), SendResult(PERMANENT, "GW_12")),
        # Not an error code, so it is dropped.
        (Answer(200, {"result": {"code": "no such phone +905551234567"}}), SendResult(PERMANENT, "HTTP_200")),
        (Answer(200, {"result": {"ok": True, "ids": ["two words"]}}), SendResult(SENT)),
        (Answer(200, "no json"), SendResult(PERMANENT, "GW_")),
    ],
)
def test_template_reads_json(send: Send, answer: Answer, expected: SendResult) -> None:
    assert send(answer, answer=JSON_ANSWER) == expected


def test_template_reads_status_and_headers(send: Send) -> None:
    template = "{% if status == 202 and headers['x-queued'] == 'yes' %}SENT {{ headers['X-Id'] }}{% endif %}"
    headers = {"X-Queued": "yes", "X-Id": "h-1"}
    assert send(Answer(202, "", headers), answer=template) == SendResult(SENT, provider_message_id="h-1")


def test_failed_template_makes_success_unknown_and_keeps_a_refusal(send: Send) -> None:
    template = "SENT {{ json.a / json.b }}"
    assert send(Answer(200, {"a": 1, "b": 0}), answer=template) == SendResult(UNKNOWN, "INVALID_ANSWER")
    assert send(Answer(400, {"a": 1, "b": 0}), answer=template) == SendResult(PERMANENT, "HTTP_400")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(200, {"code": 0, "jobId": "17"}), SendResult(SENT, provider_message_id="17")),
        (Answer(200, {"code": 51}), SendResult(GONE, "BAD_NUMBER", at_fault=False)),
        (Answer(200, {"code": 80}), SendResult(TRANSIENT, "LIMIT")),
        (Answer(200, {"code": 30}), SendResult(PERMANENT, "GATEWAY_30")),
        (Answer(503, "<html>"), SendResult(TRANSIENT, "HTTP_503", overloaded=True)),
    ],
)
def test_example_in_the_settings_page_works(
    send: Send, server: ProviderServer, answer: Answer, expected: SendResult
) -> None:
    example = dict(re.findall(r"^SMS_GATEWAY_(\w+)='(.*)'$", PAGE.read_text(), re.MULTILINE))
    assert send(answer, request=example["REQUEST"], answer=example["ANSWER"]) == expected
    body = server.requests[0].json()
    assert body | {"reference": ""} == {
        "gsm": "905551234567",
        "message": "Yakınında yeni bir talep var!",
        "reference": "",
    }


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(200, {"id": "a"}), SendResult(SENT, provider_message_id="a")),
        (Answer(201, {"messageId": 5}), SendResult(SENT, provider_message_id="5")),
        (Answer(202, {"message_id": "b"}), SendResult(SENT, provider_message_id="b")),
        (Answer(204, ""), SendResult(SENT)),
        (Answer(200, "no json"), SendResult(SENT)),
        (Answer(200, {"id": ["a"]}), SendResult(SENT)),
        (Answer(200, {"id": "a" * 300}), SendResult(SENT)),
        (Answer(401, {}), SendResult(PERMANENT, "AUTH_REJECTED")),
        (Answer(403, {}), SendResult(PERMANENT, "AUTH_REJECTED")),
        (Answer(413, {}), SendResult(PERMANENT, "PAYLOAD_TOO_LARGE")),
        (Answer(422, {}), SendResult(PERMANENT, "HTTP_422")),
    ],
)
def test_without_a_template_the_status_decides(send: Send, answer: Answer, expected: SendResult) -> None:
    assert send(answer) == expected


@pytest.mark.parametrize(("headers", "expected"), **retry_afters(FakeClock().now()))
def test_retry_after_is_used_without_the_template(send: Send, headers: dict[str, str], expected: float | None) -> None:
    result = send(Answer(429, {}, headers), answer="{% if status == 429 %}TRANSIENT SLOWER{% endif %}")
    assert result == SendResult(TRANSIENT, "SLOWER", retry_after_s=expected, at_fault=False)


def test_text_has_at_most_1600_characters(send: Send, server: ProviderServer) -> None:
    assert send(changes={"body": "ş" * 1600}).outcome is SENT
    assert send(changes={"body": "ş" * 1601}) == SendResult(PERMANENT, "PAYLOAD_TOO_LARGE", at_fault=False)
    assert len(server.requests) == 1
