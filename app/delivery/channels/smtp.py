"""One conversation with a mail server, which knows at every moment whether the server may already have the message."""

import io
import re
import smtplib
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from app.delivery.channels.email_message import Mail
from app.settings.mail_server import MailServer, Tls

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_PIECE_BYTES = 64 * 1024
_FAREWELL_S = 1.0
_ENHANCED = re.compile(rb"\s*([245]\.\d{1,3}\.\d{1,3})\b")
# The ways in which Postfix, Exim and Amazon's servers name the message that they took.
_QUEUE_ID = re.compile(rb"(?:queued as |\bid=|^ok )<?([A-Za-z0-9][A-Za-z0-9._-]{5,99})", re.IGNORECASE)


class Stage(IntEnum):
    """How far the conversation has come, in this order."""

    CONNECT = 1
    TLS = 2
    GREETING = 3
    AUTH = 4
    MAIL = 5
    RCPT = 6
    DATA = 7
    HANDED_OVER = 8
    """The final dot is on its way: the message may be taken from here on."""


@dataclass(frozen=True)
class SmtpReply:
    """What the server said, without its words, which repeat addresses."""

    code: int
    status: str | None = None
    """The enhanced status code, such as 5.1.1."""
    queue_id: str | None = None


class ConversationFailed(Exception):
    """The conversation ended early."""

    def __init__(self, stage: Stage, reply: SmtpReply | None = None, *, is_late: bool = False) -> None:
        super().__init__(stage.name)
        self.stage = stage
        self.reply = reply
        """None where the server did not get to say anything."""
        self.is_late = is_late


class _OutOfTime(Exception):
    """No `OSError`, or smtplib would take it for a broken connection."""


class _Dialogue(smtplib.SMTP):
    """smtplib with one deadline for everything, where its own timeouts start anew with every byte."""

    def __init__(self) -> None:
        super().__init__(local_hostname="[127.0.0.1]")
        # ASCII where there is nothing else; more is only ever said to a server that offers SMTPUTF8.
        self.command_encoding = "utf-8"
        self.until = 0.0

    def left_s(self) -> float:
        left_s = self.until - time.monotonic()
        if left_s <= 0:
            raise _OutOfTime
        return left_s

    def connected_socket(self) -> socket.socket:
        if self.sock is None:
            raise smtplib.SMTPServerDisconnected
        self.sock.settimeout(self.left_s())
        return self.sock

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None:
            self.file = io.BufferedReader(_Incoming(self))
        return super().getreply()

    def send(self, s: "ReadableBuffer | str") -> None:
        rest = memoryview(s.encode(self.command_encoding) if isinstance(s, str) else s)
        while rest:
            try:
                rest = rest[self.connected_socket().send(rest[:_PIECE_BYTES]) :]
            except TimeoutError:
                raise _OutOfTime from None


class _Incoming(io.RawIOBase):
    def __init__(self, dialogue: _Dialogue) -> None:
        self._dialogue = dialogue

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        try:
            return self._dialogue.connected_socket().recv_into(buffer)
        except TimeoutError:
            raise _OutOfTime from None


