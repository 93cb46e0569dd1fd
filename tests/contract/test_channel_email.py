"""E-mail over a real SMTP server, and over servers that break the protocol."""

import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog

from app.delivery.channels.base import OutgoingMessage, Wiring
from app.delivery.channels.connections import TimedBackend
from app.delivery.channels.email import EmailChannel, open_channel
from app.delivery.channels.email_message import compose
from app.delivery.channels.smtp import Connection, ConversationFailed, Stage
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome
from app.settings.mail_server import MailSender, MailServer, Tls, parse_sender
from app.settings.settings import load_settings
from tests.support.certificates import Authority
from tests.support.delivery import outgoing
from tests.support.smtp_server import Hang, Received, Reset, SmtpServer, rude_server
from tests.unit.test_settings import GOOD

# Shorter than in production, because tests wait for it.
QUICK = RetryPolicy(timeout_s=1.2, retries=3)
SENDER = parse_sender("Yanında <bildirim@ornek.org>")
ACCOUNTS = {"yaninda": "çok gizli parola"}
HOST = "localhost"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def host_context(authority: Authority) -> ssl.SSLContext:
    return authority.serve_as(HOST)


@pytest.fixture
def server(host_context: ssl.SSLContext) -> Iterator[SmtpServer]:
    with SmtpServer(starttls=host_context, accounts=ACCOUNTS).running() as running:
        yield running


@pytest.fixture
def channel(server: SmtpServer, authority: Authority) -> EmailChannel:
    return open_to(server.port, authority)


@cache
def default_context() -> ssl.SSLContext:
    """Made once, because reading all certificates of the system takes longer than most tests."""
    return ssl.create_default_context()


OPENED: list[EmailChannel] = []


@pytest.fixture(autouse=True)
def close_channels() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def open_to(
    port: int,
    authority: Authority | None = None,
    *,
    tls: Tls = Tls.STARTTLS,
    user: str | None = "yaninda",
    password: str = ACCOUNTS["yaninda"],
    sender: MailSender = SENDER,
    policy: RetryPolicy = QUICK,
    **more: Any,
) -> EmailChannel:
    at = MailServer(HOST, port, tls, user, password if user else "")
    context = authority.trusted() if authority else default_context()
    made = EmailChannel(at, sender, context=context, policy=policy, **more)
    OPENED.append(made)
    return made


def mail_for(**changes: Any) -> OutgoingMessage:
    values = {"notification_type": NotificationType.EMAIL, "recipient": "ayse@ornek.org", "recipient_user_id": None}
    return outgoing(None, **(values | changes))


def send(channel: EmailChannel, **changes: Any) -> SendResult:
    [result] = channel.handle([mail_for(**changes)])
    return result


def only(server: SmtpServer) -> Received:
    [received] = server.received
    return received


SENT, TRANSIENT, PERMANENT, GONE, UNKNOWN = (
    Outcome.SENT,
    Outcome.TRANSIENT,
    Outcome.PERMANENT,
    Outcome.RECIPIENT_GONE,
    Outcome.UNKNOWN,
)


# Content.


def test_turkish_text_arrives_unchanged(channel: EmailChannel, server: SmtpServer) -> None:
    subject, body = "Ayşe'nin çağrısı: İyi günler 👵", "Şu an yoldayım.\n\n.nokta ile başlar\nÖpüyorum ğüşıöç\n"
    assert send(channel, subject=subject, body=body).outcome is SENT
    message = only(server).message
    assert message["Subject"] == subject
    assert message.get_content().replace("\r\n", "\n") == body
    assert message.get_content_type() == "text/plain" and message.get_content_charset() == "utf-8"
    assert message["From"].addresses[0].display_name == "Yanında"
    assert message["From"].addresses[0].addr_spec == "bildirim@ornek.org"
    assert message["To"].addresses[0].addr_spec == "ayse@ornek.org"


def test_mail_is_encrypted_and_has_our_sender(channel: EmailChannel, server: SmtpServer) -> None:
    send(channel)
    received = only(server)
    assert received.is_encrypted
    assert (received.sender, received.recipient, received.user) == ("bildirim@ornek.org", "ayse@ornek.org", "yaninda")


def test_queue_id_of_the_server_is_returned(channel: EmailChannel) -> None:
    assert send(channel) == SendResult(SENT, provider_message_id="4Wq1xKz9")


