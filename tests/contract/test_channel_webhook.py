"""Webhooks over HTTP, to receivers that may be slow, broken, gone or hostile."""

import base64
import hashlib
import hmac
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.delivery.channels.public_addresses import Resolver
from app.delivery.channels.webhook import POLICY, WebhookChannel
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome, RecipientChannel
from app.foundation.clock import FakeClock
from app.settings import signing_secrets
from tests.support.delivery import outgoing
from tests.support.provider_server import (
    Answer,
    Hang,
    ProviderServer,
    Request,
    Reset,
    ResetAtOnce,
    Scripted,
    Slow,
    Trickle,
    TrickledHeaders,
    retry_afters,
)

BUSY_S = 2.0
"""Later than its limit by less, because the tests beside this one keep the machine busy."""
QUICK = RetryPolicy(timeout_s=0.9, retries=3)
SECRET, OLD_SECRET = signing_secrets.create(), signing_secrets.create()
ENTRY = RecipientChannel(7, secrets=(SECRET, OLD_SECRET))
SENT = SendResult(Outcome.SENT)
CLOCK = FakeClock()


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(Answer(204, "")).running() as running:
        yield running


def opened(**options: Any) -> WebhookChannel:
    return WebhookChannel(CLOCK, **({"secret": SECRET, "allow_private": True, "policy": QUICK} | options))


@pytest.fixture
def channel() -> Iterator[WebhookChannel]:
    made = opened()
    yield made
    made.close()


def send(channel: WebhookChannel, url: str, **options: Any) -> SendResult:
    [result] = channel.handle([webhook(url, **options)])
    return result


def webhook(url: str, **options: Any) -> Any:
    return outgoing(None, notification_type=NotificationType.WEBHOOK, recipient=url, **options)


def is_signed(request: Request, secret: str) -> bool:
    """Written from the specification and not from our own code, so that it does not share its mistakes."""
    key = base64.b64decode(secret[6:])
    content = b".".join(
        [request.headers["webhook-id"].encode(), request.headers["webhook-timestamp"].encode(), request.body]
    )
    mine = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return mine in request.headers["webhook-signature"].split(" ")


def test_message_is_signed(channel: WebhookChannel, server: ProviderServer) -> None:
    assert send(channel, f"{server.base_url}/hooks/7?a=b") == SENT
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/hooks/7?a=b")
    assert request.headers["Content-Type"] == "application/json; charset=utf-8"
    assert request.headers["Host"] == f"127.0.0.1:{server.port}"
    assert request.json()["data"]["body"] == "Yakınında yeni bir talep var!"
    assert is_signed(request, SECRET) and not is_signed(request, OLD_SECRET)


def test_during_a_change_of_secrets_both_verify(channel: WebhookChannel, server: ProviderServer) -> None:
    assert send(channel, server.base_url, recipient_channel=ENTRY) == SENT
    [request] = server.requests
    assert is_signed(request, SECRET) and is_signed(request, OLD_SECRET)


def test_every_attempt_has_the_same_id_and_body_and_its_own_time(server: ProviderServer) -> None:
    clock = FakeClock()
    channel = WebhookChannel(clock, secret=SECRET, allow_private=True)
    one = webhook(server.base_url)
    channel.handle([one])
    clock.advance(5)
    channel.handle([one])
    first, second = server.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == str(one.id)
    assert first.body == second.body
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 5
    channel.close()


def test_without_a_secret_nothing_is_sent(server: ProviderServer) -> None:
    channel = opened(secret=None)
    assert send(channel, server.base_url) == SendResult(Outcome.PERMANENT, "NO_SECRET")
    assert send(channel, server.base_url, recipient_channel=RecipientChannel(7)) == SendResult(
        Outcome.PERMANENT, "NO_SECRET"
    )
    assert server.requests == []


def test_directory_can_add_headers_but_not_replace_ours(channel: WebhookChannel, server: ProviderServer) -> None:
    requested = {
        "Authorization": "Bearer t",
        "X-Region": "tr",
        "Host": "inside",
        "webhook-id": "1",
        "X-Cut": "a\r\nHost: b",
    }
    one = RecipientChannel(7, meta={"headers": requested}, secrets=(SECRET,))
    assert send(channel, server.base_url, recipient_channel=one) == SENT
    [request] = server.requests
    assert (request.headers["Authorization"], request.headers["X-Region"]) == ("Bearer t", "tr")
    assert request.headers["Host"] == f"127.0.0.1:{server.port}"
    assert is_signed(request, SECRET) and request.headers["X-Cut"] is None


