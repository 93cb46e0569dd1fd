"""The body of a request, as it comes in."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

Receive = Callable[[], Awaitable[Any]]


class CallerGone(Exception):
    """The caller has closed the connection."""


async def receive_body(receive: Receive, most: int) -> tuple[bytes, bool]:
    """What has come, and whether that is all. Ends once there are more than `most` bytes."""
    body, is_whole = b"", False
    while not is_whole and len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerGone
        body += message["body"]
        is_whole = not message["more_body"]
    return body, is_whole


class BodyStream:
    """A large body, for a thread that reads it in pieces."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Receive, begun: bytes, until: float) -> None:
        self._loop = loop
        self._receive = receive
        self._come = bytearray(begun)
        self._is_complete = False
        self.until = until
        """When the next piece must have come, by the monotonic clock. A reader that gives more time sets it."""

    def read(self, size: int = -1) -> bytes:
        """Less than `size` only at the end. Raises `TimeoutError`, and `ConnectionError` if the caller is gone."""
        while not self._is_complete and (size < 0 or len(self._come) < size):
            coming = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
            # Of its own, because the loop may have ended.
            message = coming.result(max(self.until - time.monotonic(), 0) + 1)
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("The caller has closed the connection.")
            self._come += message["body"]
            self._is_complete = not message["more_body"]
        end = len(self._come) if size < 0 else size
        piece = bytes(self._come[:end])
        del self._come[:end]
        return piece

    async def _next(self) -> Any:
        async with asyncio.timeout_at(self.until):
            return await self._receive()
