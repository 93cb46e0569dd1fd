"""SMS through Twilio's Messages resource."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.delivery.channels.twilio import Account, TwilioChannel
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import FakeClock
from tests.support.delivery import outgoing
from tests.support.phone_providers import ACCOUNT_SID, AUTH_TOKEN, TwilioServer, twilio_error, twilio_message
from tests.support.provider_server import Answer, retry_afters

QUICK = RetryPolicy(timeout_s=2.0, retries=2, repeatable=False)
NUMBER, SERVICE = "+15005550006", "MG0123456789abcdef0123456789abcdef"
SENT, TRANSIENT, PERMANENT, UNKNOWN = Outcome.SENT, Outcome.TRANSIENT, Outcome.PERMANENT, Outcome.UNKNOWN
GONE = Outcome.RECIPIENT_GONE

Send = Callable[..., SendResult]


@pytest.fixture
def server() -> Iterator[TwilioServer]:
    with TwilioServer().running() as running:
        yield running


@pytest.fixture
def send(server: TwilioServer) -> Iterator[Send]:
    opened: list[TwilioChannel] = []

    def sent(
        answer: Answer | None = None, *, sender: str = NUMBER, sid: str = ACCOUNT_SID, **changes: Any
    ) -> SendResult:
        if answer is not None:
            server.answers.append(answer)
        channel = TwilioChannel(Account(sid, AUTH_TOKEN, sender, f"{server.base_url}/"), FakeClock(), policy=QUICK)
        opened.append(channel)
        values: dict[str, Any] = {"notification_type": NotificationType.SMS, "recipient": "+905551234567"}
        [result] = channel.handle([outgoing(None, **(values | changes))])
        return result

    yield sent
    for channel in opened:
        channel.close()


def test_message_has_our_number_as_sender(send: Send, server: TwilioServer) -> None:
    assert send() == SendResult(SENT, provider_message_id="SM00000000000000000000000000000001")
    [request] = server.requests
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert request.form() == {"To": "+905551234567", "From": NUMBER, "Body": "Yakınında yeni bir talep var!"}


def test_messaging_service_is_sent_instead_of_a_number(send: Send, server: TwilioServer) -> None:
    assert send(sender=SERVICE).outcome is SENT
    form = server.requests[0].form()
    assert form["MessagingServiceSid"] == SERVICE
    assert "From" not in form


def accepted(**changes: Any) -> Answer:
    return twilio_message({}, **changes)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # The recipient: not a number, not a mobile phone, a landline, a person who answered STOP.
        (twilio_error(400, 21211, "Invalid 'To' Phone Number"), SendResult(GONE, "TWILIO_21211", at_fault=False)),
        (twilio_error(400, 21614), SendResult(GONE, "TWILIO_21614", at_fault=False)),
        (twilio_error(400, 21635), SendResult(GONE, "TWILIO_21635", at_fault=False)),
        (twilio_error(400, 21610), SendResult(GONE, "TWILIO_21610", at_fault=False, disables=True)),
        # Our own account or settings.
        (twilio_error(401, 20003), SendResult(PERMANENT, "AUTH_REJECTED")),
        (twilio_error(403, 20003), SendResult(PERMANENT, "AUTH_REJECTED")),
        (twilio_error(401, 20005), SendResult(PERMANENT, "ACCOUNT_BLOCKED")),
        (twilio_error(404, 20404), SendResult(PERMANENT, "TWILIO_20404")),
        (twilio_error(400, 21408), SendResult(PERMANENT, "TWILIO_21408")),
        (twilio_error(400, 21606), SendResult(PERMANENT, "TWILIO_21606")),
        (twilio_error(400, 21608), SendResult(PERMANENT, "TWILIO_21608")),
        (twilio_error(400, 21612), SendResult(PERMANENT, "TWILIO_21612")),
        (twilio_error(400, 21617), SendResult(PERMANENT, "PAYLOAD_TOO_LARGE", at_fault=False)),
        # Rate limits, and failures at Twilio.
        (twilio_error(429, 21611), SendResult(TRANSIENT, "TWILIO_21611", at_fault=False)),
        (twilio_error(400, 30001), SendResult(TRANSIENT, "TWILIO_30001", at_fault=False)),
        (twilio_error(500, 20500), SendResult(TRANSIENT, "TWILIO_20500", overloaded=True)),
        (twilio_error(503, 20503), SendResult(TRANSIENT, "TWILIO_20503", overloaded=True)),
        # Accepted, and failed at once.
        (accepted(status="failed", error_code=30003), SendResult(PERMANENT, "TWILIO_30003", at_fault=False)),
        (accepted(status="failed", error_code=30004), SendResult(PERMANENT, "TWILIO_30004", at_fault=False)),
        (accepted(status="undelivered", error_code=30005), SendResult(GONE, "TWILIO_30005", at_fault=False)),
        (accepted(status="undelivered", error_code=30006), SendResult(GONE, "TWILIO_30006", at_fault=False)),
        (accepted(status="undelivered", error_code=30007), SendResult(PERMANENT, "TWILIO_30007")),
        (accepted(status="failed", error_code=30002), SendResult(PERMANENT, "ACCOUNT_BLOCKED")),
        (accepted(status="failed"), SendResult(PERMANENT, "NOT_DELIVERED")),
        # Perhaps accepted.
        (accepted(sid=None), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (accepted(sid=7), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Answer(201, "<html>"), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Answer(201, []), SendResult(UNKNOWN, "INVALID_ANSWER")),
    ],
)
def test_each_answer_has_its_result_after_one_request(
    send: Send, server: TwilioServer, answer: Answer, expected: SendResult
) -> None:
    assert send(answer) == expected
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", ["accepted", "scheduled", "queued", "sending", "sent", "delivered"])
def test_every_status_of_an_accepted_message_counts_as_sent(send: Send, status: str) -> None:
    assert send(accepted(status=status)).outcome is SENT


@pytest.mark.parametrize(("headers", "expected"), **retry_afters(FakeClock().now()))
def test_retry_after_of_twilio_is_used(send: Send, headers: dict[str, str], expected: float | None) -> None:
    answer = twilio_error(429, 20429, "Too Many Requests", **headers)
    assert send(answer) == SendResult(TRANSIENT, "TWILIO_20429", retry_after_s=expected, at_fault=False)


def test_text_has_at_most_1600_characters(send: Send, server: TwilioServer) -> None:
    assert send(body="ş" * 1600).outcome is SENT
    assert send(body="ş" * 1601) == SendResult(PERMANENT, "PAYLOAD_TOO_LARGE", at_fault=False)
    assert len(server.requests) == 1


def test_account_id_is_escaped_in_the_path(send: Send, server: TwilioServer) -> None:
    assert send(sid="../x?y").outcome is PERMANENT
    assert server.requests[0].path == "/2010-04-01/Accounts/..%2Fx%3Fy/Messages.json"
