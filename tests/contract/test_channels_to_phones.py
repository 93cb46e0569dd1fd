"""The contract of all channels to phone numbers, above all when the provider fails."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from app.delivery.channels.base import OutgoingMessage
from app.delivery.channels.http_channel import HttpChannel
from app.delivery.channels.sms_gateway import POLICY as GATEWAY_POLICY
from app.delivery.channels.sms_gateway import Gateway, SmsGatewayChannel
from app.delivery.channels.twilio import POLICY as TWILIO_POLICY
from app.delivery.channels.twilio import Account, TwilioChannel
from app.delivery.channels.whatsapp import POLICY as WHATSAPP_POLICY
from app.delivery.channels.whatsapp import WhatsAppChannel, WhatsAppNumber
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import FakeClock
from tests.support.delivery import outgoing
from tests.support.phone_providers import (
    ACCESS_TOKEN,
    ACCOUNT_SID,
    AUTH_TOKEN,
    NUMBER_ID,
    CloudApiServer,
    TwilioServer,
    cloud_error,
    twilio_error,
)
from tests.support.provider_server import (
    Answer,
    Hang,
    ProviderServer,
    Request,
    Reset,
    ResetAtOnce,
    Scripted,
    Trickle,
    retry_afters,
)

GATEWAY_TOKEN = "token-of-the-gateway"
PHONE = "+905551234567"
# Shorter than in production, because tests wait for it.
QUICK = RetryPolicy(timeout_s=2.0, retries=2, repeatable=False)
TIMEOUT, LOST = SendResult(Outcome.UNKNOWN, "TIMEOUT"), SendResult(Outcome.UNKNOWN, "CONNECTION_LOST")


@dataclass
class Harness:
    server: ProviderServer
    open: Callable[[str, str], HttpChannel]
    """Takes a base URL and a credential."""
    credential: str
    type: NotificationType
    text_of: Callable[[Request], str]
    refused: Answer
    """The provider's answer to a wrong credential."""


@contextmanager
def gateway(tls: bool) -> Iterator[Harness]:
    def opened(url: str, token: str) -> HttpChannel:
        return SmsGatewayChannel(Gateway(f"{url}/send", token), FakeClock(), policy=QUICK)

    with ProviderServer(Answer(200, {"id": "1"}), tls=tls).running() as server:
        refused = Answer(401, {"error": f"{GATEWAY_TOKEN} is no token"})
        yield Harness(server, opened, GATEWAY_TOKEN, NotificationType.SMS, lambda one: one.json()["text"], refused)


@contextmanager
def twilio(tls: bool) -> Iterator[Harness]:
    def opened(url: str, token: str) -> HttpChannel:
        return TwilioChannel(Account(ACCOUNT_SID, token, "+15005550006", url), FakeClock(), policy=QUICK)

    with TwilioServer(tls=tls).running() as server:
        refused = twilio_error(401, 20003, f"{AUTH_TOKEN} is no token")
        yield Harness(server, opened, AUTH_TOKEN, NotificationType.SMS, lambda one: one.form()["Body"], refused)


@contextmanager
def whatsapp(tls: bool) -> Iterator[Harness]:
    def opened(url: str, token: str) -> HttpChannel:
        return WhatsAppChannel(WhatsAppNumber(NUMBER_ID, token, f"{url}/v21.0"), FakeClock(), policy=QUICK)

    with CloudApiServer(tls=tls).running() as server:
        refused = cloud_error(401, 190, message=f"{ACCESS_TOKEN} has expired")
        yield Harness(
            server, opened, ACCESS_TOKEN, NotificationType.WHATSAPP, lambda one: one.json()["text"]["body"], refused
        )


Opened = Callable[[bool], AbstractContextManager[Harness]]
EACH = pytest.mark.parametrize("opened", [gateway, twilio, whatsapp], ids=["sms_gateway", "twilio", "whatsapp"])
pytestmark = EACH


@pytest.fixture
def harness(opened: Opened) -> Iterator[Harness]:
    with opened(False) as made:
        yield made