@pytest.mark.parametrize(
    "url", ["", "ftp://127.0.0.1/", "http://", "http://user:pass@127.0.0.1/", "http://127.0.0.1:99999/", "http://a b/"]
)
def test_invalid_url_is_refused(channel: WebhookChannel, url: str) -> None:
    assert send(channel, url) == SendResult(Outcome.PERMANENT, "INVALID_ADDRESS")


PERMANENT, TRANSIENT, UNKNOWN = Outcome.PERMANENT, Outcome.TRANSIENT, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(200, "anything"), SENT),
        (Answer(202, {}), SENT),
        (Answer(204, ""), SENT),
        (Answer(301, "", {"Location": "/elsewhere"}), SendResult(PERMANENT, "REDIRECT_REFUSED")),
        (Answer(307, "", {"Location": "http://169.254.169.254/"}), SendResult(PERMANENT, "REDIRECT_REFUSED")),
        (Answer(304, ""), SendResult(PERMANENT, "REDIRECT_REFUSED")),
        (Answer(400, {}), SendResult(PERMANENT, "HTTP_400", at_fault=False)),
        (Answer(401, {}), SendResult(PERMANENT, "HTTP_401", at_fault=False)),
        (Answer(404, {}), SendResult(PERMANENT, "HTTP_404", at_fault=False)),
        (Answer(408, ""), SendResult(TRANSIENT, "HTTP_408", at_fault=False)),
        (Answer(410, ""), SendResult(Outcome.RECIPIENT_GONE, "HTTP_410", at_fault=False, disables=True)),
        (Answer(413, ""), SendResult(PERMANENT, "PAYLOAD_TOO_LARGE", at_fault=False)),
        (Answer(429, ""), SendResult(TRANSIENT, "HTTP_429", at_fault=False)),
        (Answer(500, ""), SendResult(TRANSIENT, "HTTP_500", overloaded=True)),
        (
            Answer(503, "", {"Retry-After": "120"}),
            SendResult(TRANSIENT, "HTTP_503", retry_after_s=120.0, overloaded=True),
        ),
        (Reset(), SendResult(UNKNOWN, "CONNECTION_LOST")),
        (ResetAtOnce(), SendResult(UNKNOWN, "CONNECTION_LOST")),
        (Slow(0.3, Answer(200, "")), SENT),
    ],
)
def test_each_answer_has_its_result_after_one_request(
    channel: WebhookChannel, server: ProviderServer, answer: Scripted, expected: SendResult
) -> None:
    server.answers.append(answer)
    assert send(channel, server.base_url) == expected
    assert len(server.requests) == (0 if isinstance(answer, ResetAtOnce) else 1)


def test_silent_server_is_a_timeout(channel: WebhookChannel, server: ProviderServer) -> None:
    check_timeouts(channel, server, [Hang(), TrickledHeaders(0.05)])


def check_timeouts(channel: WebhookChannel, server: ProviderServer, answers: list[Scripted]) -> None:
    """All of them at the same time, because each case lasts as long as the time limit."""
    server.answers.extend(answers)
    began = time.monotonic()
    with ThreadPoolExecutor(len(answers)) as pool:
        results = list(pool.map(lambda _: send(channel, server.base_url), answers))
    assert results == [SendResult(UNKNOWN, "TIMEOUT")] * len(answers)
    assert time.monotonic() - began < QUICK.timeout_s + 0.4
    assert len(server.requests) == len(answers)


@pytest.mark.parametrize(("headers", "expected"), **retry_afters(CLOCK.now()))
def test_retry_after_of_the_receiver_is_used(
    channel: WebhookChannel, server: ProviderServer, headers: dict[str, str], expected: float | None
) -> None:
    server.answers.append(Answer(429, "", headers))
    assert send(channel, server.base_url).retry_after_s == expected


def test_endless_body_does_not_delay_the_result(channel: WebhookChannel, server: ProviderServer) -> None:
    server.answers.append(Trickle(0.05))
    began = time.monotonic()
    assert send(channel, server.base_url) == SENT
    assert time.monotonic() - began < QUICK.timeout_s + 0.4


def test_large_body_is_not_read(channel: WebhookChannel, server: ProviderServer) -> None:
    server.answers.append(Answer(200, b"a" * 1_000_000))
    assert send(channel, server.base_url) == SENT
    assert send(channel, server.base_url) == SENT
    assert server.connections == 2, "a connection with an unread body cannot be reused"


def test_cookies_are_not_sent_back(channel: WebhookChannel, server: ProviderServer) -> None:
    server.answers.append(Answer(204, "", {"Set-Cookie": "whose=mine; Path=/"}))
    send(channel, server.base_url)
    send(channel, server.base_url)
    assert [request.headers["Cookie"] for request in server.requests] == [None, None]


