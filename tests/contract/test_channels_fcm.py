"""Firebase Cloud Messaging over HTTP, with all its errors."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from cryptography.hazmat.primitives.asymmetric import rsa

from app.delivery.channels.base import OutgoingMessage
from app.delivery.channels.fcm import FcmChannel
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Device, Outcome
from app.foundation.clock import FakeClock
from app.users.models import AddressKind
from tests.support import fcm_server
from tests.support.delivery import TABLET, outgoing
from tests.support.fcm_server import FcmServer, bad_field, fcm_error, quota_exceeded
from tests.support.provider_server import Answer, Hang, Reset, Scripted, Slow, retry_afters

# Shorter than in production, because tests wait for it.
QUICK = RetryPolicy(timeout_s=2.0, retries=2)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def server() -> Iterator[FcmServer]:
    with FcmServer().running() as running:
        yield running


@pytest.fixture
def channel(server: FcmServer, clock: FakeClock, tmp_path: Path) -> Iterator[FcmChannel]:
    credentials = server.write_credentials(tmp_path / "account.json")
    made = FcmChannel(str(credentials), clock, base_url=server.base_url, policy=QUICK)
    yield made
    made.close()


def send(channel: FcmChannel) -> SendResult:
    [result] = channel.handle([outgoing()])
    assert result is not None
    return result


def test_id_of_the_provider_is_returned(channel: FcmChannel, server: FcmServer) -> None:
    assert send(channel) == SendResult(Outcome.SENT, provider_message_id=f"projects/{fcm_server.PROJECT}/messages/1")


def test_each_kind_of_address_has_its_field(channel: FcmChannel, server: FcmServer) -> None:
    channel.handle([outgoing(), outgoing(TABLET)])
    first, second = sorted(server.messages, key=lambda message: "fid" in message)
    assert (first["token"], first.get("fid")) == ("token-of-the-phone", None)
    assert (second["fid"], second.get("token")) == ("fid-of-the-tablet", None)


def test_push_expires_with_the_offer(channel: FcmChannel, server: FcmServer, clock: FakeClock) -> None:
    expires_at = clock.now() + timedelta(seconds=599.4)
    channel.handle([outgoing(expires_at=expires_at)])
    [message] = server.messages
    assert message["android"]["priority"] == "high"
    assert message["android"]["ttl"] == "599s"
    assert message["apns"]["headers"]["apns-expiration"] == str(int(expires_at.timestamp()))
    assert message["apns"]["headers"]["apns-priority"] == "10"


def test_push_without_expiry_has_no_ttl(channel: FcmChannel, server: FcmServer) -> None:
    send(channel)
    [message] = server.messages
    assert "ttl" not in message["android"]
    assert "apns-expiration" not in message["apns"]["headers"]


def test_repeated_push_replaces_the_first(channel: FcmChannel, server: FcmServer) -> None:
    one = outgoing()
    channel.handle([one, one])
    tags = {message["android"]["notification"]["tag"] for message in server.messages}
    collapsing = {message["apns"]["headers"]["apns-collapse-id"] for message in server.messages}
    assert tags == collapsing == {str(one.id)}


def test_push_without_text_is_delivered_in_the_background(channel: FcmChannel, server: FcmServer) -> None:
    channel.handle([outgoing(subject="", body="")])
    [message] = server.messages
    assert "notification" not in message
    assert "notification" not in message["android"]
    assert message["android"]["priority"] == "high"
    assert message["apns"]["headers"]["apns-push-type"] == "background"
    assert message["apns"]["headers"]["apns-priority"] == "5"
    assert message["apns"]["payload"] == {"aps": {"content-available": 1}}


def body_of_payload(size: int) -> str:
    """A body that makes title, body and data exactly `size` bytes of JSON."""
    data = outgoing().notification.data
    empty = len(json.dumps({"data": data, "notification": {"title": "T", "body": ""}}, separators=(",", ":")))
    return "a" * (size - empty)


def test_4096_bytes_are_sent(channel: FcmChannel, server: FcmServer) -> None:
    [result] = channel.handle([outgoing(subject="T", body=body_of_payload(4096))])
    assert result.outcome is Outcome.SENT


def test_4097_bytes_are_refused_without_a_request(channel: FcmChannel, server: FcmServer) -> None:
    [result] = channel.handle([outgoing(subject="T", body=body_of_payload(4097))])
    assert result == SendResult(Outcome.PERMANENT, "PAYLOAD_TOO_LARGE")
    assert server.messages == []


PERMANENT, TRANSIENT, GONE, UNKNOWN = Outcome.PERMANENT, Outcome.TRANSIENT, Outcome.RECIPIENT_GONE, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (fcm_server.UNREGISTERED, SendResult(GONE, "UNREGISTERED")),
        (fcm_server.NOT_FOUND, SendResult(PERMANENT, "NOT_FOUND")),
        (fcm_server.BAD_TOKEN, SendResult(GONE, "INVALID_TOKEN")),
        (fcm_server.BAD_ARGUMENT, SendResult(PERMANENT, "INVALID_ARGUMENT")),
        (bad_field("message.token"), SendResult(GONE, "INVALID_TOKEN")),
        (bad_field("message.fid"), SendResult(GONE, "INVALID_TOKEN")),
        (bad_field("message.data[0].value"), SendResult(PERMANENT, "INVALID_ARGUMENT")),
        (bad_field("message.android.ttl"), SendResult(PERMANENT, "INVALID_ARGUMENT")),
        (fcm_server.UNAUTHENTICATED, SendResult(PERMANENT, "UNAUTHENTICATED")),
        (fcm_server.THIRD_PARTY_AUTH, SendResult(PERMANENT, "THIRD_PARTY_AUTH_ERROR")),
        (fcm_server.SENDER_MISMATCH, SendResult(PERMANENT, "SENDER_ID_MISMATCH")),
        (Answer(403, "<html>"), SendResult(PERMANENT, "HTTP_403")),
        (Answer(302, "", {"Location": "/elsewhere"}), SendResult(PERMANENT, "HTTP_302")),
        (Answer(400, []), SendResult(PERMANENT, "HTTP_400")),
        (
            Answer(400, {"error": {"details": [1, {"@type": fcm_server.BAD_REQUEST}]}}),
            SendResult(PERMANENT, "HTTP_400"),
        ),
        (Answer(408, ""), SendResult(TRANSIENT, "HTTP_408")),
        (fcm_server.INTERNAL, SendResult(TRANSIENT, "INTERNAL", overloaded=True)),
        (fcm_server.UNAVAILABLE, SendResult(TRANSIENT, "UNAVAILABLE", overloaded=True)),
        (
            fcm_error(503, "UNAVAILABLE", "UNAVAILABLE", headers={"Retry-After": "30"}),
            SendResult(TRANSIENT, "UNAVAILABLE", retry_after_s=30, overloaded=True),
        ),
        (Answer(502, "<html>Bad Gateway"), SendResult(TRANSIENT, "HTTP_502", overloaded=True)),
        (fcm_server.GARBAGE, SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Answer(200, {"name": 5}), SendResult(UNKNOWN, "INVALID_ANSWER")),
        (Hang(), SendResult(UNKNOWN, "TIMEOUT")),
        (Reset(), SendResult(UNKNOWN, "CONNECTION_LOST")),
    ],
)
def test_each_answer_has_its_result_after_one_request(
    channel: FcmChannel, server: FcmServer, answer: Scripted, expected: SendResult
) -> None:
    server.answers.append(answer)
    assert send(channel) == expected
    assert len(server.messages) == 1


@pytest.mark.parametrize(("headers", "expected"), **retry_afters(FakeClock().now()))
def test_retry_after_of_firebase_is_used(
    channel: FcmChannel, server: FcmServer, headers: dict[str, str], expected: float | None
) -> None:
    server.answers.append(quota_exceeded(headers))
    assert send(channel) == SendResult(
        TRANSIENT, "QUOTA_EXCEEDED", retry_after_s=60 if expected is None else expected, at_fault=False
    )


def test_port_without_a_server_is_unreachable(server: FcmServer, clock: FakeClock, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        channel = FcmChannel(str(server.write_credentials(tmp_path / "a.json")), clock, base_url=url, policy=QUICK)
        assert send(channel) == SendResult(TRANSIENT, "UNREACHABLE")


def test_threads_share_one_access_token(channel: FcmChannel, server: FcmServer) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: send(channel), range(40)))
    assert {result.outcome for result in results} == {Outcome.SENT}
    assert server.token_requests == 1
    assert set(server.bearers) == {"Bearer ya29.1"}


@pytest.fixture
def begin_within_s() -> float:
    """Enough for a whole batch on a busy machine."""
    return 60.0


@pytest.fixture
def timeout_s() -> float:
    """Eight clients and eight servers share one process, so some of their threads have to wait."""
    return 2.0


@pytest.fixture
def eight_connections(
    server: FcmServer, clock: FakeClock, tmp_path: Path, begin_within_s: float, timeout_s: float
) -> Iterator[FcmChannel]:
    credentials = str(server.write_credentials(tmp_path / "account.json"))
    policy = RetryPolicy(timeout_s=timeout_s, retries=2)
    made = FcmChannel(
        credentials, clock, base_url=server.base_url, policy=policy, connections=8, begin_within_s=begin_within_s
    )
    yield made
    made.close()


def slow_phones(server: FcmServer, size: int) -> list[OutgoingMessage]:
    """Messages for `size` phones. The server answers slowly, with an id that names the phone."""
    for number in range(size):
        server.by_address[f"token-{number}"] = Slow(0.005, Answer(200, {"name": f"message-{number}"}))
    return [outgoing(Device(str(number), f"token-{number}", AddressKind.TOKEN)) for number in range(size)]


def test_batch_uses_a_limited_number_of_connections(eight_connections: FcmChannel, server: FcmServer) -> None:
    results = eight_connections.handle(slow_phones(server, 100))
    assert results == [SendResult(Outcome.SENT, provider_message_id=f"message-{number}") for number in range(100)]
    assert len(server.messages) == 100
    assert 2 <= server.most_at_once <= 8
    assert server.token_requests == 1


def test_concurrent_batches_share_the_connections(eight_connections: FcmChannel, server: FcmServer) -> None:
    batches = [slow_phones(server, 24) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        answered = list(pool.map(eight_connections.handle, batches))
    assert [result and result.outcome for results in answered for result in results] == [Outcome.SENT] * 72
    assert 2 <= server.most_at_once <= 8


def test_failure_of_one_phone_does_not_affect_the_rest_of_its_batch(
    eight_connections: FcmChannel, server: FcmServer
) -> None:
    messages = slow_phones(server, 40)
    failing: dict[int, tuple[Scripted, SendResult]] = {
        3: (fcm_server.UNREGISTERED, SendResult(GONE, "UNREGISTERED")),
        7: (fcm_server.UNAVAILABLE, SendResult(TRANSIENT, "UNAVAILABLE", overloaded=True)),
        11: (Reset(), SendResult(UNKNOWN, "CONNECTION_LOST")),
        12: (Hang(), SendResult(UNKNOWN, "TIMEOUT")),
    }
    for number, (answer, _) in failing.items():
        server.by_address[f"token-{number}"] = answer
    messages[20] = outgoing(Device("20", "token-20", AddressKind.TOKEN), body="a" * 5000)
    messages[21] = outgoing(Device("21", "token-21", AddressKind.TOKEN), body="half of a pair: \ud83d")
    expected = {number: result for number, (_, result) in failing.items()} | {
        20: SendResult(PERMANENT, "PAYLOAD_TOO_LARGE"),
        21: SendResult(UNKNOWN, "CHANNEL_ERROR"),
    }
    with structlog.testing.capture_logs() as logs:
        results = eight_connections.handle(messages)
    sent = {number: SendResult(Outcome.SENT, provider_message_id=f"message-{number}") for number in range(40)}
    assert dict(enumerate(results)) == sent | expected
    assert [one["event"] for one in logs] == ["channel_failed"]


def test_answer_does_not_wait_for_slower_ones_of_its_batch(eight_connections: FcmChannel, server: FcmServer) -> None:
    messages = slow_phones(server, 40)
    server.by_address["token-0"] = Hang()
    places = [place for place, _ in eight_connections.answers(messages, lambda: True)]
    assert sorted(places) == list(range(40))
    assert places[-1] == 0


def test_batch_that_may_not_go_on_begins_no_further_message(eight_connections: FcmChannel, server: FcmServer) -> None:
    messages = slow_phones(server, 40)
    answers = eight_connections.answers(messages, lambda: len(server.messages) < 10)
    begun = [place for place, result in answers if result is not None]
    assert 10 <= len(begun) <= 18


def test_two_batches_share_the_connections_evenly(eight_connections: FcmChannel, server: FcmServer) -> None:
    """The second one does not wait until the messages of the first one are sent."""
    first = eight_connections.answers(slow_phones(server, 200), lambda: True)
    next(first)
    assert len(list(eight_connections.answers(slow_phones(server, 8), lambda: True))) == 8
    assert len(server.messages) < 100
    assert len(list(first)) == 199


@pytest.mark.parametrize(("begin_within_s", "timeout_s"), [(0.5, 1.0)])
def test_batch_without_answers_ends_in_time(eight_connections: FcmChannel, server: FcmServer) -> None:
    messages = slow_phones(server, 500)
    server.by_address = dict.fromkeys(server.by_address, Hang())
    began = time.monotonic()
    results = eight_connections.handle(messages)
    took_s = time.monotonic() - began
    assert took_s < eight_connections.longest_s
    begun = 500 - results.count(None)
    assert 8 <= len(server.messages) <= begun < 100
    assert results == [SendResult(UNKNOWN, "TIMEOUT")] * begun + [None] * (500 - begun)


@pytest.mark.parametrize(("begin_within_s", "timeout_s"), [(0.5, 1.0)])
def test_batch_without_an_access_token_ends_in_time(eight_connections: FcmChannel, server: FcmServer) -> None:
    server.token_answers.extend([Hang()] * 100)
    began = time.monotonic()
    results = eight_connections.handle(slow_phones(server, 500))
    assert time.monotonic() - began < eight_connections.longest_s
    assert set(results) == {SendResult(TRANSIENT, "AUTH_UNAVAILABLE"), None}
    assert server.messages == []


def test_refused_access_token_is_replaced_for_the_next_message(channel: FcmChannel, server: FcmServer) -> None:
    server.answers.append(fcm_server.UNAUTHENTICATED)
    assert [send(channel).outcome, send(channel).outcome] == [PERMANENT, Outcome.SENT]
    assert server.token_requests == 2


@pytest.mark.parametrize("answer", [Answer(503, {}), Answer(429, {}), Answer(200, "no json"), Hang(), Reset()])
def test_failure_of_the_token_server_is_transient_and_not_retried(
    channel: FcmChannel, server: FcmServer, answer: Scripted
) -> None:
    server.token_answers.append(answer)
    assert send(channel) == SendResult(TRANSIENT, "AUTH_UNAVAILABLE")
    assert server.token_requests == 1
    assert server.messages == []
    assert send(channel).outcome is Outcome.SENT


def test_threads_that_wait_for_a_token_share_its_failure(channel: FcmChannel, server: FcmServer) -> None:
    server.token_answers.extend([Hang()] * 8)
    together = threading.Barrier(8)

    def send_together(_: int) -> SendResult:
        together.wait()
        return send(channel)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(send_together, range(8)))
    assert results == [SendResult(TRANSIENT, "AUTH_UNAVAILABLE")] * 8
    assert server.token_requests < 4


def test_refused_credentials_are_logged_as_critical(server: FcmServer, clock: FakeClock, tmp_path: Path) -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    credentials = server.write_credentials(tmp_path / "account.json", stranger)
    channel = FcmChannel(str(credentials), clock, base_url=server.base_url, policy=QUICK)
    with structlog.testing.capture_logs() as logs:
        assert send(channel) == SendResult(PERMANENT, "AUTH_REJECTED")
    assert [(one["event"], one["log_level"]) for one in logs] == [("fcm_credentials_rejected", "critical")]


def test_tokens_are_not_in_logs_or_results(channel: FcmChannel, server: FcmServer) -> None:
    text = "The registration token token-of-the-phone is not good"
    server.answers.append(fcm_error(403, "token-of-the-phone", "token-of-the-phone", text))
    with structlog.testing.capture_logs() as logs:
        results = [send(channel), send(channel)]
    shown = repr(logs) + repr(results) + repr(outgoing())
    assert "token-of-the-phone" not in shown
    assert "ya29" not in shown
