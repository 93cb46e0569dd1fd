"""One open stream: an asynchronous iterable of bytes, which the server's event loop sends. It holds no thread.

Another thread puts events into its queue, which is bounded. A reader who falls behind is ended, and resumes from the
last event that it got.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime

from app.foundation.errors import Unavailable
from app.realtime.contract import EndReason, Wanted
from app.realtime.event_wire import end_block, ready_block, time_block
from app.users.models import Caller

HEARTBEAT_S = 15.0
MOST_WAITING = 2_000
"""Blocks. Streams share them, so each costs a reference."""

Block = tuple[int, bytes]
"""The position of an event, and what is sent of it."""
ReadPage = Callable[["EventStream", int], Awaitable[tuple[Sequence[Block], int | None]]]
"""For a stream, the events after a position that are older than its queue, and the position to go on from; None after
the last."""


class EventStream:
    def __init__(
        self,
        caller: Caller,
        token: str,
        wanted: Wanted,
        after: int | None,
        *,
        read_page: ReadPage,
        now: Callable[[], datetime],
        on_close: Callable[["EventStream"], None],
        heartbeat_s: float = HEARTBEAT_S,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """`after` is the last event that the reader has; None for a reader who wants new ones only."""
        self.caller = caller
        self.token = token
        self.wanted = wanted
        self.live_from = 0
        """Later events are in the queue, and earlier ones in the database."""
        self.has_started = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.woken = asyncio.Event()
        self._position = after
        self._read_page = read_page
        self._now = now
        self._on_close = on_close
        self._heartbeat_s = heartbeat_s
        self._most_waiting = most_waiting
        self._waiting: deque[Block] = deque()
        self.reason: EndReason | None = None
        """Why the server ends it; None while it does not."""

    def begin_at(self, live_from: int) -> None:
        """Called once, when the queue begins to be filled."""
        self.live_from = live_from
        if self._position is None:
            self._position = live_from

    # ---- from other threads ----

    def put(self, block: Block) -> None:
        """The caller wakes the stream afterwards."""
        if len(self._waiting) >= self._most_waiting:
            self.reason = self.reason or EndReason.SLOW
        else:
            self._waiting.append(block)

    def end(self, reason: EndReason) -> None:
        self.reason = self.reason or reason
        self.wake()

    def drain(self) -> None:
        self.end(EndReason.DRAINING)

    def wake(self) -> None:
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.woken.set)

    # ---- in the event loop ----

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.loop, self.has_started = asyncio.get_running_loop(), True
        try:
            assert self._position is not None, "the stream was begun"
            yield ready_block(self._position, self._now())
            async for pieces in self._history():
                yield pieces
            while self.reason is None:
                if pieces := self._take() or await self._next():
                    yield pieces
            yield end_block(self.reason)
        except Unavailable:
            # The reader connects again, and resumes.
            return
        finally:
            self._on_close(self)

    async def _history(self) -> AsyncIterator[bytes]:
        assert self._position is not None, "the stream was begun"
        after: int | None = self._position
        loop = asyncio.get_running_loop()
        said_at = loop.time()
        while after is not None and after < self.live_from and self.reason is None:
            blocks, after = await self._read_page(self, after)
            if blocks:
                self._position = blocks[-1][0]
                yield b"".join(block for _, block in blocks)
                said_at = loop.time()
            elif loop.time() - said_at >= self._heartbeat_s:
                # Of a million events of others this reader sees none, and would take the silence for a lost connection.
                yield time_block(self._now())
                said_at = loop.time()

    def _take(self) -> bytes:
        """Everything that waits, as one piece."""
        pieces: list[bytes] = []
        position = self._position or 0
        while self._waiting:
            id_, block = self._waiting.popleft()
            if id_ > position:
                pieces.append(block)
                position = id_
        self._position = position
        return b"".join(pieces)

    async def _next(self) -> bytes:
        """What comes next, or a sign of life; nothing if the stream ends."""
        self.woken.clear()
        if not self._waiting and self.reason is None:
            try:
                async with asyncio.timeout(self._heartbeat_s):
                    await self.woken.wait()
            except TimeoutError:
                return time_block(self._now())
        return self._take()
