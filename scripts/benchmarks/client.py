"""An HTTP client that costs next to nothing, so that what is measured is the server."""

import heapq
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from app.api.tokens import LocalTokens
from benchmarks.bench import SECRET

LOST = 0
"""In place of a status: the connection ended, or the client's patience did, before there was an answer."""


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
class Line:
    """One keep-alive connection, with one request at a time on its way."""

    socket: socket.socket
    request: bytes = b""
    asked_at: float = 0.0
    _received: bytearray = field(default_factory=bytearray)

    def ask(self, request: bytes) -> None:
        self.request = request
        self._received.clear()
        self.asked_at = time.perf_counter()
        self.socket.sendall(request)

    def hear(self) -> Answer | None:
        """The answer, once the last part of it has come."""
        part = self.socket.recv(65_536)
        if not part:
            return self.lost()
        self._received += part
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(self._received) < end + 4 + length:
            return None
        return self._answer(int(head[9:12]), head, bytes(self._received[end + 4 :]))

    def lost(self) -> Answer:
        return self._answer(LOST, b"", b"")

    def _answer(self, status: int, head: bytes, body: bytes) -> Answer:
        return Answer(self.request, status, head, body, time.perf_counter() - self.asked_at)


@contextmanager
def lines(port: int, how_many: int) -> Iterator[list[Line]]:
    with ExitStack() as stack:
        opened: list[Line] = []
        for _ in range(how_many):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.append(Line(one))
        yield opened


def converse(
    crowd: Sequence[Line],
    ask: Callable[[], bytes | None],
    told: Callable[[Answer], float | None],
    *,
    patience_s: float = 60.0,
) -> None:
    """Everybody asks, hears the answer, rests for as long as `told` says, and asks again, until `ask` has nothing
    more. Whoever hears nothing within the patience, or is told None, goes home."""
    resting = [(0.0, number) for number in range(len(crowd))]
    waiting: set[int] = set()
    with selectors.DefaultSelector() as selector:
        for number, line in enumerate(crowd):
            selector.register(line.socket, selectors.EVENT_READ, number)

        def answer(number: int, given: Answer) -> None:
            waiting.discard(number)
            rest_s = told(given)
            if given.status == LOST:
                selector.unregister(crowd[number].socket)
            elif rest_s is not None:
                heapq.heappush(resting, (time.perf_counter() + rest_s, number))

        while resting or waiting:
            while resting and resting[0][0] <= time.perf_counter():
                number = heapq.heappop(resting)[1]
                request = ask()
                if request is not None:
                    waiting.add(number)
                    crowd[number].ask(request)
            nap_s = max(resting[0][0] - time.perf_counter(), 0) if resting else 1.0 if waiting else 0.0
            for key, _ in selector.select(min(nap_s, 1.0)):
                given = crowd[key.data].hear()
                if given is not None:
                    answer(key.data, given)
            given_up = time.perf_counter() - patience_s
            for number in [number for number in waiting if crowd[number].asked_at < given_up]:
                answer(number, crowd[number].lost())


class Tokens:
    def __init__(self) -> None:
        self._tokens = LocalTokens(SECRET)

    def request(self, user_id: int, method: str, path: str, body: bytes = b"") -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {self._tokens.issue(user_id)}"]
        if body or method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


def all_at_once(port: int, requests: Sequence[bytes], *, expected: int, connections: int) -> Answered:
    """Every connection sends one request after the other, until all are sent."""
    left = iter(requests)
    latencies: list[float] = []

    def told(answer: Answer) -> float:
        if answer.status != expected:
            raise AssertionError(f"{answer.status} instead of {expected}: {answer.body[:500]!r}")
        latencies.append(answer.latency_s * 1e3)
        return 0.0

    with lines(port, connections) as crowd:
        began = time.perf_counter()
        converse(crowd, lambda: next(left, None), told)
        return Answered(time.perf_counter() - began, latencies)
