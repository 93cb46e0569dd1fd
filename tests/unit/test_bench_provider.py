"""The provider stand-in of the benchmarks: their results depend on what it records."""

import struct
from typing import Any

from benchmarks.provider import Behaviour, Http, Mail, Providers

MAIL = b"Subject: Merhaba\r\nMessage-ID: <an-id@example.org>\r\n\r\nMerhaba\r\n.\r\n"


class FakeTransport:
    """Keeps the bytes that the provider sends, and is its own socket."""

    def __init__(self) -> None:
        self.sent = b""
        self.closed = False
        self.reset = False

    def get_extra_info(self, _name: str) -> "FakeTransport":
        return self

    def setsockopt(self, _level: int, _option: int, value: bytes) -> None:
        assert struct.unpack("ii", value) == (1, 0), "an abort without lingering is a reset"
        self.reset = True

    def abort(self) -> None:
        self.closed = True

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def connected(kind: type[Any], providers: Providers) -> tuple[Any, FakeTransport]:
    protocol, transport = kind(providers), FakeTransport()
    protocol.connection_made(transport)
    return protocol, transport


def webhook(id_: str) -> bytes:
    return f"POST /webhook HTTP/1.1\r\nwebhook-id: {id_}\r\nContent-Length: 2\r\n\r\n{{}}".encode()


def behaving(**behaviour: Behaviour) -> Providers:
    providers = Providers(1)
    providers.behave({name: vars(one) for name, one in behaviour.items()})
    return providers


def test_split_requests_are_answered_once_and_recorded() -> None:
    providers = behaving()
    protocol, transport = connected(Http, providers)
    requests = webhook("one") + webhook("two")
    for start in range(0, len(requests), 7):
        protocol.data_received(requests[start : start + 7])
    assert transport.sent.count(b"HTTP/1.1 200 ") == 2
    assert [id_ for id_, _ in providers.request_logs()["WEBHOOK"]["accepted"]] == ["one", "two"]


def test_failing_provider_records_the_try_and_accepts_nothing() -> None:
    providers = behaving(WEBHOOK=Behaviour(failing=1.0), EMAIL=Behaviour(failing=1.0))
    protocol, transport = connected(Http, providers)
    protocol.data_received(webhook("one"))
    mail, mail_transport = connected(Mail, providers)
    mail.data_received(b"DATA\r\n" + MAIL)
    assert transport.sent.startswith(b"HTTP/1.1 503 ")
    assert mail_transport.sent.endswith(b"451 4.3.0 Later\r\n")
    for name, id_ in (("WEBHOOK", "one"), ("EMAIL", "an-id")):
        request_log = providers.request_logs()[name]
        assert [one[0] for one in request_log["tried"]] == [id_]
        assert request_log["accepted"] == []


def test_hanging_provider_does_not_answer() -> None:
    providers = behaving(WEBHOOK=Behaviour(hangs=True))
    protocol, transport = connected(Http, providers)
    protocol.data_received(webhook("one"))
    assert transport.sent == b""
    assert len(providers.request_logs()["WEBHOOK"]["tried"]) == 1


def test_lost_answers_are_silence_or_a_reset_and_half_of_the_messages_are_taken() -> None:
    providers = behaving(WEBHOOK=Behaviour(lost=1.0))
    resets = 0
    for _ in range(200):
        protocol, transport = connected(Http, providers)
        protocol.data_received(webhook("one"))
        assert transport.sent == b""
        assert transport.reset == transport.closed
        resets += transport.reset
    request_log = providers.request_logs()["WEBHOOK"]
    assert len(request_log["tried"]) == 200
    assert 60 < resets < 140
    assert 60 < len(request_log["accepted"]) < 140


def test_failures_have_the_configured_share() -> None:
    providers = behaving(SMS=Behaviour(failing=0.2))
    accepted = [providers.handle("SMS", str(n))[0] for n in range(10_000)]
    assert 0.78 < sum(accepted) / len(accepted) < 0.82


def test_each_provider_reads_the_id_from_its_own_field() -> None:
    providers = behaving()
    protocol, _ = connected(Http, providers)
    push = b'{"message": {"data": {"notificationId": "a-push"}}}'
    protocol.data_received(
        b"POST /v1/projects/bench/messages:send HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(push), push)
    )
    protocol.data_received(b"POST /sms HTTP/1.1\r\nIdempotency-Key: an-sms\r\nContent-Length: 0\r\n\r\n")
    protocol.data_received(b"POST /bare/EMAIL HTTP/1.1\r\nwebhook-id: bare\r\nContent-Length: 0\r\n\r\n")
    mail, _ = connected(Mail, providers)
    mail.data_received(b"EHLO bench\r\nMAIL FROM:<a@b.org>\r\nRCPT TO:<c@d.org>\r\nDATA\r\n")
    mail.data_received(MAIL)
    accepted = {
        name: [one[0] for one in request_log["accepted"]] for name, request_log in providers.request_logs().items()
    }
    assert accepted == {"PUSH": ["a-push"], "SMS": ["an-sms"], "EMAIL": ["bare", "an-id"]}
