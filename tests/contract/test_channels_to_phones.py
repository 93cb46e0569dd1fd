"""What the channels to phone numbers have in common, whoever carries the words: how they bear a provider that fails."""

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
from app.delivery.messages.retry import Result, RetryPolicy
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
# Shorter than in production, so that a hang costs the tests little.
QUICK = RetryPolicy(timeout_s=0.6, retries=2, repeatable=False)
TIMEOUT, LOST = Result(Outcome.UNKNOWN, "TIMEOUT"), Result(Outcome.UNKNOWN, "CONNECTION_LOST")


@dataclass
class Stage:
    server: ProviderServer
    open: Callable[[str, str], HttpChannel]
    """With this address and this credential."""
    credential: str
    type: NotificationType
    text_of: Callable[[Request], str]
    refused: Answer
    """The provider does not know our credential."""


@contextmanager
def gateway(tls: bool) -> Iterator[Stage]:
    def opened(url: str, token: str) -> HttpChannel:
        return SmsGatewayChannel(Gateway(f"{url}/send", token), FakeClock(), policy=QUICK)

    with ProviderServer(Answer(200, {"id": "1"}), tls=tls).running() as server:
        refused = Answer(401, {"error": f"{GATEWAY_TOKEN} is no token"})
        yield Stage(server, opened, GATEWAY_TOKEN, NotificationType.SMS, lambda one: one.json()["text"], refused)


@contextmanager
def twilio(tls: bool) -> Iterator[Stage]:
    def opened(url: str, token: str) -> HttpChannel:
        return TwilioChannel(Account(ACCOUNT_SID, token, "+15005550006", url), FakeClock(), policy=QUICK)

    with TwilioServer(tls=tls).running() as server:
        refused = twilio_error(401, 20003, f"{AUTH_TOKEN} is no token")
        yield Stage(server, opened, AUTH_TOKEN, NotificationType.SMS, lambda one: one.form()["Body"], refused)


@contextmanager
def whatsapp(tls: bool) -> Iterator[Stage]:
    def opened(url: str, token: str) -> HttpChannel:
        return WhatsAppChannel(WhatsAppNumber(NUMBER_ID, token, f"{url}/v21.0"), FakeClock(), policy=QUICK)

    with CloudApiServer(tls=tls).running() as server:
        refused = cloud_error(401, 190, message=f"{ACCESS_TOKEN} has expired")
        yield Stage(
            server, opened, ACCESS_TOKEN, NotificationType.WHATSAPP, lambda one: one.json()["text"]["body"], refused
        )


Opened = Callable[[bool], AbstractContextManager[Stage]]
EACH = pytest.mark.parametrize("opened", [gateway, twilio, whatsapp], ids=["sms_gateway", "twilio", "whatsapp"])
pytestmark = EACH


@pytest.fixture
def stage(opened: Opened) -> Iterator[Stage]:
    with opened(False) as made:
        yield made


@pytest.fixture
def channel(stage: Stage) -> Iterator[HttpChannel]:
    made = stage.open(stage.server.base_url, stage.credential)
    yield made
    made.close()


def message(stage: Stage, **changes: object) -> OutgoingMessage:
    return outgoing(None, **({"notification_type": stage.type, "recipient": PHONE} | changes))


def send(channel: HttpChannel, stage: Stage, **changes: object) -> Result:
    [result] = channel.handle([message(stage, **changes)])
    return result


def test_id_of_the_provider_is_returned(channel: HttpChannel, stage: Stage) -> None:
    result = send(channel, stage)
    assert result.outcome is Outcome.SENT
    assert result.provider_message_id
    assert len(stage.server.requests) == 1


def test_text_in_every_alphabet_arrives_unchanged(channel: HttpChannel, stage: Stage) -> None:
    words = 'Ayşe\'nin "acil" çağrısı 👵\n\\ & <100% = 1+1>'
    assert send(channel, stage, body=words).outcome is Outcome.SENT
    assert stage.text_of(stage.server.requests[0]) == words


def test_subject_is_sent_only_without_a_body(channel: HttpChannel, stage: Stage) -> None:
    send(channel, stage, subject="Konu", body="Metin")
    send(channel, stage, subject="Konu", body="")
    assert [stage.text_of(request) for request in stage.server.requests] == ["Metin", "Konu"]


def test_number_with_spaces_is_normalised(channel: HttpChannel, stage: Stage) -> None:
    send(channel, stage, recipient="0555 123 45 67")
    assert PHONE in stage.server.requests[0].body.decode().replace("%2B", "+")


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
    channel: HttpChannel, stage: Stage, changes: dict[str, object], code: str
) -> None:
    assert send(channel, stage, **changes) == Result(Outcome.PERMANENT, code, at_fault=False)
    assert stage.server.requests == []