def test_proxies_of_the_environment_are_not_used(
    channel: WebhookChannel, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert send(channel, server.base_url) == SENT


# Addresses of a host


def test_private_addresses_are_refused_in_every_notation(server: ProviderServer) -> None:
    channel = opened(allow_private=False)
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
        assert send(channel, f"http://{host}:{server.port}/") == SendResult(PERMANENT, "PRIVATE_ADDRESS"), host
    for host in ("2130706433", "0x7f000001", "0x7f.1", "017700000001", "127.1"):
        assert send(channel, f"http://{host}:{server.port}/").outcome is PERMANENT, host
    assert server.requests == []
    channel.close()


def test_host_with_one_private_address_is_refused(server: ProviderServer) -> None:
    channel = opened(allow_private=False, resolver=Resolver(lambda host: ["8.8.8.8", "127.0.0.1"]))
    assert send(channel, f"http://mixed.example:{server.port}/") == SendResult(PERMANENT, "PRIVATE_ADDRESS")


def test_connection_uses_the_address_that_was_checked(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the host is looked up once, and the connection uses that address."""
    looked_up = iter([["203.0.114.1"], ["127.0.0.1"]])
    connected: list[Any] = []

    def connect(sock: socket.socket, address: Any) -> None:
        connected.append(address)
        raise ConnectionRefusedError

    channel = opened(allow_private=False, resolver=Resolver(lambda host: next(looked_up)))
    # A test has no network.
    monkeypatch.setattr(socket.socket, "connect", connect)
    assert send(channel, f"http://rebinding.example:{server.port}/") == SendResult(TRANSIENT, "UNREACHABLE")
    assert connected == [("203.0.114.1", server.port)]
    assert send(channel, f"http://rebinding.example:{server.port}/") == SendResult(PERMANENT, "PRIVATE_ADDRESS")
    assert server.requests == []


def test_host_header_has_the_name(server: ProviderServer) -> None:
    channel = opened(resolver=Resolver(lambda host: ["127.0.0.1"]))
    assert send(channel, f"http://hooks.example:{server.port}/") == SENT
    assert server.requests[0].headers["Host"] == f"hooks.example:{server.port}"
    channel.close()


def test_unreachable_address_leaves_time_for_the_next(server: ProviderServer) -> None:
    channel = opened(resolver=Resolver(lambda host: ["127.0.0.2", "127.0.0.1"]))
    assert send(channel, f"http://hooks.example:{server.port}/") == SENT
    channel.close()


def test_unknown_host_name_is_retried() -> None:
    def unknown(_host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert send(opened(resolver=Resolver(unknown)), "http://nowhere.example/") == SendResult(TRANSIENT, "UNREACHABLE")


def test_silent_name_server_ends_in_time() -> None:
    closing = threading.Event()

    def hang(_host: str) -> list[str]:
        closing.wait(30)
        return []

    began = time.monotonic()
    assert send(opened(resolver=Resolver(hang)), "http://slow.example/") == SendResult(TRANSIENT, "UNREACHABLE")
    assert time.monotonic() - began < QUICK.timeout_s
    closing.set()


def test_closed_port_is_retried(channel: WebhookChannel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert send(channel, f"http://127.0.0.1:{port}/") == SendResult(TRANSIENT, "UNREACHABLE")


# TLS


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[tuple[ProviderServer, str]]:
    with ProviderServer(Answer(204, ""), tls=True).running() as running:
        assert running.certificate is not None
        path = tmp_path / "trusted.pem"
        path.write_bytes(running.certificate)
        yield running, str(path)


def test_certificate_is_verified_for_the_host_name(
    tls_server: tuple[ProviderServer, str],
) -> None:
    server, trusted = tls_server
    channel = opened(resolver=Resolver(lambda host: ["127.0.0.1"]), ca_file=trusted)
    assert send(channel, f"https://localhost:{server.port}/") == SENT
    assert send(channel, f"https://hooks.example:{server.port}/") == SendResult(TRANSIENT, "UNREACHABLE")
    assert len(server.requests) == 1
    channel.close()


def test_untrusted_certificate_is_refused(channel: WebhookChannel, tls_server: tuple[ProviderServer, str]) -> None:
    server, _ = tls_server
    assert send(channel, server.base_url) == SendResult(TRANSIENT, "UNREACHABLE")
    assert server.requests == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Reset(), SendResult(UNKNOWN, "CONNECTION_LOST")),
        (Trickle(0.05), SENT),
    ],
)
def test_answers_inside_tls(tls_server: tuple[ProviderServer, str], answer: Scripted, expected: SendResult) -> None:
    server, trusted = tls_server
    server.answers.append(answer)
    with closing(opened(ca_file=trusted)) as channel:
        began = time.monotonic()
        assert send(channel, server.base_url) == expected
        assert time.monotonic() - began < QUICK.timeout_s + 0.4


def test_silent_server_is_a_timeout_inside_tls(tls_server: tuple[ProviderServer, str]) -> None:
    server, trusted = tls_server
    with closing(opened(ca_file=trusted)) as channel:
        check_timeouts(channel, server, [Hang(), TrickledHeaders(0.05)])


def test_handshake_without_an_answer_is_unreachable(channel: WebhookChannel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        assert send(channel, url) == SendResult(TRANSIENT, "UNREACHABLE")
        assert time.monotonic() - began < QUICK.timeout_s + BUSY_S


def test_broken_handshake_is_unreachable(channel: WebhookChannel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rude:

        def hang_up() -> None:
            accepted, _ = rude.accept()
            accepted.recv(1)
            accepted.close()

        threading.Thread(target=hang_up, daemon=True).start()
        url = f"https://127.0.0.1:{rude.getsockname()[1]}/"
        assert send(channel, url) == SendResult(TRANSIENT, "UNREACHABLE")


# Verification


def challenged(url: str, **options: Any) -> Any:
    return webhook(url, recipient_channel=ENTRY, metadata={"challenge": "c-1"}, **options)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(200, {"challenge": "c-1"}), SENT),
        (Answer(200, {"challenge": "c-2"}), SendResult(PERMANENT, "CHALLENGE_FAILED", at_fault=False)),
        (Answer(200, {}), SendResult(PERMANENT, "CHALLENGE_FAILED", at_fault=False)),
        (Answer(200, "c-1"), SendResult(PERMANENT, "CHALLENGE_FAILED", at_fault=False)),
        (Answer(204, ""), SendResult(PERMANENT, "CHALLENGE_FAILED", at_fault=False)),
        (Answer(404, {"challenge": "c-1"}), SendResult(PERMANENT, "HTTP_404", at_fault=False)),
        (Answer(500, {"challenge": "c-1"}), SendResult(TRANSIENT, "HTTP_500", overloaded=True)),
        (Trickle(0.05), SendResult(UNKNOWN, "TIMEOUT")),
    ],
)
def test_challenge_has_to_be_returned(
    channel: WebhookChannel, server: ProviderServer, answer: Scripted, expected: SendResult
) -> None:
    server.answers.append(answer)
    assert channel.handle([challenged(server.base_url)]) == [expected]
    [request] = server.requests
    assert request.json()["type"] == "channel.verification"
    assert request.json()["data"] == {"challenge": "c-1"}
    assert is_signed(request, SECRET)


@pytest.mark.parametrize("metadata", [{}, {"challenge": "c-1"}])
def test_slack_gets_a_text_and_is_verified_by_taking_it(
    channel: WebhookChannel, server: ProviderServer, metadata: dict[str, str]
) -> None:
    server.answers.append(Answer(200, "ok"))
    entry = replace(ENTRY, meta={"format": "slack"})
    words = {"subject": "<Listeler>", "body": "3 & 4", "metadata": metadata}
    assert send(channel, server.base_url, recipient_channel=entry, **words) == SENT
    assert server.requests[0].json() == {"text": "*&lt;Listeler&gt;*\n3 &amp; 4"}


def test_challenge_without_a_directory_entry_is_a_normal_message(
    channel: WebhookChannel, server: ProviderServer
) -> None:
    assert send(channel, server.base_url, metadata={"challenge": "c-1"}) == SENT
    assert server.requests[0].json()["type"] == "notification"


# The description for the dispatcher


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://hooks.example/a?b", "hooks.example:443"),
        ("http://Hooks.Example:8080/", "hooks.example:8080"),
        ("http://[2606:4700::1]/", "2606:4700::1:80"),
        ("http://a:b:c/", "webhook"),
        ("nonsense", "webhook"),
    ],
)
def test_each_host_is_its_own_provider(channel: WebhookChannel, url: str, provider: str) -> None:
    assert channel.provider(webhook(url)) == provider


def test_policy_is_that_of_the_seed() -> None:
    assert (POLICY.timeout_s, POLICY.retries, POLICY.repeatable) == (5, 3, True)


def test_secrets_are_in_no_repr(channel: WebhookChannel) -> None:
    assert SECRET not in repr(webhook("http://a.example/", recipient_channel=ENTRY)) + repr(channel)