@pytest.mark.parametrize(
    ("words", "id_"),
    [
        ("250 OK id=1sXyZ1-0004Ab-2C", "1sXyZ1-0004Ab-2C"),
        ("250 Ok 0102018f-2a6c-4b7e-000000", "0102018f-2a6c-4b7e-000000"),
        ("250 2.0.0 Ok: queued as 4WqXkz", "4WqXkz"),
    ],
)
def test_queue_ids_of_other_servers_are_found(channel: EmailChannel, server: SmtpServer, words: str, id_: str) -> None:
    server.replies["DATA"].append(words)
    assert send(channel).provider_message_id == id_


def test_without_a_queue_id_our_message_id_is_returned(channel: EmailChannel, server: SmtpServer) -> None:
    server.replies["DATA"].append("250 Thank you, ayse@ornek.org")
    one = mail_for()
    [result] = channel.handle([one])
    assert result.provider_message_id == f"<{one.id}@ornek.org>" == only(server).message["Message-ID"]


def test_every_attempt_sends_the_same_bytes(channel: EmailChannel, server: SmtpServer) -> None:
    one = mail_for()
    channel.handle([one])
    channel.handle([one])
    first, second = server.received
    assert first.content == second.content


SIGNED = ["From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"]


def test_mail_can_be_signed_with_dkim(channel: EmailChannel, server: SmtpServer) -> None:
    send(channel, subject="Ş" * 400, body="uzun" * 2000 + "\rtek\n.\n" + "ş" * 2000)
    received = only(server)
    assert sorted(received.message.keys()) == sorted([*SIGNED, "Auto-Submitted"])
    assert received.message["Auto-Submitted"] == "auto-generated"
    assert received.message["Date"].datetime == mail_for().notification.created_at
    assert max(len(line) for line in received.content.split(b"\r\n")) <= 998
    assert re.search(rb"(?<!\r)\n|\r(?!\n)", received.content) is None
    assert received.content.isascii()


def test_international_domains_are_sent_in_ascii(authority: Authority, server: SmtpServer) -> None:
    channel = open_to(server.port, authority, sender=parse_sender("bildirim@yanında.org"))
    assert send(channel, recipient="ayse@çağrı.com.tr").outcome is SENT
    received = only(server)
    assert received.sender == "bildirim@xn--yannda-r9a.org"
    assert received.recipient == "ayse@xn--ar-3ia9t9c.com.tr"
    assert received.message["Message-ID"].endswith("@xn--yannda-r9a.org>")


def test_unusual_valid_addresses_are_sent_unchanged(channel: EmailChannel, server: SmtpServer) -> None:
    for recipient in ("o'neil_{x}!#$%&*/=?^`|~-@ornek.org", f"{'a' * 64}@{'b' * 60}.{'c' * 60}.ornek.org"):
        assert send(channel, recipient=recipient).outcome is SENT
        assert server.received[-1].recipient == recipient
        assert server.received[-1].message["To"].addresses[0].addr_spec == recipient


def test_international_local_part_is_sent_to_a_server_with_smtputf8(
    host_context: ssl.SSLContext, authority: Authority
) -> None:
    with SmtpServer(starttls=host_context, utf8=True).running() as server:
        channel = open_to(server.port, authority, user=None)
        assert send(channel, recipient="ayşe@çağrı.com.tr", subject="Çağrı").outcome is SENT
        assert send(channel).outcome is SENT
        first, second = server.received
        assert first.recipient == "ayşe@xn--ar-3ia9t9c.com.tr" and "SMTPUTF8" in first.options
        assert first.message["To"] == first.recipient and first.message["Subject"] == "Çağrı"
        assert "SMTPUTF8" not in second.options


def test_international_local_part_is_refused_without_smtputf8(channel: EmailChannel, server: SmtpServer) -> None:
    assert send(channel, recipient="ayşe@ornek.org") == SendResult(PERMANENT, "INVALID_ADDRESS")
    assert "MAIL" not in server.commands
    assert send(channel).outcome is SENT
    assert server.connections == 1


# Invalid input.


@pytest.mark.parametrize(
    "bad", ["Merhaba\r\nBcc: x@y.org", "a\nb", "a\rb", "a\0b", "a\tb", "a\x85b", "a\u2028b", "a\x7fb"]
)
def test_subject_with_a_control_character_is_refused_without_a_connection(
    channel: EmailChannel, server: SmtpServer, bad: str
) -> None:
    assert send(channel, subject=bad) == SendResult(PERMANENT, "INVALID_SUBJECT")
    assert server.connections == 0


