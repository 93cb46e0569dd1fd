"""The application in threads, behind a server that is played here."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from app.api import load
from app.api.wsgi_threads import WsgiThreads

PATIENCE_S = 10


class Caller:
    """One request. `parts` come one after the other; then the caller stays, until it goes."""

    def __init__(self, parts: Iterable[bytes] = (b"",), *, ends: bool = True, **headers: str) -> None:
        bodies = list(parts)
        self._messages = [
            {"type": "http.request", "body": body, "more_body": not ends or number < len(bodies)}
            for number, body in enumerate(bodies, 1)
        ]
        self._gone = asyncio.Event()
        self.began = time.monotonic()
        self.received: list[Any] = []
        self.came = asyncio.Event()
        self.scope = {
            "type": "http",
            "method": "POST",
            "raw_path": b"/tasks/%C3%A7",
            "query_string": b"a=1",
            "http_version": "1.1",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "state": {
                "began": self.began,
                "connections": SimpleNamespace(draining=False),
                "target": b"/tasks/%C3%A7?a=1",
            },
        }

    async def receive(self) -> Any:
        if self._messages:
            return self._messages.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.received.append(message)
        self.came.set()

    def go(self) -> None:
        self._gone.set()

    @property
    def status(self) -> int:
        return self.received[0]["status"]

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.received[1:])

    @property
    def is_complete(self) -> bool:
        return bool(self.received) and not self.received[-1].get("more_body")


def served(app: Any, request: Callable[[WsgiThreads], Any], **limits: Any) -> None:
    async def within_limits() -> None:
        threads = WsgiThreads(app, **({"threads": 1, "most_body_bytes": 10, "request_timeout_s": 5} | limits))
        async with asyncio.timeout(PATIENCE_S):
            await request(threads)

    asyncio.run(within_limits())


def echo(environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    names = ("PATH_INFO", "QUERY_STRING", "HTTP_X_A", "HTTP_X_B", "CONTENT_TYPE", "SCRIPT_NAME")
    shown = repr([environ.get(name) for name in names]).encode()
    return [shown + environ["wsgi.input"].read() + threading.current_thread().name.encode()[:6]]


def test_the_application_sees_the_request_as_wsgi_defines_it():
    async def request(threads: WsgiThreads) -> None:
        caller = Caller([b"{", b"}"], **{"x-a": "1", "x-b": "2", "x_b": "3", "content-type": "text/plain"})
        await threads(caller.scope, caller.receive, caller.send)
        assert (caller.status, caller.is_complete) == (200, True)
        path = "/tasks/ç".encode().decode("latin-1")
        assert caller.body == repr([path, "a=1", "1", "2", "text/plain", ""]).encode() + b"{}" + b"reques"

    served(echo, request)


@pytest.mark.parametrize("headers", [{"content-length": "12"}, {}], ids=["told", "not told"])
def test_a_large_body_is_read_by_a_thread_of_its_own_kind(headers: dict[str, str]):
    async def request(threads: WsgiThreads) -> None:
        caller = Caller([b"123456", b"789012"], ends="content-length" in headers, **headers)
        asking = asyncio.ensure_future(threads(caller.scope, caller.receive, caller.send))
        if not headers:
            await asyncio.sleep(0)
            caller.go()
        await asking
        assert caller.body.endswith(b"123456789012upload" if headers else b"")

    def read(environ: Any, start_response: Any) -> Iterable[bytes]:
        try:
            return echo(environ, start_response)
        except ConnectionError:
            start_response("400 Bad Request", [])
            return []

    served(read, request)


def test_a_body_that_does_not_come_is_refused_and_takes_no_thread():
    async def request(threads: WsgiThreads) -> None:
        caller = Caller([b"{"], ends=False, **{"content-length": "2"})
        await threads(caller.scope, caller.receive, caller.send)
        assert (caller.status, b"request_too_slow" in caller.body) == (408, True)

    served(None, request, request_timeout_s=0.05)


def test_the_time_of_a_request_begins_with_its_first_byte():
    seen: list[Any] = []

    def look(environ: Any, start_response: Any) -> Iterable[bytes]:
        seen.append(load.arrival.get())
        return echo(environ, start_response)

    async def request(threads: WsgiThreads) -> None:
        caller = Caller()
        caller.scope["state"]["began"] = 7.0
        await threads(caller.scope, caller.receive, caller.send)

    served(look, request, request_timeout_s=1e9)
    assert (seen[0].began, seen[0].draining) == (7.0, False)
    assert 0 <= seen[0].waited_s < PATIENCE_S


def test_a_fault_outside_of_the_application_is_a_problem_and_quotes_nothing():
    def broken(environ: Any, start_response: Any) -> Iterable[bytes]:
        raise ValueError("Ayşe")

    async def request(threads: WsgiThreads) -> None:
        caller = Caller()
        await threads(caller.scope, caller.receive, caller.send)
        assert (caller.status, b"internal_error" in caller.body, "Ayşe".encode() in caller.body) == (500, True, False)

    served(broken, request)


class Pieces:
    def __init__(self) -> None:
        self.made = 0
        self.closed = threading.Event()

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> bytes:
        if self.made == 5:
            raise StopIteration
        self.made += 1
        return b"%d" % self.made

    def close(self) -> None:
        self.closed.set()


def test_an_answer_in_pieces_is_sent_as_they_are_made_and_closed():
    pieces = Pieces()

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        return pieces

    async def request(threads: WsgiThreads) -> None:
        caller = Caller()
        await threads(caller.scope, caller.receive, caller.send)
        assert (caller.body, caller.is_complete) == (b"12345", True)
        assert pieces.closed.is_set()

    served(app, request)


class Events:
    """Endless, as the events of a console."""

    def __init__(self) -> None:
        self.ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"data: 1\n\n"
                await asyncio.sleep(0.001)
        finally:
            self.ended = True


@pytest.mark.parametrize("why", ["the caller goes", "the process stops"])
def test_event_streams_hold_no_thread_and_end(why: str):
    streams: list[Events] = []

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        streams.append(Events())
        return streams[-1]

    async def request(threads: WsgiThreads) -> None:
        callers = [Caller() for _ in range(20)]  # There is one thread.
        asking = [asyncio.ensure_future(threads(one.scope, one.receive, one.send)) for one in callers]
        while not all(b"data: 1" in one.body for one in callers):
            await asyncio.sleep(0)
        if why == "the caller goes":
            for one in callers:
                one.go()
        else:
            threads.end_streams()
        await asyncio.gather(*asking)
        assert all(stream.ended for stream in streams)
        assert all(one.is_complete for one in callers)

    served(app, request)
