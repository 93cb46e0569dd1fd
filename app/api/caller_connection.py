"""A connection: uvicorn's, with limits on what a caller may take. Only the event loop runs this, so a silent or slow
caller costs a socket and no thread."""

import asyncio
import socket
from collections import Counter
from enum import Enum
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.api.accepting import ConnectionShare, OpenConnections
from app.api.errors import BadRequest, HeadersTooLarge, RequestTooSlow, problem
from app.foundation.errors import AppError

HEADERS_WITHIN_S = 2.0
"""From the first byte of a request to the end of its headers."""
MOST_HEADER_BYTES = 32_768
MOST_HEADERS = 100
MOST_PIPELINED = 16
KEEP_ALIVE_S = 20
READS_WITHIN_S = 10.0
"""For the bytes of an answer that the kernel does not take, because the caller does not read."""
LINGER_S = 2.0
"""A request that was answered before it was complete may send its rest so long, so that its caller can read the answer.
When the process stops, callers that are silent have this time for one more request."""


class ConnectionState(ServerState):
    """What the connections of a process share."""

    def __init__(self, most_per_address: int, share: ConnectionShare | None = None) -> None:
        super().__init__()
        self.share = share or OpenConnections().of_process(0)
        self.most_per_address = most_per_address
        self.per_address: Counter[str] = Counter()
        self.draining = False


class Reading(Enum):
    NOTHING = "nothing"
    """Between two requests, or while one is answered that was read as a whole."""
    HEADERS = "headers"
    BODY = "body"


class CallerConnection(HttpToolsProtocol):
    """Overrides the methods of `asyncio.Protocol` and of the parser's callbacks. The time for a body is counted by
    whoever reads it (`WsgiThreads`)."""

    server_state: ConnectionState
    cycle: Any
    """The newest request and its answer; None before the first."""
    parser: Any
    scope: Any

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._reading = Reading.NOTHING
        self._header_bytes = 0
        self._is_broken = False
        self._limit: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    # ---- asyncio.Protocol ----

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        # With 0 the loop reports every byte that the kernel does not take.
        transport.set_write_buffer_limits(high=0)
        state = self.server_state
        state.per_address[self._address] += 1
        if state.per_address[self._address] > state.most_per_address:
            transport.abort()
        self._end_after(LINGER_S if state.draining else KEEP_ALIVE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_after(None)
        if self._unread is not None:
            self._unread.cancel()
        state = self.server_state
        state.share.count -= 1
        state.per_address[self._address] -= 1
        if not state.per_address[self._address]:
            del state.per_address[self._address]

    def data_received(self, data: bytes) -> None:
        if self._is_broken:
            return
        super().data_received(data)
        if self._reading is Reading.HEADERS:
            self._header_bytes += len(data)
            if self._header_bytes > MOST_HEADER_BYTES:
                self._refuse(HeadersTooLarge("The headers are too large."))

    def eof_received(self) -> bool | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A caller may close its side after a request and still read the answer."""
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_started:
            return None
        cycle.keep_alive = False
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(READS_WITHIN_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    # ---- the parser ----

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading, self._header_bytes = Reading.HEADERS, 0
        self.scope["state"] = {"began": self.loop.time(), "connections": self.server_state}
        self._end_after(HEADERS_WITHIN_S)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reading is Reading.BODY:
            # A proxy has not checked what stands behind the body.
            return
        if len(self.headers) >= MOST_HEADERS:
            raise ValueError("too many headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.scope["state"]["target"] = self.url
        self._reading = Reading.BODY
        self._end_after(None)
        if len(self.pipeline) > MOST_PIPELINED:
            raise ValueError("too many requests at once")
        if self.server_state.draining or self.parser.should_upgrade():
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._reading = Reading.NOTHING

    # ---- uvicorn ----

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_broken:
            self.transport.close()
        elif self.cycle.response_complete and self._reading is not Reading.HEADERS:
            self._end_after(KEEP_ALIVE_S if self._reading is Reading.NOTHING else LINGER_S)

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadRequest("The request cannot be understood."))

    def shutdown(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        elif self._reading is not Reading.HEADERS:
            self._end_after(LINGER_S)

    # ---- limits ----

    @property
    def _address(self) -> str:
        """Of IPv6 the first half, because a caller has all addresses that begin with it."""
        address = self.client[0] if self.client else ""
        return address if ":" not in address or "." in address else socket.inet_pton(socket.AF_INET6, address)[:8].hex()

    def _end_after(self, seconds: float | None) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None if seconds is None else self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self._reading is Reading.HEADERS:
            self._refuse(RequestTooSlow("The headers did not come in time."))
        else:
            self.transport.close()

    def _refuse(self, error: AppError) -> None:
        """Answers what could not be read, and closes the connection. An earlier request is answered first."""
        self._is_broken = True
        self._end_after(None)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self.pipeline or not cycle.more_body:
                self.pipeline.clear()
                self.flow.pause_reading()
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.abort()
                return
        answer = problem(error)
        answer.headers["Connection"] = "close"
        head = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
        self.transport.write(f"HTTP/1.1 {answer.status}\r\n{head}\r\n".encode() + answer.data)
        self.transport.close()