@pytest.mark.parametrize(
    "bad", ["", " ", "ayse", "ayse@ornek.org\r\nDATA", "a@b.org, c@d.org", "<a@b.org>", "a b@c.org"]
)
def test_malformed_address_is_refused_without_a_connection(channel: EmailChannel, server: SmtpServer, bad: str) -> None:
    assert send(channel, recipient=bad) == SendResult(PERMANENT, "INVALID_ADDRESS")
    assert server.connections == 0


@pytest.mark.parametrize(
    "subject",
    [
        "=?utf-8?q?=0D=0ABcc:_casus=40ornek.org?=",
        "=?utf-8?b?DQpCY2M6IGNhc3VzQG9ybmVrLm9yZw==?=",
        "Merhaba =?utf-8?q?=0D=0ABcc:_casus=40ornek.org?= ş",
    ],
)
def test_encoded_words_in_a_subject_cannot_add_headers(channel: EmailChannel, server: SmtpServer, subject: str) -> None:
    assert send(channel, subject=subject).outcome is SENT
    message = only(server).message
    assert message["Subject"] == subject
    assert "Bcc" not in message and len(message.keys()) == len(SIGNED) + 1


def test_body_cannot_end_the_mail_or_add_commands(channel: EmailChannel, server: SmtpServer) -> None:
    body = "bir\r\n.\r\nMAIL FROM:<x@y.org>\r\n.\n\n.\n..\niki\n"
    send(channel, body=body)
    assert only(server).message.get_content().replace("\r\n", "\n") == body.replace("\r\n", "\n")


# TLS and login.


def test_smtps_is_encrypted_from_the_first_byte(host_context: ssl.SSLContext, authority: Authority) -> None:
    with SmtpServer(implicit=host_context).running() as server:
        channel = open_to(server.port, authority, tls=Tls.IMPLICIT, user=None)
        assert send(channel).outcome is SENT
        assert len(server.received) == 1


def test_nothing_is_sent_to_a_server_without_starttls(authority: Authority) -> None:
    with SmtpServer().running() as server:
        channel = open_to(server.port, authority)
        assert send(channel) == SendResult(TRANSIENT, "UNREACHABLE")
        assert server.commands == ["EHLO"]


@pytest.mark.parametrize("tls", [Tls.STARTTLS, Tls.IMPLICIT])
@pytest.mark.parametrize("wrong", ["name", "authority"])
def test_nothing_is_sent_to_a_server_with_a_wrong_certificate(
    authority: Authority, tmp_path: Path, tls: Tls, wrong: str
) -> None:
    (tmp_path / "other").mkdir()
    theirs = Authority(tmp_path / "other") if wrong == "authority" else authority
    context = theirs.serve_as("mail.elsewhere.org" if wrong == "name" else HOST)
    with SmtpServer(**{"starttls" if tls is Tls.STARTTLS else "implicit": context}).running() as server:
        with structlog.testing.capture_logs() as logs:
            assert send(open_to(server.port, authority, tls=tls)) == SendResult(TRANSIENT, "UNREACHABLE")
        assert [one["event"] for one in logs] == ["smtp_without_tls"]
        assert "MAIL" not in server.commands and "AUTH" not in server.commands


def test_replies_injected_before_tls_are_ignored(host_context: ssl.SSLContext, authority: Authority) -> None:
    def inject_replies(conn: socket.socket) -> None:
        conn.sendall(b"220 hi\r\n")
        conn.recv(100)
        conn.sendall(b"250-hi\r\n250 STARTTLS\r\n")
        conn.recv(100)
        conn.sendall(b"220 go\r\n250-hi\r\n250 AUTH PLAIN\r\n")
        with host_context.wrap_socket(conn, server_side=True) as encrypted:
            encrypted.recv(100)
            encrypted.sendall(b"554 inside TLS\r\n")
            encrypted.recv(100)

    with rude_server(inject_replies) as port:
        assert send(open_to(port, authority)) == SendResult(TRANSIENT, "SMTP_554")


def test_mail_is_unencrypted_only_if_configured(authority: Authority) -> None:
    with SmtpServer().running() as server:
        channel = open_to(server.port, tls=Tls.NONE, user=None)
        assert send(channel).outcome is SENT
        assert not only(server).is_encrypted


