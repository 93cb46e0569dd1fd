"""Mail servers for tests: an SMTP server with scripted replies, and a socket with arbitrary behaviour."""

import asyncio
import socket
import ssl
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass(frozen=True)
class Received:
    sender: str
    recipient: str
    options: tuple[str, ...]
    content: bytes
    is_encrypted: bool
    user: str | None

    @property
    def message(self) -> EmailMessage:
        parsed = message_from_bytes(self.content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        return parsed


class Hang:
    """Does not reply until the server closes."""


class Reset:
    """Resets the connection."""


Scripted = str | Hang | Reset | None
"""None stands for the server's own reply."""


class SmtpServer:
    """`replies["RCPT"]` holds the next replies to RCPT; also for EHLO, MAIL, DATA (after the dot), AUTH and RSET."""

    def __init__(
        self,
        *,
        starttls: ssl.SSLContext | None = None,
        implicit: ssl.SSLContext | None = None,
        accounts: dict[str, str] | None = None,
        ways: frozenset[str] = frozenset({"PLAIN", "LOGIN"}),
        utf8: bool = False,
    ) -> None:
        self.received: list[Received] = []
        self.replies: dict[str, deque[Scripted]] = defaultdict(deque)
        self.connections = 0
        self.commands: list[str] = []
        self._implicit = implicit
        self._accounts = accounts
        self._options: dict[str, Any] = {
            "tls_context": starttls,
            "require_starttls": starttls is not None,
            "enable_SMTPUTF8": utf8,
            "auth_required": accounts is not None,
            "auth_require_tls": starttls is not None,
            "auth_exclude_mechanism": {"PLAIN", "LOGIN"} - ways,
            "authenticator": self._authenticate,
            "hostname": "mail.test",
        }
        self._open: list[Any] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    @contextmanager
    def running(self) -> Iterator["SmtpServer"]:
        self._thread.start()
        listening = self._loop.create_server(self._protocol, "127.0.0.1", 0, ssl=self._implicit)
        server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(5)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(server.close)
            asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result(5)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)
            self._loop.close()

    def hang_up(self) -> None:
        """Closes every connection, as servers do with idle ones."""
        asyncio.run_coroutine_threadsafe(self._close_connections(), self._loop).result(5)

    async def _close_connections(self) -> None:
        for protocol in self._open:
            if protocol.transport is not None:
                protocol.transport.close()

    async def _cancel(self) -> None:
        for protocol in self._open:
            # Before Python 3.11.4, to abort what is closed is an error under TLS.
            if protocol.transport is not None and not protocol.transport.is_closing():
                protocol.transport.abort()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Aborted transports close in the next rounds of the loop.
        for _ in range(3):
            await asyncio.sleep(0)

    def _protocol(self) -> SMTP:
        self.connections += 1
        protocol = _Protocol(self, self._options)
        self._open.append(protocol)
        return protocol

    def _authenticate(
        self, server: Any, session: Session, envelope: Envelope, mechanism: str, login: Any
    ) -> AuthResult:
        assert isinstance(login, LoginPassword)
        user, password = login.login.decode(), login.password.decode()
        good = (self._accounts or {}).get(user) == password
        return AuthResult(success=good, handled=False, auth_data=user if good else None)


class _Protocol(SMTP):
    def __init__(self, owner: SmtpServer, options: dict[str, Any]) -> None:
        super().__init__(_Handler(owner), **options)
        self._owner = owner

    async def smtp_AUTH(self, arg: str) -> None:
        scripted = await self.scripted("AUTH")
        if scripted is None:
            await super().smtp_AUTH(arg)
        else:
            await self.push(scripted)

    async def smtp_EHLO(self, hostname: str) -> None:
        scripted = await self.scripted("EHLO")
        if scripted is None:
            await super().smtp_EHLO(hostname)
        else:
            await self.push(scripted)

    async def scripted(self, command: str) -> str | None:
        self._owner.commands.append(command)
        waiting = self._owner.replies[command]
        reply = waiting.popleft() if waiting else None
        if isinstance(reply, Hang):
            await asyncio.sleep(3600)
        if isinstance(reply, Reset):
            assert self.transport is not None
            self.transport.abort()
            await asyncio.sleep(3600)
        return reply if isinstance(reply, str) else None


class _Handler:
    def __init__(self, owner: SmtpServer) -> None:
        self._owner = owner

    async def handle_MAIL(
        self, server: _Protocol, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        reply = await server.scripted("MAIL")
        if reply is None:
            envelope.mail_from, envelope.mail_options = address, options
        return reply or "250 2.1.0 Ok"

    async def handle_RCPT(
        self, server: _Protocol, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        reply = await server.scripted("RCPT")
        if reply is None or reply.startswith("2"):
            envelope.rcpt_tos.append(address)
        return reply or "250 2.1.5 Ok"

    async def handle_RSET(self, server: _Protocol, session: Session, envelope: Envelope) -> str:
        return await server.scripted("RSET") or "250 2.0.0 Ok"

    async def handle_DATA(self, server: _Protocol, session: Session, envelope: Envelope) -> str:
        assert envelope.mail_from is not None and isinstance(envelope.content, bytes)
        [recipient] = envelope.rcpt_tos
        self._owner.received.append(
            Received(
                envelope.mail_from,
                recipient,
                tuple(envelope.mail_options),
                envelope.content,
                session.ssl is not None,
                session.auth_data,
            )
        )
        return await server.scripted("DATA") or f"250 2.0.0 Ok: queued as 4Wq{len(self._owner.received)}xKz9"


@contextmanager
def rude_server(behave: Callable[[socket.socket], None], *, small_buffers: bool = False) -> Iterator[int]:
    """Listens, and calls `behave` with each connection in a new thread. Yields the port.

    With `small_buffers`, the two kernels' buffers hold about 64 KB together instead of 3 MB, so that a client that
    sends more has to wait for the server to read.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    if small_buffers:
        # Accepted sockets inherit both. The client's buffer grows with the size of a segment.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
    accepted: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                conn, _ = listener.accept()
                accepted.append(conn)
                threading.Thread(target=_ignore_errors, args=(behave, conn), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for conn in accepted:
            with suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)
            conn.close()
        thread.join(5)


def _ignore_errors(behave: Callable[[socket.socket], None], conn: socket.socket) -> None:
    with suppress(OSError):
        behave(conn)
