"""An HTTP client that costs next to nothing, so that what is measured is the server."""

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from app.api.tokens import LocalTokens
from benchmarks.bench import SECRET


@dataclass(frozen=True)
class Answered:
    elapsed_s: float
    latencies_ms: list[float]


class Line:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "Line":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> tuple[int, bytes]:
        self._socket.sendall(request)
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        head = received[:end].lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(received) < end + 4 + length:
            received += self._more()
        return int(received[9:12]), received[end + 4 :]

    def _more(self) -> bytes:
        part = self._socket.recv(65_536)
        if not part:
            raise ConnectionError("the server closed the connection")
        return part


class Tokens:
    def __init__(self) -> None:
        self._tokens = LocalTokens(SECRET)

    def request(self, user_id: int, method: str, path: str, body: bytes = b"") -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {self._tokens.issue(user_id)}"]
        if body or method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


def all_at_once(port: int, requests: Sequence[bytes], *, expected: int, connections: int) -> Answered:
    """Every connection sends its share, one request after the other."""
    shares = [requests[start::connections] for start in range(connections)]
    latencies: list[float] = []
    failures: list[BaseException] = []
    ready = threading.Barrier(connections + 1)

    def work(share: Sequence[bytes]) -> None:
        try:
            with Line(port) as line:
                ready.wait()
                for request in share:
                    began = time.perf_counter()
                    status, body = line.ask(request)
                    latencies.append((time.perf_counter() - began) * 1e3)
                    if status != expected:
                        raise AssertionError(f"{status} instead of {expected}: {body[:500]!r}")
        except BaseException as error:
            failures.append(error)
            ready.abort()

    threads = [threading.Thread(target=work, args=[share]) for share in shares]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed_s = time.perf_counter() - began
    if failures:
        raise failures[0]
    return Answered(elapsed_s, latencies)