@pytest.mark.parametrize("way", ["PLAIN", "LOGIN"])
def test_both_login_mechanisms_work(host_context: ssl.SSLContext, authority: Authority, way: str) -> None:
    with SmtpServer(starttls=host_context, accounts=ACCOUNTS, ways=frozenset({way})).running() as server:
        channel = open_to(server.port, authority)
        assert send(channel).outcome is SENT
        assert only(server).user == "yaninda"


def test_wrong_password_is_tried_once_and_not_logged(server: SmtpServer, authority: Authority) -> None:
    channel = open_to(server.port, authority, password="yanlış parola")
    with structlog.testing.capture_logs() as logs:
        result = send(channel)
    assert result == SendResult(PERMANENT, "AUTH_REJECTED")
    assert server.commands.count("AUTH") == 1
    assert [one["event"] for one in logs] == ["smtp_refuses_us"]
    assert "parola" not in str(logs) and "ayse" not in str(logs)


def test_temporary_login_failure_is_retried(channel: EmailChannel, server: SmtpServer) -> None:
    server.replies["AUTH"].append("454 4.7.0 Temporary authentication failure")
    assert send(channel) == SendResult(TRANSIENT, "SMTP_454")


def test_missing_login_is_reported_as_rejected(server: SmtpServer, authority: Authority) -> None:
    assert send(open_to(server.port, authority, user=None)) == SendResult(PERMANENT, "AUTH_REJECTED")


def test_password_is_in_no_repr(channel: EmailChannel) -> None:
    at = MailServer(HOST, 587, Tls.STARTTLS, "yaninda", "gizli")
    assert "gizli" not in repr(at) and "yaninda" not in repr(at)
    assert "gizli" not in repr(channel.__dict__)


# Replies of the server.


@pytest.mark.parametrize(
    ("command", "reply", "expected"),
    [
        ("EHLO", "421 4.3.2 Shutting down", SendResult(TRANSIENT, "SMTP_421", overloaded=True)),
        ("EHLO", "554 5.7.1 Your address is on a list", SendResult(TRANSIENT, "SMTP_554")),
        ("MAIL", "451 4.3.0 Later", SendResult(TRANSIENT, "SMTP_451")),
        ("MAIL", "421 4.7.0 Too many connections", SendResult(TRANSIENT, "SMTP_421", overloaded=True)),
        ("MAIL", "530 5.7.0 Authentication required", SendResult(PERMANENT, "AUTH_REJECTED")),
        ("MAIL", "550 5.1.8 Sender's domain not found", SendResult(PERMANENT, "SMTP_550")),
        ("MAIL", "550 5.1.1 You?", SendResult(PERMANENT, "SMTP_550")),
        ("MAIL", "552 5.3.4 Too big", SendResult(PERMANENT, "SMTP_552")),
        ("RCPT", "450 4.2.0 Greylisted", SendResult(TRANSIENT, "SMTP_450", at_fault=False)),
        ("RCPT", "451 4.7.1 Greylisted", SendResult(TRANSIENT, "SMTP_451", at_fault=False)),
        ("RCPT", "452 4.2.2 Mailbox full", SendResult(TRANSIENT, "SMTP_452", at_fault=False)),
        ("RCPT", "421 4.3.2 Shutting down", SendResult(TRANSIENT, "SMTP_421", overloaded=True)),
        ("RCPT", "550 5.1.1 <ayse@ornek.org> unknown", SendResult(GONE, "SMTP_550", at_fault=False)),
        ("RCPT", "551 5.1.6 Moved", SendResult(GONE, "SMTP_551", at_fault=False)),
        ("RCPT", "553 5.1.3 No such address", SendResult(GONE, "SMTP_553", at_fault=False)),
        ("RCPT", "556 5.1.10 Takes no mail", SendResult(GONE, "SMTP_556", at_fault=False)),
        ("RCPT", "550 5.1.8 Sender's domain not found", SendResult(PERMANENT, "SMTP_550")),
        ("RCPT", "550 5.7.1 Refused by policy", SendResult(PERMANENT, "SMTP_550")),
        ("RCPT", "550 No", SendResult(PERMANENT, "SMTP_550")),
        ("RCPT", "554 5.7.1 Relay access denied", SendResult(PERMANENT, "SMTP_554")),
        ("DATA", "451 4.3.0 Later", SendResult(TRANSIENT, "SMTP_451")),
        ("DATA", "452 4.3.1 Disk full", SendResult(TRANSIENT, "SMTP_452")),
        ("DATA", "421 4.3.2 Shutting down", SendResult(TRANSIENT, "SMTP_421", overloaded=True)),
        ("DATA", "554 5.6.0 Spam", SendResult(PERMANENT, "SMTP_554")),
        ("DATA", "550 5.1.1 No such user after all", SendResult(GONE, "SMTP_550", at_fault=False)),
        ("DATA", "999 What?", SendResult(UNKNOWN, "CONNECTION_LOST")),
    ],
)
def test_each_refusal_has_its_result(
    channel: EmailChannel, server: SmtpServer, command: str, reply: str, expected: SendResult
) -> None:
    server.replies[command].append(reply)
    with structlog.testing.capture_logs() as logs:
        assert send(channel) == expected
    assert "ayse" not in str(logs)


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
def test_connection_is_reused_after_a_refusal(channel: EmailChannel, server: SmtpServer, command: str) -> None:
    server.replies[command].append("550 5.7.1 No")
    assert send(channel).outcome is PERMANENT
    assert send(channel).outcome is SENT
    assert server.connections == 1


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("EHLO", SendResult(TRANSIENT, "UNREACHABLE")),
        ("AUTH", SendResult(TRANSIENT, "UNREACHABLE")),
        ("MAIL", SendResult(TRANSIENT, "UNREACHABLE")),
        ("RCPT", SendResult(TRANSIENT, "UNREACHABLE")),
        ("DATA", SendResult(UNKNOWN, "CONNECTION_LOST")),
    ],
)
def test_broken_connection_is_replaced_for_the_next_mail(
    channel: EmailChannel, server: SmtpServer, command: str, expected: SendResult
) -> None:
    server.replies[command].append(Reset())
    assert send(channel) == expected
    assert send(channel).outcome is SENT