class Connection:
    """Opened by `open`, then good for one letter after the other until it fails."""

    def __init__(self, server: MailServer, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._smtp = _Dialogue()
        self._stage = Stage.CONNECT
        self.letters = 0
        self.used_at = time.monotonic()

    @property
    def takes_utf8(self) -> bool:
        return self._smtp.has_extn("smtputf8")

    def open(self, until: float) -> None:
        with self._conversation(until):
            self._smtp.sock = _connect(self._server, self._smtp)
            self._smtp.local_hostname = _address_literal(self._smtp.sock)
            if self._server.tls is Tls.IMPLICIT:
                self._encrypt()
            self._stage = Stage.GREETING
            self._expect(self._smtp.getreply(), 220)
            self._greet()
            if self._server.tls is Tls.STARTTLS:
                self._start_tls()
            if self._server.user is not None:
                self._stage = Stage.AUTH
                self._authenticate(self._server.user, self._server.password)

    def send(self, letter: Mail, until: float, first_answer_until: float) -> SmtpReply:
        """`first_answer_until` is when a server that may long be gone is no longer waited for."""
        self.letters += 1
        with self._conversation(min(until, first_answer_until)):
            self._stage = Stage.MAIL
            self._expect(self._smtp.docmd("MAIL", f"FROM:<{letter.sender}>{self._options(letter)}"), 250)
            self._smtp.until = until
            self._stage = Stage.RCPT
            self._expect(self._smtp.docmd("RCPT", f"TO:<{letter.recipient}>"), 250, 251, 252)
            self._stage = Stage.DATA
            self._expect(self._smtp.docmd("DATA"), 354)
            self._smtp.send(_stuff_dots(letter.content))
            self._stage = Stage.HANDED_OVER
            self._smtp.send(b".\r\n")
            reply = self._expect(self._smtp.getreply(), *range(200, 300))
            self.used_at = time.monotonic()
            return reply

    def _options(self, letter: Mail) -> str:
        utf8 = " SMTPUTF8 BODY=8BITMIME" if letter.needs_smtputf8 else ""
        size = f" SIZE={len(letter.content)}" if self._smtp.has_extn("size") else ""
        return utf8 + size

    def start_over(self, until: float) -> None:
        """After a refusal, so that the next letter does not meet the rest of this one."""
        with self._conversation(until):
            self._expect(self._smtp.docmd("RSET"), 250)
            self.used_at = time.monotonic()

    def close(self) -> None:
        """Says goodbye without waiting for an answer."""
        self._smtp.until = time.monotonic() + _FAREWELL_S
        with suppress(OSError, _OutOfTime):
            self._smtp.putcmd("QUIT")
        self._smtp.close()

    @contextmanager
    def _conversation(self, until: float) -> Generator[None]:
        """What is raised in it becomes a failure at the stage reached. smtplib's errors are `OSError`s, too, and quote
        the server."""
        self._smtp.until = until
        try:
            yield
        except (_OutOfTime, TimeoutError):
            raise ConversationFailed(self._stage, is_late=True) from None
        except OSError:
            raise ConversationFailed(self._stage) from None

    def _expect(self, answer: tuple[int, bytes], *codes: int) -> SmtpReply:
        code, words = answer
        if not 200 <= code <= 599:
            raise ConversationFailed(self._stage)
        status, queue_id = _ENHANCED.match(words), _QUEUE_ID.search(words)
        reply = SmtpReply(code, status[1].decode() if status else None, queue_id[1].decode() if queue_id else None)
        if code not in codes:
            raise ConversationFailed(self._stage, reply)
        return reply

    def _greet(self) -> None:
        self._expect(self._smtp.ehlo(), 250)

    def _start_tls(self) -> None:
        self._stage = Stage.TLS
        if not self._smtp.has_extn("starttls"):
            raise ConversationFailed(self._stage)
        self._expect(self._smtp.docmd("STARTTLS"), 220)
        self._encrypt()
        self._greet()

    def _encrypt(self) -> None:
        """What was said before is forgotten: somebody on the way may have said it."""
        self._stage = Stage.TLS
        plain = self._smtp.connected_socket()
        self._smtp.sock = self._context.wrap_socket(plain, server_hostname=self._server.host)
        self._smtp.file = None
        self._stage = Stage.GREETING

    def _authenticate(self, user: str, password: str) -> None:
        """Once: smtplib tries each way that it knows, and three times the wrong password locks accounts."""
        ways = self._smtp.esmtp_features.get("auth", "").upper().split()
        if "PLAIN" in ways or not ways:
            self._expect(self._smtp.docmd("AUTH PLAIN", _base64(f"\0{user}\0{password}")), 235)
        else:
            self._expect(self._smtp.docmd("AUTH LOGIN"), 334)
            self._expect(self._smtp.docmd(_base64(user)), 334)
            self._expect(self._smtp.docmd(_base64(password)), 235)


def _connect(server: MailServer, dialogue: _Dialogue) -> socket.socket:
    """To the first of its addresses that answers; each gets its share of the time, since the first may be silent."""
    found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    error: OSError = OSError("no address")
    for index, (family, type_, protocol, _, address) in enumerate(found):
        sock = socket.socket(family, type_, protocol)
        try:
            sock.settimeout(dialogue.left_s() / (len(found) - index))
            sock.connect(address)
            # Or the final dot would wait until the rest of the message has been acknowledged.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as failed:
            sock.close()
            error = failed
    raise error


def _address_literal(sock: socket.socket) -> str:
    """Who we are: the name of this machine would have to be asked of a name server, which may not answer."""
    host = str(sock.getsockname()[0])
    return f"[IPv6:{host}]" if ":" in host else f"[{host}]"


def _stuff_dots(content: bytes) -> bytes:
    return re.sub(rb"(?m)^\.", b"..", content)


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
