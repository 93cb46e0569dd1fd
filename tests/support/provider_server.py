"""A provider made of answers: a real HTTP(S) server that records what it is asked and answers as it is told.

Stand-ins for one provider build on it and judge requests as the real one would.
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
    """Asked for by name in any case."""
    body: bytes = field(repr=False)

    def json(self) -> Any:
        return json.loads(self.body)

    def form(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(self.body.decode(), keep_blank_values=True).items()}


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any = None
    """Text and bytes as they are, everything else as JSON."""
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class Hang:
    """Takes the request and says nothing until the server closes."""


class Reset:
    """Takes the whole request, then breaks the connection: whoever sent it cannot know."""


class ResetAtOnce:
    """Breaks the connection without reading the body. It is not recorded as a request."""


@dataclass(frozen=True)
class Trickle:
    """A byte now and then and never an end, so that no silence is long enough to be noticed."""

    pause_s: float = 0.1
    status: int = 200
    in_headers: bool = False
    """Otherwise in the body."""


@dataclass(frozen=True)
class TrickledHeaders:
    """A status at once, then a header that never ends, byte by byte."""

    pause_s: float = 0.1


@dataclass(frozen=True)
class Slow:
    """An answer that takes its time."""

    seconds: float
    answer: Answer


Scripted = Answer | Hang | Reset | ResetAtOnce | Trickle | TrickledHeaders | Slow


def retry_afters(now: datetime) -> dict[str, Any]:
    """What providers send with a 429 and the seconds they mean by it, None where they say nothing of use.

    Given as the rest of `pytest.mark.parametrize(("headers", "expected"), **retry_afters(now))`.
    """

    def date(seconds: float) -> str:
        return format_datetime((now + timedelta(seconds=seconds)).astimezone(UTC), usegmt=True)

    said: dict[str, tuple[dict[str, str], float | None]] = {
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
    return {"argvalues": list(said.values()), "ids": list(said)}


class ProviderServer:
    """Without a script it gives `default`; a subclass overrides `judge` to look at the request first."""

    def __init__(self, default: Scripted | None = None, *, tls: bool = False) -> None:
        self.requests: list[Request] = []
        self.answers: deque[Scripted] = deque()
        """What is answered next, each once."""
        self.most_at_once = 0
        """Most requests that were under way at the same time."""
        self.connections = 0
        self.closing = threading.Event()
        self.certificate: bytes | None = None
        """In PEM: trusted by nobody who was not given it."""
        self._default = default or Answer(200, {})
        self._under_way = 0
        self._lock = threading.Lock()
        self._http = _Listener(("127.0.0.1", 0), _handler(self))
        if tls:
            self._http.socket = self._with_tls(self._http.socket)
        self.port: int = self._http.server_address[1]
        self.base_url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def judge(self, request: Request) -> Scripted:
        """What is answered where no script says otherwise."""
        return self._default

    def answer(self, request: Request) -> Scripted:
        """One request at a time comes here, so that scripts are followed in order."""
        return self.answers.popleft() if self.answers else self.judge(request)

    def start(self) -> None:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self.closing.set()
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
        # The thread of the request shakes hands, so that a client who refuses holds nobody up.
        return context.wrap_socket(listening, server_side=True, do_handshake_on_connect=False)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what tests are about."""


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
            # No longer under way when the last byte leaves: the client may come with its next request at once.
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
            """Quiet."""

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
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem, certificate.public_bytes(serialization.Encoding.PEM)