def test_silence_ends_at_the_time_limit(host_context: ssl.SSLContext, authority: Authority) -> None:
    """All commands at the same time, because each case lasts as long as the time limit."""

    def send_twice(command: str) -> tuple[SendResult, float, Outcome]:
        with SmtpServer(starttls=host_context, accounts=ACCOUNTS).running() as server:
            channel = open_to(server.port, authority)
            server.replies[command].append(Hang())
            began = time.monotonic()
            first = send(channel)
            return first, time.monotonic() - began, send(channel).outcome

    expected = {
        "EHLO": SendResult(TRANSIENT, "SMTP_TIMEOUT"),
        "AUTH": SendResult(TRANSIENT, "SMTP_TIMEOUT"),
        "MAIL": SendResult(TRANSIENT, "SMTP_TIMEOUT"),
        "RCPT": SendResult(TRANSIENT, "SMTP_TIMEOUT"),
        "DATA": SendResult(UNKNOWN, "SMTP_TIMEOUT"),
    }
    with ThreadPoolExecutor(len(expected)) as pool:
        answered = dict(zip(expected, pool.map(send_twice, expected), strict=True))
    assert {command: first for command, (first, _, _) in answered.items()} == expected
    assert {command: took_s for command, (_, took_s, _) in answered.items() if took_s > QUICK.timeout_s + 0.5} == {}
    assert {command: second for command, (_, _, second) in answered.items() if second is not SENT} == {}


# Servers that break the protocol.


def stay_silent(conn: socket.socket) -> None:
    conn.recv(1)


def trickle(conn: socket.socket) -> None:
    while True:
        conn.sendall(b"2")
        time.sleep(0.05)


def answer_in_http(conn: socket.socket) -> None:
    conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    conn.recv(1)


def send_one_endless_line(conn: socket.socket) -> None:
    conn.sendall(b"220-" + b"x" * 100_000)
    conn.recv(1)


def refuse_connection(conn: socket.socket) -> None:
    conn.sendall(b"554 No SMTP service here\r\n")
    conn.recv(1)


def reset_at_once(conn: socket.socket) -> None:
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def break_the_handshake(conn: socket.socket) -> None:
    conn.sendall(b"220 hi\r\n")
    conn.recv(100)
    conn.sendall(b"250-hi\r\n250 STARTTLS\r\n")
    conn.recv(100)
    conn.sendall(b"220 go\r\n")
    conn.recv(10_000)
    conn.sendall(b"no TLS at all\r\n")


