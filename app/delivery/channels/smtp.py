"""A connection to a mail server that records at every moment whether the server may already have taken the message."""

import io
import re
import smtplib
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import httpcore

from app.delivery.channels.connections import TimedBackend
from app.delivery.channels.email_message import Mail
from app.settings.mail_server import MailServer, Tls

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

# The size of one TLS record, because a TLS socket renews its timeout for each record.
_PIECE_BYTES = 16 * 1024
_QUIT_S = 1.0
_SHORTEST_LIMIT_S = 0.001
_ENHANCED = re.compile(rb"\s*([245]\.\d{1,3}\.\d{1,3})\b")
# The queue id in the replies of Postfix, Exim and Amazon's servers.
_QUEUE_ID = re.compile(rb"(?:queued as |\bid=|^ok )<?([A-Za-z0-9][A-Za-z0-9._-]{5,99})", re.IGNORECASE)


class Stage(IntEnum):
    """The stages of a conversation, in their order."""

    CONNECT = 1
    TLS = 2
    GREETING = 3
    AUTH = 4
    MAIL = 5
    RCPT = 6
    DATA = 7
    HANDED_OVER = 8
    """The final dot is being sent: from here on, the server may take the message."""


@dataclass(frozen=True)
class SmtpReply:
    """A reply of the server without its text, because the text may contain addresses."""

    code: int
    status: str | None = None
    """The enhanced status code, such as 5.1.1."""
    queue_id: str | None = None


class ConversationFailed(Exception):
    """The server refused, or the connection failed."""

    def __init__(self, stage: Stage, reply: SmtpReply | None = None, *, is_late: bool = False) -> None:
        super().__init__(stage.name)
        self.stage = stage
        self.reply = reply
        """None if the server sent no reply."""
        self.is_late = is_late


