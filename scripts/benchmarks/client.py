"""An HTTP client that uses very little processor time, because it shares the cores with the server."""

import heapq
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from app.api.tokens import LocalTokens
from benchmarks.bench import SECRET

NO_ANSWER = 0
"""In place of a status: the connection closed, or the client's time limit passed, before an answer came."""


@dataclass(frozen=True)
class Answered:
    elapsed_s: float
    latencies_ms: list[float]


@dataclass(frozen=True)
class Answer:
    request: bytes
    status: int
    head: bytes
    """In lower case."""
    body: bytes
    latency_s: float

    @property
    def retry_after_s(self) -> float:
        return float(self.head.partition(b"retry-after:")[2].split(b"\r\n", 1)[0] or 0)


@dataclass
class KeepAlive:
    """A keep-alive connection with at most one request in flight."""

    socket: socket.socket
    request: bytes = b""
    sent_at: float = 0.0
    _received: bytearray = field(default_factory=bytearray)

    def send(self, request: bytes) -> None:
        self.request = request
        self._received.clear()
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> Answer | None:
        """Reads from the socket. The answer, once it is complete."""
        part = self.socket.recv(65_536)
        if not part:
            return self.no_answer()
        self._received += part
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(self._received) < end + 4 + length:
            return None
        return self._answer(int(head[9:12]), head, bytes(self._received[end + 4 :]))

    def no_answer(self) -> Answer:
        return self._answer(NO_ANSWER, b"", b"")

    def _answer(self, status: int, head: bytes, body: bytes) -> Answer:
        return Answer(self.request, status, head, body, time.perf_counter() - self.sent_at)


@contextmanager
def open_connections(port: int, how_many: int) -> Iterator[list[KeepAlive]]:
    with ExitStack() as stack:
        opened: list[KeepAlive] = []
        for _ in range(how_many):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.append(KeepAlive(one))
        yield opened


def run_clients(
    connections: Sequence[KeepAlive],
    next_request: Callable[[], bytes | None],
    on_answer: Callable[[Answer], float | None],
    *,
    patience_s: float = 60.0,
) -> None:
    """Each connection sends the next request, passes the answer to `on_answer`, pauses for the seconds that it returns,
    and repeats this until `next_request` returns None. A connection ends when no answer comes within `patience_s`, or
    when `on_answer` returns None."""
    pausing = [(0.0, number) for number in range(len(connections))]
    waiting: set[int] = set()
    with selectors.DefaultSelector() as selector:
        for number, connection in enumerate(connections):
            selector.register(connection.socket, selectors.EVENT_READ, number)

        def answer(number: int, given: Answer) -> None:
            waiting.discard(number)
            pause_s = on_answer(given)
            if given.status == NO_ANSWER:
                selector.unregister(connections[number].socket)
            elif pause_s is not None:
                heapq.heappush(pausing, (time.perf_counter() + pause_s, number))

        while pausing or waiting:
            while pausing and pausing[0][0] <= time.perf_counter():
                number = heapq.heappop(pausing)[1]
                request = next_request()
                if request is not None:
                    waiting.add(number)
                    connections[number].send(request)
            poll_s = max(pausing[0][0] - time.perf_counter(), 0) if pausing else 1.0 if waiting else 0.0
            for key, _ in selector.select(min(poll_s, 1.0)):
                given = connections[key.data].receive()
                if given is not None:
                    answer(key.data, given)
            given_up = time.perf_counter() - patience_s
            for number in [number for number in waiting if connections[number].sent_at < given_up]:
                answer(number, connections[number].no_answer())


class Tokens:
    def __init__(self) -> None:
        self._tokens = LocalTokens(SECRET)

    def request(self, user_id: int, method: str, path: str, body: bytes = b"") -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {self._tokens.issue(user_id)}"]
        if body or method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


def all_at_once(port: int, requests: Sequence[bytes], *, expected: int, connections: int) -> Answered:
    """Every connection sends one request after the other, until all are sent and answered."""
    left = iter(requests)
    latencies: list[float] = []

    def on_answer(answer: Answer) -> float:
        if answer.status != expected:
            raise AssertionError(f"{answer.status} instead of {expected}: {answer.body[:500]!r}")
        latencies.append(answer.latency_s * 1e3)
        return 0.0

    with open_connections(port, connections) as opened:
        began = time.perf_counter()
        run_clients(opened, lambda: next(left, None), on_answer)
        return Answered(time.perf_counter() - began, latencies)