def never_start_tls(conn: socket.socket) -> None:
    conn.sendall(b"220 hi\r\n")
    conn.recv(100)
    conn.sendall(b"250-hi\r\n250 STARTTLS\r\n")
    conn.recv(100)
    conn.sendall(b"220 go\r\n")
    time.sleep(5)


def never_start_tls_after_a_pause(conn: socket.socket) -> None:
    conn.sendall(b"220 hi\r\n")
    conn.recv(100)
    conn.sendall(b"250-hi\r\n250 STARTTLS\r\n")
    conn.recv(100)
    time.sleep(1)
    conn.sendall(b"220 go\r\n")
    time.sleep(5)


def greet_without_end(conn: socket.socket) -> None:
    while True:
        conn.sendall(b"220-hi\r\n" * 10)
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (answer_in_http, SendResult(TRANSIENT, "UNREACHABLE")),
        (send_one_endless_line, SendResult(TRANSIENT, "UNREACHABLE")),
        (refuse_connection, SendResult(TRANSIENT, "SMTP_554")),
        (reset_at_once, SendResult(TRANSIENT, "UNREACHABLE")),
        (break_the_handshake, SendResult(TRANSIENT, "UNREACHABLE")),
    ],
)
def test_server_that_breaks_the_protocol_fails_at_once(
    behave: Callable[[socket.socket], None], expected: SendResult, authority: Authority
) -> None:
    result, took_s = send_to_rude_server(behave, authority)
    assert result == expected
    assert took_s < QUICK.timeout_s


def test_server_that_breaks_the_protocol_slowly_fails_at_the_time_limit(authority: Authority) -> None:
    """All of them at the same time, because each case lasts as long as the time limit."""
    behaviours = [stay_silent, trickle, never_start_tls, never_start_tls_after_a_pause, greet_without_end]
    with ThreadPoolExecutor(len(behaviours)) as pool:
        answered = list(pool.map(lambda behave: send_to_rude_server(behave, authority), behaviours))
    assert {behave.__name__: result for behave, (result, _) in zip(behaviours, answered, strict=True)} == dict.fromkeys(
        (behave.__name__ for behave in behaviours), SendResult(TRANSIENT, "SMTP_TIMEOUT")
    )
    assert max(took_s for _, took_s in answered) < QUICK.timeout_s + 0.5


def send_to_rude_server(behave: Callable[[socket.socket], None], authority: Authority) -> tuple[SendResult, float]:
    """The result, and the seconds that it took."""
    with rude_server(behave) as port:
        channel = open_to(port, authority)
        began = time.monotonic()
        return send(channel), time.monotonic() - began


def up_to_the_dot(conn: socket.socket, then: Callable[[socket.socket, bytes], None]) -> None:
    lines = conn.makefile("rb")
    conn.sendall(b"220 hi\r\n")
    for answer in (b"250 hi\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"):
        lines.readline()
        conn.sendall(answer)
    then(conn, lines.readline())


# Several times as much as the buffers on the way can hold.
LONG_BODY = "uzun metin\n" * 100_000


def test_connection_that_breaks_within_the_text_is_retried() -> None:
    with rude_server(lambda conn: up_to_the_dot(conn, lambda conn, _: reset_at_once(conn)), small_buffers=True) as port:
        channel = open_to(port, tls=Tls.NONE, user=None)
        assert send(channel, body=LONG_BODY) == SendResult(TRANSIENT, "UNREACHABLE")


def test_server_that_stops_reading_within_the_text_is_retried() -> None:
    with rude_server(lambda conn: up_to_the_dot(conn, lambda conn, _: time.sleep(5)), small_buffers=True) as port:
        channel = open_to(port, tls=Tls.NONE, user=None)
        assert send(channel, body=LONG_BODY) == SendResult(TRANSIENT, "SMTP_TIMEOUT")


def test_server_that_reads_slowly_does_not_extend_the_time_limit(
    host_context: ssl.SSLContext, authority: Authority
) -> None:
    """Inside TLS, where the timeout of a socket starts anew with each record."""

    def read_slowly(conn: socket.socket, _: bytes) -> None:
        while conn.recv(200_000):
            time.sleep(0.05)

    def behave(conn: socket.socket) -> None:
        with host_context.wrap_socket(conn, server_side=True) as encrypted:
            up_to_the_dot(encrypted, read_slowly)

    with rude_server(behave, small_buffers=True) as port:
        mail = compose(mail_for(body=LONG_BODY).notification, SENDER, "ayse@ornek.org")
        at = MailServer(HOST, port, Tls.IMPLICIT)
        connection = Connection(at, authority.trusted(), TimedBackend(), time.monotonic() + 10)
        began = time.monotonic()
        with pytest.raises(ConversationFailed) as failed:
            connection.deliver(mail, began + 0.5, began + 0.5)
        assert (failed.value.stage, failed.value.is_late) == (Stage.DATA, True)
        # At the speed of the server, one record of 16 KB in 50 ms, it would take 3.5 s.
        assert time.monotonic() - began < 2
        connection.leave()