class Connection(smtplib.SMTP):
    """smtplib with one time limit for a whole conversation. smtplib's own timeout starts anew with every byte.

    The constructor opens the connection. It can send any number of mails, one after the other, until it fails.
    """

    def __init__(self, server: MailServer, context: ssl.SSLContext, network: TimedBackend, until: float) -> None:
        self._server = server
        self._context = context
        self._network = network
        self._until = until
        self._stage = Stage.CONNECT
        self.mails = 0
        self.used_at = time.monotonic()
        try:
            with self._conversation(until):
                self._open()
        except ConversationFailed:
            self.leave()
            raise

    @property
    def takes_utf8(self) -> bool:
        return self.has_extn("smtputf8")

    def deliver(self, mail: Mail, until: float, first_answer_until: float) -> SmtpReply:
        """`first_answer_until` limits the wait for the first reply, because a kept connection may be broken."""
        self.mails += 1
        with self._conversation(min(until, first_answer_until)):
            self._stage = Stage.MAIL
            self._expect(self.docmd("MAIL", f"FROM:<{mail.sender}>{self._options(mail)}"), 250)
            self._until = until
            self._stage = Stage.RCPT
            self._expect(self.docmd("RCPT", f"TO:<{mail.recipient}>"), 250, 251, 252)
            self._stage = Stage.DATA
            # smtplib's `data` sends the final dot with the text, so a failure would not show whether the dot was sent.
            self._expect(self.docmd("DATA"), 354)
            self.send(_stuff_dots(mail.content))
            self._stage = Stage.HANDED_OVER
            self.send(b".\r\n")
            reply = self._expect(self.getreply(), *range(200, 300))
            self.used_at = time.monotonic()
            return reply

    def start_over(self, until: float) -> None:
        """Resets the conversation after a refusal, so that the next mail can be sent."""
        with self._conversation(until):
            self._expect(self.docmd("RSET"), 250)
            self.used_at = time.monotonic()

    def leave(self) -> None:
        """Sends QUIT and closes the connection, without waiting for the reply."""
        self._until = time.monotonic() + _QUIT_S
        with suppress(OSError):
            self.putcmd("QUIT")
        self.close()

    def connect(self, host: str = "localhost", port: int = 0, source_address: object = None) -> tuple[int, bytes]:
        """Replaces smtplib's method, in which the first address could use up all the time."""
        sock: socket.socket = self._network.connect_tcp(host, port, self._until).get_extra_info("socket")
        self.sock = sock
        if self._server.tls is Tls.IMPLICIT:
            self._stage = Stage.TLS
            self._limit()
            self.sock = self._context.wrap_socket(sock, server_hostname=host)
        self._stage = Stage.GREETING
        return self.getreply()

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = io.BufferedReader(_Incoming(self.sock, self._limit))
        reply = super().getreply()
        # This limits the handshake after STARTTLS. The limit is never zero, because a reply counts even if it came at
        # the last moment.
        self._limit(_SHORTEST_LIMIT_S)
        return reply

    def send(self, s: "ReadableBuffer | str") -> None:
        # The text is ASCII, except for addresses, and those only if the server offers SMTPUTF8.
        rest = memoryview(s.encode() if isinstance(s, str) else s)
        for start in range(0, len(rest), _PIECE_BYTES):
            self._limit()
            super().send(rest[start : start + _PIECE_BYTES])

    def _limit(self, least_s: float = 0.0) -> None:
        """Makes the next operation of the socket end at the time limit."""
        left_s = max(self._until - time.monotonic(), least_s)
        if left_s <= 0:
            raise TimeoutError
        if self.sock is not None:
            self.sock.settimeout(left_s)

    @contextmanager
    def _conversation(self, until: float) -> Generator[None]:
        """Converts errors to `ConversationFailed` with the current stage. smtplib's own errors are `OSError`s too; they
        do not show timeouts, and they quote the server."""
        self._until = until
        try:
            yield
        except smtplib.SMTPResponseException as error:
            raise ConversationFailed(self._stage, _reply(error.smtp_code, error.smtp_error)) from None
        except (OSError, httpcore.NetworkError, httpcore.TimeoutException):
            raise ConversationFailed(self._stage, is_late=time.monotonic() >= self._until) from None

    def _open(self) -> None:
        # Without `local_hostname`, smtplib would look up the name of this machine, without a time limit.
        super().__init__(self._server.host, self._server.port, local_hostname="localhost")
        self._greet()
        if self._server.tls is Tls.STARTTLS:
            self._stage = Stage.TLS
            self.starttls(context=self._context)
            self._stage = Stage.GREETING
            self._greet()
        if self._server.user is not None:
            self._stage = Stage.AUTH
            self._authenticate(self._server.user, self._server.password)

    def _greet(self) -> None:
        assert self.sock is not None
        self._expect(self.ehlo(_address_literal(self.sock)), 250)

    def _authenticate(self, user: str, password: str) -> None:
        """Sends the password once. smtplib's `login` tries each mechanism that it knows, and three wrong passwords lock
        an account; its `auth` accepts only ASCII."""
        mechanisms = self.esmtp_features.get("auth", "").upper().split()
        if "PLAIN" in mechanisms or not mechanisms:
            self._expect(self.docmd("AUTH PLAIN", _base64(f"\0{user}\0{password}")), 235)
        else:
            self._expect(self.docmd("AUTH LOGIN"), 334)
            self._expect(self.docmd(_base64(user)), 334)
            self._expect(self.docmd(_base64(password)), 235)

    def _options(self, mail: Mail) -> str:
        utf8 = " SMTPUTF8 BODY=8BITMIME" if mail.needs_smtputf8 else ""
        size = f" SIZE={len(mail.content)}" if self.has_extn("size") else ""
        return utf8 + size

    def _expect(self, answer: tuple[int, bytes], *codes: int) -> SmtpReply:
        code, words = answer
        reply = _reply(code, words)
        if reply is None or code not in codes:
            raise smtplib.SMTPResponseException(code, words)
        return reply


class _Incoming(io.RawIOBase):
    """Reads the server's replies within the time limit."""

    def __init__(self, sock: socket.socket, limit: Callable[[], None]) -> None:
        self._sock = sock
        self._limit = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._limit()
        return self._sock.recv_into(buffer)


def _reply(code: int, words: bytes | str) -> SmtpReply | None:
    """None if this is not a reply of a server. `words` of type str are smtplib's own, about a line that is too long."""
    if isinstance(words, str) or not 200 <= code <= 599:
        return None
    status, queue_id = _ENHANCED.match(words), _QUEUE_ID.search(words)
    return SmtpReply(code, status[1].decode() if status else None, queue_id[1].decode() if queue_id else None)


def _address_literal(sock: socket.socket) -> str:
    host = str(sock.getsockname()[0])
    return f"[IPv6:{host}]" if ":" in host else f"[{host}]"


def _stuff_dots(content: bytes) -> bytes:
    return re.sub(rb"(?m)^\.", b"..", content)


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