@pytest.mark.parametrize(("headers", "expected"), **retry_afters(FakeClock().now()))
def test_retry_after_of_the_provider_is_used(
    channel: HttpChannel, stage: Stage, headers: dict[str, str], expected: float | None
) -> None:
    stage.server.answers.append(Answer(429, "<html>slow down", headers))
    assert send(channel, stage) == Result(Outcome.TRANSIENT, "HTTP_429", retry_after_s=expected, at_fault=False)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(500, "<html>"), Result(Outcome.TRANSIENT, "HTTP_500", overloaded=True)),
        (Answer(502, "<html>"), Result(Outcome.TRANSIENT, "HTTP_502", overloaded=True)),
        (
            Answer(503, "", {"Retry-After": "30"}),
            Result(Outcome.TRANSIENT, "HTTP_503", retry_after_s=30, overloaded=True),
        ),
        (Answer(504, "<html>"), Result(Outcome.UNKNOWN, "HTTP_504", overloaded=True)),
        (Answer(400, "no json"), Result(Outcome.PERMANENT, "HTTP_400")),
        (Answer(400, [1, {"code": "x"}]), Result(Outcome.PERMANENT, "HTTP_400")),
        (Answer(302, "", {"Location": "/elsewhere"}), Result(Outcome.PERMANENT, "HTTP_302")),
        (Reset(), LOST),
        (ResetAtOnce(), LOST),
    ],
)
def test_each_failure_has_its_result_after_one_request(
    channel: HttpChannel, stage: Stage, answer: Scripted, expected: Result
) -> None:
    stage.server.answers.append(answer)
    assert send(channel, stage) == expected
    assert len(stage.server.requests) + isinstance(answer, ResetAtOnce) == 1


def test_answer_that_does_not_end_in_time_is_a_timeout(channel: HttpChannel, stage: Stage) -> None:
    """All of them at the same time, because each case lasts as long as the time limit."""
    answers = [Hang(), Trickle(), Trickle(in_headers=True)]
    stage.server.answers.extend(answers)
    with ThreadPoolExecutor(len(answers)) as pool:
        assert list(pool.map(lambda _: send(channel, stage), answers)) == [TIMEOUT] * len(answers)
    assert len(stage.server.requests) == len(answers)


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
def test_only_error_codes_are_kept_from_answers(channel: HttpChannel, stage: Stage, body: object) -> None:
    stage.server.answers.append(Answer(400, body))
    assert send(channel, stage) == Result(Outcome.PERMANENT, "HTTP_400")


def test_port_without_a_server_is_unreachable(stage: Stage) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        channel = stage.open(f"http://127.0.0.1:{taken.getsockname()[1]}", stage.credential)
        assert send(channel, stage) == Result(Outcome.TRANSIENT, "UNREACHABLE")


def test_nothing_is_sent_to_a_server_with_an_untrusted_certificate(opened: Opened) -> None:
    with opened(True) as stage:
        channel = stage.open(stage.server.base_url, stage.credential)
        assert send(channel, stage) == Result(Outcome.TRANSIENT, "UNREACHABLE")
        assert stage.server.requests == []


def test_trusted_certificate_is_accepted(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(True) as stage:
        assert stage.server.certificate is not None
        (tmp_path / "ca.pem").write_bytes(stage.server.certificate)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        with closing(stage.open(stage.server.base_url, stage.credential)) as channel:
            assert send(channel, stage).outcome is Outcome.SENT


def test_refused_credentials_are_logged_but_not_shown(stage: Stage, channel: HttpChannel) -> None:
    stage.server.answers.extend([stage.refused, Reset(), Answer(503, stage.credential)])
    with structlog.testing.capture_logs() as logs:
        results = [send(channel, stage) for _ in range(3)]
        failing = stage.open("http://nobody.invalid", stage.credential)
        results.append(send(failing, stage))
    assert results[0] == Result(Outcome.PERMANENT, "AUTH_REJECTED")
    assert [(one["event"], one["log_level"], one["channel"]) for one in logs] == [
        ("provider_refuses_us", "error", channel.name)
    ]
    request = channel.encode(message(stage))
    said = repr(logs) + repr(results) + repr(message(stage)) + repr(request) + repr(vars(channel))
    assert stage.credential not in said
    assert PHONE not in said
    assert "talep" not in said


def test_each_message_of_a_batch_has_its_result(channel: HttpChannel, stage: Stage) -> None:
    stage.server.answers.append(Answer(503))
    results = channel.handle([message(stage), message(stage), message(stage, recipient="?")])
    assert [one.outcome for one in results] == [Outcome.TRANSIENT, Outcome.SENT, Outcome.PERMANENT]
    assert channel.handle([]) == []


def test_channel_describes_itself_to_the_dispatcher(channel: HttpChannel, stage: Stage) -> None:
    assert channel.can_handle(stage.type) and not channel.can_handle(NotificationType.EMAIL)
    assert channel.provider(message(stage)) == channel.name
    assert (channel.batch_size, channel.needs_device) == (1, False)
    assert not any(policy.repeatable for policy in (GATEWAY_POLICY, TWILIO_POLICY, WHATSAPP_POLICY))