def test_port_without_a_server_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert send(open_to(port)) == SendResult(TRANSIENT, "UNREACHABLE")


def test_unknown_host_name_is_unreachable() -> None:
    at = MailServer("mail.invalid", 587, Tls.STARTTLS)
    assert send(EmailChannel(at, SENDER, policy=QUICK)) == SendResult(TRANSIENT, "UNREACHABLE")


# Reuse of connections.


def test_mails_share_one_connection(channel: EmailChannel, server: SmtpServer) -> None:
    assert [send(channel).outcome for _ in range(5)] == [SENT] * 5
    assert (server.connections, len(server.received)) == (1, 5)


def test_connection_closed_by_the_server_is_replaced_within_the_attempt(
    channel: EmailChannel, server: SmtpServer
) -> None:
    send(channel)
    server.hang_up()
    assert send(channel).outcome is SENT
    assert (server.connections, len(server.received)) == (2, 2)


@pytest.mark.parametrize("mishap", ["421 4.4.2 Timeout", Hang(), Reset()], ids=["goodbye", "hang", "reset"])
def test_stale_connection_is_replaced_within_the_attempt(
    channel: EmailChannel, server: SmtpServer, mishap: str | Hang | Reset
) -> None:
    server.replies["MAIL"].extend([None, mishap])
    assert [send(channel).outcome, send(channel).outcome] == [SENT, SENT]
    assert (server.connections, len(server.received)) == (2, 2)


def test_mail_that_may_have_been_accepted_is_not_sent_again(channel: EmailChannel, server: SmtpServer) -> None:
    server.replies["DATA"].extend([None, Reset()])
    assert [send(channel).outcome, send(channel).outcome] == [SENT, UNKNOWN]
    assert (server.connections, len(server.received)) == (1, 2)


def test_connection_that_was_idle_too_long_is_not_reused(server: SmtpServer, authority: Authority) -> None:
    channel = open_to(server.port, authority, longest_idle_s=0.0)
    assert [send(channel).outcome, send(channel).outcome] == [SENT, SENT]
    assert server.connections == 2


def test_each_thread_has_its_own_connection(channel: EmailChannel, server: SmtpServer) -> None:
    together = threading.Barrier(4)

    def send_some(_: int) -> list[Outcome]:
        together.wait(5)
        return [send(channel).outcome for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        outcomes = [outcome for some in pool.map(send_some, range(4)) for outcome in some]
    assert outcomes == [SENT] * 20
    assert len({one.message["Message-ID"] for one in server.received}) == 20
    assert server.connections <= 4


def test_closed_channel_keeps_no_connection(channel: EmailChannel, server: SmtpServer) -> None:
    send(channel)
    channel.close()
    assert not channel.__dict__["_idle"]
    send(channel)
    assert not channel.__dict__["_idle"]


# Settings.


def test_channel_opens_with_its_settings(server: SmtpServer, authority: Authority) -> None:
    url = f"smtp://yaninda:%C3%A7ok%20gizli%20parola@{HOST}:{server.port}"
    environ = GOOD | {"SMTP_URL": url, "SMTP_FROM": "Yanında <bildirim@ornek.org>", "SMTP_CA_FILE": str(authority.file)}
    settings = load_settings(environ)
    assert "EMAIL" not in settings.recorded_types
    nothing: Any = None
    channel = open_channel(Wiring(settings, nothing, nothing, nothing))
    assert channel is not None and channel.can_handle("EMAIL") and not channel.can_handle("SMS")
    assert (channel.policy.timeout_s, channel.policy.retries, channel.needs_device) == (10, 3, False)
    assert send(channel).outcome is SENT
    channel.close()


def test_without_settings_there_is_no_channel() -> None:
    nothing: Any = None
    assert open_channel(Wiring(load_settings(GOOD), nothing, nothing, nothing)) is None
