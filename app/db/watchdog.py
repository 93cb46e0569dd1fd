"""Cuts calls to PostgreSQL that get no answer.

The server's own timeouts end a statement that is slow or waits for a lock. They do not help when the server is
frozen or the network swallows packets, and the driver waits without end. So every call has a limit here as well; when
it is over, the connection's socket is shut down, and the waiting thread gets an error it can report.
"""

import os
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

LOOK_EVERY_S = 0.1

# When the request that this thread works on has to be answered, by the monotonic clock.
answer_by: ContextVar[float | None] = ContextVar("answer_by", default=None)


class OutOfTime(Exception):
    """The time for the whole request is over before this call began."""


class Watchdog:
    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[float, Any]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def guard(self, connection: Any, limit_s: float | None = None) -> Generator[None]:
        """`connection` is psycopg's. What is cut raises the driver's error in the block."""
        now = time.monotonic()
        request_ends = answer_by.get()
        ends = now + (limit_s or self._limit_s)
        if request_ends is not None:
            ends = min(ends, request_ends)
            if now >= request_ends:
                raise OutOfTime
        key = id(connection)
        with self._lock:
            self._watched[key] = (ends, connection)
            if self._thread is None:
                # Begun here and not before, because a process may fork in between.
                self._thread = threading.Thread(target=self._run, name="database-watchdog", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._watched.pop(key, None)

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            now = time.monotonic()
            # Under the lock, so that no connection is closed, and its number given to another, while it is cut.
            with self._lock:
                for key, (ends, connection) in list(self._watched.items()):
                    if ends <= now:
                        del self._watched[key]
                        _cut(connection)


def _cut(connection: Any) -> None:
    try:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)
    except OSError:
        # It was broken already; whoever waits on it has heard.
        return