@pytest.fixture
def channel(harness: Harness) -> Iterator[HttpChannel]:
    made = harness.open(harness.server.base_url, harness.credential)
    yield made
    made.close()


def message(harness: Harness, **changes: object) -> OutgoingMessage:
    return outgoing(None, **({"notification_type": harness.type, "recipient": PHONE} | changes))


def send(channel: HttpChannel, harness: Harness, **changes: object) -> SendResult:
    [result] = channel.handle([message(harness, **changes)])
    return result


def test_id_of_the_provider_is_returned(channel: HttpChannel, harness: Harness) -> None:
    result = send(channel, harness)
    assert result.outcome is Outcome.SENT
    assert result.provider_message_id
    assert len(harness.server.requests) == 1


def test_text_in_every_alphabet_arrives_unchanged(channel: HttpChannel, harness: Harness) -> None:
    words = 'Ayşe\'nin "acil" çağrısı 👵\n\\ & <100% = 1+1>'
    assert send(channel, harness, body=words).outcome is Outcome.SENT
    assert harness.text_of(harness.server.requests[0]) == words


def test_subject_is_sent_only_without_a_body(channel: HttpChannel, harness: Harness) -> None:
    send(channel, harness, subject="Konu", body="Metin")
    send(channel, harness, subject="Konu", body="")
    assert [harness.text_of(request) for request in harness.server.requests] == ["Metin", "Konu"]


def test_number_with_spaces_is_normalised(channel: HttpChannel, harness: Harness) -> None:
    send(channel, harness, recipient="0555 123 45 67")
    assert PHONE in harness.server.requests[0].body.decode().replace("%2B", "+")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"recipient": ""}, "INVALID_ADDRESS"),
        ({"recipient": "user:7"}, "INVALID_ADDRESS"),
        ({"recipient": f"{PHONE}\r\nX: y"}, "INVALID_ADDRESS"),
        ({"subject": "", "body": ""}, "EMPTY_MESSAGE"),
        ({"body": "a" * 4097}, "PAYLOAD_TOO_LARGE"),
    ],
)
def test_invalid_message_is_refused_without_a_request(
    channel: HttpChannel, harness: Harness, changes: dict[str, object], code: str
) -> None:
    assert send(channel, harness, **changes) == SendResult(Outcome.PERMANENT, code, at_fault=False)
    assert harness.server.requests == []


@pytest.mark.parametrize(("headers", "expected"), **retry_afters(FakeClock().now()))
def test_retry_after_of_the_provider_is_used(
    channel: HttpChannel, harness: Harness, headers: dict[str, str], expected: float | None
) -> None:
    harness.server.answers.append(Answer(429, "<html>slow down", headers))
    assert send(channel, harness) == SendResult(Outcome.TRANSIENT, "HTTP_429", retry_after_s=expected, at_fault=False)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(500, "<html>"), SendResult(Outcome.TRANSIENT, "HTTP_500", overloaded=True)),
        (Answer(502, "<html>"), SendResult(Outcome.TRANSIENT, "HTTP_502", overloaded=True)),
        (
            Answer(503, "", {"Retry-After": "30"}),
            SendResult(Outcome.TRANSIENT, "HTTP_503", retry_after_s=30, overloaded=True),
        ),
        (Answer(504, "<html>"), SendResult(Outcome.UNKNOWN, "HTTP_504", overloaded=True)),
        (Answer(400, "no json"), SendResult(Outcome.PERMANENT, "HTTP_400")),
        (Answer(400, [1, {"code": "x"}]), SendResult(Outcome.PERMANENT, "HTTP_400")),
        (Answer(302, "", {"Location": "/elsewhere"}), SendResult(Outcome.PERMANENT, "HTTP_302")),
        (Reset(), LOST),
        (ResetAtOnce(), LOST),
    ],
)
def test_each_failure_has_its_result_after_one_request(
    channel: HttpChannel, harness: Harness, answer: Scripted, expected: SendResult
) -> None:
    harness.server.answers.append(answer)
    assert send(channel, harness) == expected
    assert len(harness.server.requests) + isinstance(answer, ResetAtOnce) == 1


