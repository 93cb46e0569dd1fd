"""WhatsApp's Cloud API over HTTP."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.delivery.channels.whatsapp import WhatsAppChannel, WhatsAppNumber
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import FakeClock
from tests.support.delivery import outgoing
from tests.support.phone_providers import ACCESS_TOKEN, NUMBER_ID, CloudApiServer, cloud_error
from tests.support.provider_server import Answer, retry_afters

QUICK = RetryPolicy(timeout_s=2.0, retries=1, repeatable=False)
SENT, TRANSIENT, PERMANENT, UNKNOWN = Outcome.SENT, Outcome.TRANSIENT, Outcome.PERMANENT, Outcome.UNKNOWN
GONE = Outcome.RECIPIENT_GONE
TEMPLATE = {"name": "yeni_talep", "language": "tr", "parameters": ["Ayşe", 10]}

Send = Callable[..., SendResult]


@pytest.fixture
def server() -> Iterator[CloudApiServer]:
    with CloudApiServer().running() as running:
        yield running


@pytest.fixture
def send(server: CloudApiServer) -> Iterator[Send]:
    channel = WhatsAppChannel(
        WhatsAppNumber(NUMBER_ID, ACCESS_TOKEN, f"{server.base_url}/v21.0/"), FakeClock(), policy=QUICK
    )

    def sent(answer: Answer | None = None, **changes: Any) -> SendResult:
        if answer is not None:
            server.answers.append(answer)
        values: dict[str, Any] = {"notification_type": NotificationType.WHATSAPP, "recipient": "+905551234567"}
        [result] = channel.handle([outgoing(None, **(values | changes))])
        return result

    yield sent
    channel.close()


def test_body_is_sent_as_text_without_a_preview(send: Send, server: CloudApiServer) -> None:
    assert send() == SendResult(SENT, provider_message_id="wamid.HBgMOTA1")
    [request] = server.requests
    assert request.json() == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "+905551234567",
        "type": "text",
        "text": {"preview_url": False, "body": "Yakınında yeni bir talep var!"},
    }


def test_template_is_sent_with_language_and_parameters(send: Send, server: CloudApiServer) -> None:
    assert send(metadata={"whatsappTemplate": TEMPLATE}).outcome is SENT
    message = server.requests[0].json()
    assert (message["type"], "text" in message) == ("template", False)
    assert message["template"] == {
        "name": "yeni_talep",
        "language": {"code": "tr"},
        "components": [
            {"type": "body", "parameters": [{"type": "text", "text": "Ayşe"}, {"type": "text", "text": "10"}]}
        ],
    }


def test_parameters_can_be_named_or_missing(send: Send, server: CloudApiServer) -> None:
    send(metadata={"whatsappTemplate": {"name": "a", "language": "en", "parameters": {"kim": "Ayşe"}}})
    send(metadata={"whatsappTemplate": {"name": "b"}}, subject="", body="")
    named, bare = (request.json()["template"] for request in server.requests)
    assert named["components"][0]["parameters"] == [{"type": "text", "parameter_name": "kim", "text": "Ayşe"}]
    assert bare == {"name": "b", "language": {"code": "tr"}}


@pytest.mark.parametrize(
    "template",
    ["a", [], {}, {"name": ""}, {"name": 1}, {"name": "a", "language": 1}, {"name": "a", "parameters": "a"},
     {"name": "a", "parameters": [None]}, {"name": "a", "parameters": [["a"]]}, {"name": "a", "parameters": {"b": {}}}],
)  # fmt: skip
def test_invalid_template_is_refused_without_a_request(send: Send, server: CloudApiServer, template: Any) -> None:
    assert send(metadata={"whatsappTemplate": template}) == SendResult(PERMANENT, "INVALID_TEMPLATE", at_fault=False)
    assert server.requests == []


def code(number: int, status: int = 400, **changes: Any) -> Answer:
    return cloud_error(status, number, **changes)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # The recipient: not on WhatsApp; not allowed for a test account; needs a template; opted out.
        (code(131026), SendResult(GONE, "WHATSAPP_131026", at_fault=False)),
        (code(131030), SendResult(GONE, "WHATSAPP_131030", at_fault=False)),
        (code(131047), SendResult(PERMANENT, "WHATSAPP_131047", at_fault=False)),
        (code(131049), SendResult(PERMANENT, "WHATSAPP_131049", at_fault=False)),
        (code(131050), SendResult(PERMANENT, "WHATSAPP_131050", at_fault=False)),
        # Our own account or settings. The status alone does not show it.
        (code(190, 401, error_subcode=463), SendResult(PERMANENT, "AUTH_REJECTED")),
        (code(0, 401), SendResult(PERMANENT, "AUTH_REJECTED")),
        (code(3, 500), SendResult(PERMANENT, "AUTH_REJECTED")),
        (code(10, 403), SendResult(PERMANENT, "AUTH_REJECTED")),
        (code(200, 403), SendResult(PERMANENT, "AUTH_REJECTED")),
        (code(131005, 403), SendResult(PERMANENT, "AUTH_REJECTED")),
        (code(368, 403), SendResult(PERMANENT, "ACCOUNT_BLOCKED")),
        (code(131031, 403), SendResult(PERMANENT, "ACCOUNT_BLOCKED")),
        (code(100), SendResult(PERMANENT, "WHATSAPP_100")),
        (code(131008), SendResult(PERMANENT, "WHATSAPP_131008")),
        (code(132000), SendResult(PERMANENT, "WHATSAPP_132000")),
        (code(132001, 404), SendResult(PERMANENT, "WHATSAPP_132001")),
        # Rate limits.
        (code(4, 400), SendResult(TRANSIENT, "WHATSAPP_4", at_fault=False)),
        (code(80007, 400), SendResult(TRANSIENT, "WHATSAPP_80007", at_fault=False)),
        (code(131048, 400), SendResult(TRANSIENT, "WHATSAPP_131048", at_fault=False)),
        (code(131056, 400), SendResult(TRANSIENT, "WHATSAPP_131056", retry_after_s=6, at_fault=False)),
        # Failures at Meta.
        (code(1, 400), SendResult(TRANSIENT, "WHATSAPP_1", overloaded=True)),
        (code(2, 503), SendResult(TRANSIENT, "WHATSAPP_2", overloaded=True)),
        (code(131000, 500), SendResult(TRANSIENT, "WHATSAPP_131000", overloaded=True)),
        (
            code(131016, 503, headers={"Retry-After": "30"}),
            SendResult(TRANSIENT, "WHATSAPP_131016", retry_after_s=30, overloaded=True),
        ),
        (code(999, 500), SendResult(TRANSIENT, "WHATSAPP_999", overloaded=True)),
        # An error with status 200.
        (code(131026, 200), SendResult(GONE, "WHATSAPP_131026", at_fault=False)),
        (code(999, 200), SendResult(PERMANENT, "WHATSAPP_999")),
        # Perhaps accepted.
        (Answer(200, {"messages": []}), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Answer(200, {"messages": [{"id": 7}]}), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Answer(200, {"messages": ["a"]}), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Answer(200, {"messages": {"id": "a"}}), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Answer(200, "<html>"), SendResult(UNKNOWN, "INVALID_ANSWER")),
    ],
)
def test_each_answer_has_its_result_after_one_request(
    send: Send, server: CloudApiServer, answer: Answer, expected: SendResult
) -> None:
    assert send(answer) == expected
    assert len(server.requests) == 1


@pytest.mark.parametrize("number", [130429, 80007, 4])
@pytest.mark.parametrize(("headers", "expected"), **retry_afters(FakeClock().now()))
def test_retry_after_of_meta_is_used(send: Send, number: int, headers: dict[str, str], expected: float | None) -> None:
    answer = cloud_error(429, number, headers)
    assert send(answer) == SendResult(TRANSIENT, f"WHATSAPP_{number}", retry_after_s=expected, at_fault=False)


def test_text_has_at_most_4096_characters(send: Send, server: CloudApiServer) -> None:
    assert send(body="ş" * 4096).outcome is SENT
    assert send(body="ş" * 4097) == SendResult(PERMANENT, "PAYLOAD_TOO_LARGE", at_fault=False)
    assert len(server.requests) == 1
