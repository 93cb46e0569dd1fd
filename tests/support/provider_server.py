"""A real HTTP(S) server that records requests and gives scripted answers.

Stand-ins for a provider are subclasses that check requests as the real server does.
"""

import json
import os
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from tempfile import NamedTemporaryFile
from typing import Any, Self
from urllib.parse import parse_qs

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Message = field(repr=False)
    """Names are not case-sensitive."""
    body: bytes = field(repr=False)

    def json(self) -> Any:
        return json.loads(self.body)

    def form(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(self.body.decode(), keep_blank_values=True).items()}


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any = None
    """Text and bytes are sent unchanged, all else as JSON."""
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class Hang:
    """Reads the request and does not answer until the server closes."""


class Reset:
    """Reads the whole request, then resets the connection, so the client cannot know whether it was handled."""


class ResetAtOnce:
    """Resets the connection before it reads the body. The request is not recorded."""


@dataclass(frozen=True)
class Trickle:
    """Sends one byte at a time without end, so that a timeout between bytes never expires."""

    pause_s: float = 0.1
    status: int = 200
    in_headers: bool = False
    """If false, the bytes are in the body."""


@dataclass(frozen=True)
class TrickledHeaders:
    """Sends a status at once, then a header byte by byte without end."""

    pause_s: float = 0.1


@dataclass(frozen=True)
class Slow:
    """An answer after a delay."""

    seconds: float
    answer: Answer


Scripted = Answer | Hang | Reset | ResetAtOnce | Trickle | TrickledHeaders | Slow


def retry_afters(now: datetime) -> dict[str, Any]:
    """Headers that providers send with a 429, and the seconds that they mean; None if they give no usable value.

    Use as `pytest.mark.parametrize(("headers", "expected"), **retry_afters(now))`.
    """

    def date(seconds: float) -> str:
        return format_datetime((now + timedelta(seconds=seconds)).astimezone(UTC), usegmt=True)

    cases: dict[str, tuple[dict[str, str], float | None]] = {
        "seconds": ({"Retry-After": "17"}, 17.0),
        "date": ({"Retry-After": date(90)}, 90.0),
        "past date": ({"Retry-After": date(-90)}, 0.0),
        "zero": ({"Retry-After": "0"}, 0.0),
        "absent": ({}, None),
        "empty": ({"Retry-After": ""}, None),
        "garbage": ({"Retry-After": "soon, I promise"}, None),
        "other digits": ({"Retry-After": "\u00b2"}, None),
        "huge": ({"Retry-After": "9" * 400}, 999_999_999.0),
        "negative": ({"Retry-After": "-5"}, None),
    }
    return {"argvalues": list(cases.values()), "ids": list(cases)}


class ProviderServer:
    """Without a script it answers `default`. A subclass overrides `judge` to check the request."""

    def __init__(self, default: Scripted | None = None, *, tls: bool = False) -> None:
        self.requests: list[Request] = []
        self.answers: deque[Scripted] = deque()
        """The next answers, each used once."""
        self.most_at_once = 0
        """The most requests in progress at the same time."""
        self.connections = 0
        self.closing = threading.Event()
        self.certificate: bytes | None = None
        """In PEM. Self-signed, so a client trusts it only if configured."""
        self._default = default or Answer(200, {})
        self._under_way = 0
        self._lock = threading.Lock()
        self._http = _Listener(("127.0.0.1", 0), _handler(self))
        if tls:
            self._http.socket = self._with_tls(self._http.socket)
        self.port: int = self._http.server_address[1]
        self.base_url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def judge(self, request: Request) -> Scripted:
        """The answer to a request without a scripted one."""
        return self._default

    def answer(self, request: Request) -> Scripted:
        """Called under a lock, so that scripted answers are used in order."""
        return self.answers.popleft() if self.answers else self.judge(request)

    def start(self) -> None:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.closing.set()
        # Wakes the thread at once. Otherwise `shutdown` would wait for the next poll.
        self._http.socket.shutdown(socket.SHUT_RDWR)
        self._http.shutdown()
        self._http.server_close()

    @contextmanager
    def running(self) -> Iterator[Self]:
        self.start()
        try:
            yield self
        finally:
            self.close()

    def take(self, request: Request) -> Scripted:
        with self._lock:
            self.requests.append(request)
            return self.answer(request)

    def breaks_at_once(self) -> bool:
        with self._lock:
            if self.answers and isinstance(self.answers[0], ResetAtOnce):
                self.answers.popleft()
                return True
            return False

    @contextmanager
    def under_way(self) -> Iterator[None]:
        with self._lock:
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def _with_tls(self, listening: socket.socket) -> socket.socket:
        key, self.certificate = _self_signed()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The ssl module reads keys from files only.
        with NamedTemporaryFile() as file:
            file.write(key + self.certificate)
            file.flush()
            context.load_cert_chain(file.name)
        # The handshake runs in the thread of the request, so that a client who refuses it does not block others.
        return context.wrap_socket(listening, server_side=True, do_handshake_on_connect=False)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing, because tests close connections on purpose."""


def _handler(server: ProviderServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def handle_one(self) -> None:
            if server.breaks_at_once():
                self.close_connection = True
                _reset(self.connection)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            with server.under_way():
                answer = server.take(Request(self.command, self.path, self.headers, body))
                if isinstance(answer, Hang):
                    server.closing.wait(30)
                elif isinstance(answer, Slow):
                    time.sleep(answer.seconds)
            # The request counts as ended before the answer is sent, because the client may send the next at once.
            self._give(answer.answer if isinstance(answer, Slow) else answer)

        do_GET = do_POST = do_PUT = handle_one

        def _give(self, answer: Scripted) -> None:
            if isinstance(answer, Answer):
                body = answer.encoded()
                self._begin(answer.status, answer.headers, len(body))
                self.wfile.write(body)
            elif isinstance(answer, Trickle):
                if answer.in_headers:
                    self.wfile.write(f"HTTP/1.1 {answer.status} Yes\r\nX-Long: ".encode())
                else:
                    self._begin(answer.status, {}, 1_000_000)
                while not server.closing.wait(answer.pause_s):
                    self.wfile.write(b"1")
                self.close_connection = True
            elif isinstance(answer, TrickledHeaders):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Endless: ")
                while not server.closing.wait(answer.pause_s):
                    self.wfile.write(b"a")
                self.close_connection = True
            else:
                self.close_connection = True
                if not isinstance(answer, Hang):
                    _reset(self.connection)

        def _begin(self, status: int, headers: dict[str, str], length: int) -> None:
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json; charset=UTF-8"} | headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Prints nothing."""

    return Handler


def _reset(connection: socket.socket) -> None:
    """Closing with a zero linger time sends RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())


def _self_signed() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "yaninda-test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.DNSName("push.localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
            ),
            False,
        )
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem, certificate.public_bytes(serialization.Encoding.PEM)