def test_answer_that_does_not_end_in_time_is_a_timeout(channel: HttpChannel, harness: Harness) -> None:
    """All of them at the same time, because each case lasts as long as the time limit."""
    answers = [Hang(), Trickle(), Trickle(in_headers=True)]
    harness.server.answers.extend(answers)
    with ThreadPoolExecutor(len(answers)) as pool:
        assert list(pool.map(lambda _: send(channel, harness), answers)) == [TIMEOUT] * len(answers)
    assert len(harness.server.requests) == len(answers)


@pytest.mark.parametrize(
    "body",
    [
        {"code": PHONE, "error": {"code": PHONE}, "status": PHONE},
        {"code": 905551234567, "error": {"code": 905551234567}},
        {"code": [1], "error": {"code": {"a": 1}}},
        {"code": True, "error": {"code": True}},
        {"code": -1, "error": {"code": -1}},
        {"error": PHONE},
        [[]] * 10,
    ],
)
def test_only_error_codes_are_kept_from_answers(channel: HttpChannel, harness: Harness, body: object) -> None:
    harness.server.answers.append(Answer(400, body))
    assert send(channel, harness) == SendResult(Outcome.PERMANENT, "HTTP_400")


def test_port_without_a_server_is_unreachable(harness: Harness) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        channel = harness.open(f"http://127.0.0.1:{taken.getsockname()[1]}", harness.credential)
        assert send(channel, harness) == SendResult(Outcome.TRANSIENT, "UNREACHABLE")


def test_nothing_is_sent_to_a_server_with_an_untrusted_certificate(opened: Opened) -> None:
    with opened(True) as harness:
        channel = harness.open(harness.server.base_url, harness.credential)
        assert send(channel, harness) == SendResult(Outcome.TRANSIENT, "UNREACHABLE")
        assert harness.server.requests == []


def test_trusted_certificate_is_accepted(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(True) as harness:
        assert harness.server.certificate is not None
        (tmp_path / "ca.pem").write_bytes(harness.server.certificate)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        with closing(harness.open(harness.server.base_url, harness.credential)) as channel:
            assert send(channel, harness).outcome is Outcome.SENT


def test_refused_credentials_are_logged_but_not_shown(harness: Harness, channel: HttpChannel) -> None:
    harness.server.answers.extend([harness.refused, Reset(), Answer(503, harness.credential)])
    with structlog.testing.capture_logs() as logs:
        results = [send(channel, harness) for _ in range(3)]
        failing = harness.open("http://nobody.invalid", harness.credential)
        results.append(send(failing, harness))
    assert results[0] == SendResult(Outcome.PERMANENT, "AUTH_REJECTED")
    assert [(one["event"], one["log_level"], one["channel"]) for one in logs] == [
        ("provider_refuses_us", "error", channel.name)
    ]
    request = channel.encode(message(harness))
    shown = repr(logs) + repr(results) + repr(message(harness)) + repr(request) + repr(vars(channel))
    assert harness.credential not in shown
    assert PHONE not in shown
    assert "talep" not in shown


def test_each_message_of_a_batch_has_its_result(channel: HttpChannel, harness: Harness) -> None:
    harness.server.answers.append(Answer(503))
    results = channel.handle([message(harness), message(harness), message(harness, recipient="?")])
    assert [one.outcome for one in results] == [Outcome.TRANSIENT, Outcome.SENT, Outcome.PERMANENT]
    assert channel.handle([]) == []


def test_channel_describes_itself_to_the_dispatcher(channel: HttpChannel, harness: Harness) -> None:
    assert channel.can_handle(harness.type) and not channel.can_handle(NotificationType.EMAIL)
    assert channel.provider(message(harness)) == channel.name
    assert (channel.batch_size, channel.needs_device) == (1, False)
    assert not any(policy.repeatable for policy in (GATEWAY_POLICY, TWILIO_POLICY, WHATSAPP_POLICY))
