"""Runs the application, which is WSGI, in threads, behind a server whose event loop reads and writes.

A thread gets a request when it is complete, and gives its answer back as a whole. Only the large bodies of requests are
read by a thread, which is one of its own kind, so that slow uploads block no other request. What is sent in many pieces
costs a thread only while a piece is made, and an event stream, an asynchronous iterable, costs none.
"""

import asyncio
import contextlib
import io
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable
from urllib.parse import unquote_to_bytes

from werkzeug.wrappers import Response

from app.api import load
from app.api.body_stream import BodyStream, CallerGone, Receive, receive_body
from app.api.errors import RequestTooSlow, problem, problem_of_fault

Environ = dict[str, Any]
Wsgi = Callable[[Environ, Any], Any]

UPLOADS = 2
"""Threads for requests with large bodies."""
CLOSE = (b"connection", b"close")
GOODBYE_S = 1.0
"""For the last words of a stream, when the process stops."""


@runtime_checkable
class DrainingStream(Protocol):
    def drain(self) -> None:
        """Makes the stream end by itself, soon."""


@dataclass(frozen=True, slots=True)
class WsgiAnswer:
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    rest: AsyncIterable[bytes] | None = None
    is_endless: bool = False
    """True for a stream of events."""


class WsgiThreads:
    """An ASGI application."""

    def __init__(self, app: Wsgi, *, threads: int, most_body_bytes: int, request_timeout_s: float) -> None:
        self._app = app
        self._most_body_bytes = most_body_bytes
        self._request_timeout_s = request_timeout_s
        self._threads = ThreadPoolExecutor(threads, "request")
        self._uploads = ThreadPoolExecutor(UPLOADS, "upload")
        self._streams: dict[asyncio.Task[None], AsyncIterable[bytes]] = {}
        self._ends_streams = False

    async def __call__(self, scope: Any, receive: Receive, send: Any) -> None:
        try:
            answer = await self._answer(scope, receive)
        except CallerGone:
            return
        except Exception as error:
            answer = _without_wsgi(problem_of_fault(error))
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body, "more_body": answer.rest is not None})
        if answer.rest is not None:
            await self._send_rest(answer.rest, answer.is_endless, receive, send)

    def end_streams(self) -> None:
        """For a process that stops. Their callers connect to another one."""
        self._ends_streams = True
        for sending, stream in list(self._streams.items()):
            _end(sending, stream)

    async def _answer(self, scope: Any, receive: Receive) -> WsgiAnswer:
        began: float = scope["state"]["began"]
        ends = began + self._request_timeout_s
        environ = _environ(scope)
        body, is_whole = b"", False
        if int(environ.get("CONTENT_LENGTH", 0)) <= self._most_body_bytes:
            try:
                async with asyncio.timeout_at(ends):
                    body, is_whole = await receive_body(receive, self._most_body_bytes)
            except TimeoutError:
                return _without_wsgi(problem(RequestTooSlow("The body did not come in time.")), CLOSE)
        loop = asyncio.get_running_loop()
        environ["wsgi.input"] = io.BytesIO(body) if is_whole else BodyStream(loop, receive, body, ends)
        threads = self._threads if is_whole else self._uploads
        draining: bool = scope["state"]["connections"].draining
        return await loop.run_in_executor(threads, self._run, environ, began, time.monotonic(), draining)

    def _run(self, environ: Environ, began: float, queued: float, draining: bool) -> WsgiAnswer:
        """In a thread."""
        load.arrival.set(load.Arrival(began, time.monotonic() - queued, draining))
        status, headers = 500, list[tuple[bytes, bytes]]()

        def start_response(line: str, given: list[tuple[str, str]], _exc_info: Any = None) -> None:
            nonlocal status, headers
            status, headers = int(line[:3]), _bytes(given)

        pieces = self._app(environ, start_response)
        if isinstance(pieces, AsyncIterable):
            return WsgiAnswer(status, headers, b"", cast(AsyncIterable[bytes], pieces), is_endless=True)
        iterator = iter(pieces)
        first, second = next(iterator, b""), next(iterator, None)
        if second is not None:
            return WsgiAnswer(status, headers, first, _later(second, iterator, pieces))
        _close(pieces)
        return WsgiAnswer(status, headers, first)

    async def _send_rest(self, rest: AsyncIterable[bytes], is_endless: bool, receive: Receive, send: Any) -> None:
        sending = asyncio.ensure_future(_send_all(rest, send))
        gone = asyncio.ensure_future(_until_gone(receive))
        if is_endless:
            self._streams[sending] = rest
        if is_endless and self._ends_streams:
            _end(sending, rest)
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
        except Exception as error:
            problem_of_fault(error)
            raise
        finally:
            gone.cancel()
            self._streams.pop(sending, None)
        await send({"type": "http.response.body", "body": b""})


def _end(sending: "asyncio.Task[None]", stream: AsyncIterable[bytes]) -> None:
    """A stream that can say goodbye has a moment for it."""
    if isinstance(stream, DrainingStream):
        stream.drain()
        asyncio.get_running_loop().call_later(GOODBYE_S, sending.cancel)
    else:
        sending.cancel()


async def _send_all(rest: AsyncIterable[bytes], send: Any) -> None:
    pieces = aiter(rest)
    try:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        # At once, not when it is collected, because a stream counts as open until then.
        if isinstance(pieces, AsyncGenerator):
            await cast("AsyncGenerator[bytes]", pieces).aclose()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _later(piece: bytes, iterator: Iterator[bytes], pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """A thread makes each piece, because it may come from a slow disk."""
    try:
        while piece:
            yield piece
            piece = await asyncio.to_thread(next, iterator, b"")
    finally:
        _close(pieces)


def _close(pieces: Any) -> None:
    if hasattr(pieces, "close"):
        pieces.close()


def _without_wsgi(response: Response, *more: tuple[bytes, bytes]) -> WsgiAnswer:
    return WsgiAnswer(response.status_code, [*_bytes(list(response.headers)), *more], response.data)


def _bytes(headers: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _environ(scope: Any) -> Environ:
    """Headers with an underscore are dropped: as variables they cannot be told from those with a hyphen."""
    raw_path: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    host, port = scope["server"] or ("", 0)
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(raw_path).decode("latin-1"),
        "REQUEST_URI": scope["state"]["target"].decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["client"][0] if scope["client"] else "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for name, value in scope["headers"]:
        if b"_" in name:
            continue
        key = name.decode("latin-1").upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    return environ
