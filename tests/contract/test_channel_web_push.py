"""Web Push to a push service and a browser that really check and decrypt."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
import structlog
from cryptography.exceptions import InvalidTag

from app.delivery.channels.public_addresses import Resolver
from app.delivery.channels.web_push import WebPushChannel
from app.delivery.messages.content import LARGEST_WEB_PUSH_BYTES, as_json, push_content
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Device, Outcome
from app.foundation.clock import FakeClock
from app.users.models import AddressKind
from tests.support.delivery import outgoing
from tests.support.provider_server import Answer, Hang, ProviderServer, Reset, Scripted, retry_afters
from tests.support.push_service import RESOLVER, Browser, PushService, new_keys

KEYS = new_keys()
QUICK = RetryPolicy(timeout_s=0.9, retries=2)
CLOCK = FakeClock()
NOW = CLOCK.now()
SENT = SendResult(Outcome.SENT)
PERMANENT, TRANSIENT, UNKNOWN = Outcome.PERMANENT, Outcome.TRANSIENT, Outcome.UNKNOWN


@pytest.fixture(scope="module")
def running() -> Iterator[PushService]:
    with PushService(KEYS, lambda: CLOCK.now().timestamp()).running() as service:
        yield service


@pytest.fixture(scope="module")
def trusted(running: PushService, tmp_path_factory: pytest.TempPathFactory) -> str:
    assert running.certificate is not None
    path = tmp_path_factory.mktemp("tls") / "trusted.pem"
    path.write_bytes(running.certificate)
    return str(path)


@pytest.fixture(scope="module")
def channel(trusted: str) -> Iterator[WebPushChannel]:
    with closing(opened(trusted)) as made:
        yield made


@pytest.fixture
def service(running: PushService) -> PushService:
    """As if it had just started. A server for each test would cost a handshake for each."""
    for record in (running.stored, running.answers, running.requests, running.by_browser):
        record.clear()
    return running


def opened(trusted: str, **options: Any) -> WebPushChannel:
    values = {"policy": QUICK, "check": None, "resolver": RESOLVER, "ca_file": trusted}
    return WebPushChannel(KEYS, CLOCK, **(values | options))


def send(channel: WebPushChannel, browser: Browser, **changes: Any) -> SendResult | None:
    [result] = channel.handle([outgoing(browser.device, **changes)])
    return result


def test_browser_reads_the_message_and_the_push_service_does_not(channel: WebPushChannel, service: PushService) -> None:
    one = outgoing(service.subscribe().device)
    assert channel.handle([one]) == [SENT]
    [(browser, request)] = service.stored
    assert browser.read(request.body) == {
        "data": one.notification.data,
        "notification": {"title": "Yeni talep", "body": "Yakınında yeni bir talep var!"},
    }
    assert b"talep" not in request.body
    with pytest.raises(InvalidTag):
        service.subscribe("another").read(request.body)


def test_each_message_is_encrypted_with_a_key_of_its_own(channel: WebPushChannel, service: PushService) -> None:
    one = outgoing(service.subscribe().device)
    channel.handle([one, one])
    first, second = (request.body[:86] for _, request in service.stored)
    assert first[:16] != second[:16] and first[21:] != second[21:]


@pytest.mark.parametrize(
    ("expires_at", "ttl"),
    [
        (NOW + timedelta(seconds=599.9), "599"),
        (NOW - timedelta(seconds=1), "0"),
        (NOW + timedelta(days=90), "2419200"),
        (None, "2419200"),
    ],
)
def test_message_is_kept_as_long_as_it_has_a_meaning(
    channel: WebPushChannel, service: PushService, expires_at: Any, ttl: str
) -> None:
    send(channel, service.subscribe(), expires_at=expires_at)
    [(_, request)] = service.stored
    assert (request.headers["TTL"], request.headers["Urgency"]) == (ttl, "high")


def test_message_replaces_an_older_one_about_the_same_task(channel: WebPushChannel, service: PushService) -> None:
    browser = service.subscribe()
    for data in ({"taskId": "t1", "type": "offer"}, {"taskId": "t1", "type": "withdrawn"}, {"taskId": "t2"}, {}, {}):
        send(channel, browser, data=data)
    topics = [request.headers["Topic"] for _, request in service.stored]
    assert topics[0] == topics[1] and len(set(topics)) == 4
    assert all(len(topic) == 32 for topic in topics)


def test_push_service_that_knows_other_keys_is_an_error_of_ours(trusted: str, service: PushService) -> None:
    other = WebPushChannel(new_keys(), CLOCK, check=None, resolver=RESOLVER, ca_file=trusted)
    with closing(other), structlog.testing.capture_logs() as logs:
        assert send(other, service.subscribe()) == SendResult(PERMANENT, "VAPID_REJECTED", at_fault=False)
    assert [one["event"] for one in logs] == ["push_service_refuses_us"]
    assert service.stored == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(200, ""), SENT),
        (Answer(201, ""), SENT),
        (Answer(202, ""), SENT),
        (
            Answer(307, "", {"Location": "http://169.254.169.254/"}),
            SendResult(PERMANENT, "REDIRECT_REFUSED", at_fault=False),
        ),
        (Answer(400, ""), SendResult(PERMANENT, "HTTP_400")),
        (Answer(401, ""), SendResult(PERMANENT, "VAPID_REJECTED", at_fault=False)),
        (Answer(404, ""), SendResult(Outcome.RECIPIENT_GONE, "SUBSCRIPTION_GONE")),
        (Answer(410, ""), SendResult(Outcome.RECIPIENT_GONE, "SUBSCRIPTION_GONE")),
        (Answer(413, ""), SendResult(PERMANENT, "PAYLOAD_TOO_LARGE")),
        (Answer(500, ""), SendResult(TRANSIENT, "HTTP_500", overloaded=True)),
        (Answer(503, "", {"Retry-After": "9"}), SendResult(TRANSIENT, "HTTP_503", retry_after_s=9.0, overloaded=True)),
        (Reset(), SendResult(UNKNOWN, "CONNECTION_LOST")),
        (Hang(), SendResult(UNKNOWN, "TIMEOUT")),
    ],
)
def test_each_answer_has_its_result_after_one_request(
    channel: WebPushChannel, service: PushService, answer: Scripted, expected: SendResult
) -> None:
    service.answers.append(answer)
    assert send(channel, service.subscribe()) == expected
    assert len(service.requests) == 1


@pytest.mark.parametrize(("headers", "expected"), **retry_afters(NOW))
def test_retry_after_of_the_push_service_is_used(
    channel: WebPushChannel, service: PushService, headers: dict[str, str], expected: float | None
) -> None:
    service.answers.append(Answer(429, "", headers))
    wait_s = 60.0 if expected is None else expected
    assert send(channel, service.subscribe()) == SendResult(TRANSIENT, "HTTP_429", retry_after_s=wait_s, at_fault=False)


def test_largest_message_fills_one_record(channel: WebPushChannel, service: PushService) -> None:
    browser = service.subscribe()
    room = LARGEST_WEB_PUSH_BYTES - len(as_json(push_content("", "x", {})))
    assert send(channel, browser, subject="", body="a" * (room + 1), data={}) == SENT
    assert send(channel, browser, subject="", body="a" * (room + 2), data={}) == SendResult(
        PERMANENT, "PAYLOAD_TOO_LARGE", at_fault=False
    )
    assert [len(request.body) for _, request in service.stored] == [4096]


def test_private_address_is_refused(trusted: str, service: PushService) -> None:
    """The name of a push service is chosen by whoever registers a device."""
    refused = SendResult(PERMANENT, "PRIVATE_ADDRESS", at_fault=False)
    real = WebPushChannel(KEYS, CLOCK, ca_file=trusted, resolver=Resolver(lambda host: ["8.8.8.8", "127.0.0.1"]))
    with closing(real):
        assert send(real, service.subscribe()) == refused
    assert service.requests == []


@pytest.mark.parametrize("token", ["", "token-of-a-phone", '{"endpoint":"http://127.0.0.1/","keys":{}}'])
def test_device_without_a_subscription_is_refused(channel: WebPushChannel, token: str) -> None:
    one = outgoing(Device("browser", token, AddressKind.WEB_PUSH))
    assert channel.handle([one]) == [SendResult(PERMANENT, "INVALID_ADDRESS", at_fault=False)]
    assert channel.provider(one) == "web_push"


def test_each_push_service_has_its_own_breaker(channel: WebPushChannel, service: PushService) -> None:
    ours, others = service.subscribe().device, Browser("https://updates.push.example/1").device
    names = [channel.provider(outgoing(device)) for device in (ours, others)]
    assert names == [f"web_push:push.localhost:{service.port}", "web_push:updates.push.example"]


def test_proxies_of_the_environment_are_not_used(
    trusted: str, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    with closing(opened(trusted)) as direct:
        assert send(direct, service.subscribe()) == SENT


def test_untrusted_push_service_gets_nothing(trusted: str, service: PushService) -> None:
    with ProviderServer(tls=True).running() as other, closing(opened(trusted)) as channel:
        browser = Browser(f"https://push.localhost:{other.port}/1")
        assert send(channel, browser) == SendResult(TRANSIENT, "UNREACHABLE")
        assert other.requests == []
