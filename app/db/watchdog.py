"""Ends calls to PostgreSQL that get no answer. The server's own timeouts end a statement that is slow or waits for a
lock. They do not help when the server is frozen or the network drops packets: the driver would wait without a limit.
So every call has a limit here too. After it, the watchdog shuts down the connection's socket, and the waiting thread
gets an error.
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

# The deadline of the request that this thread works on, by the monotonic clock.
answer_by: ContextVar[float | None] = ContextVar("answer_by", default=None)


class OutOfTime(Exception):
    """The request's deadline passed before this call began."""


class Watchdog:
    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[float, Any]] = {}
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    @contextmanager
    def guard(self, connection: Any, limit_s: float | None = None) -> Generator[None]:
        """`connection` is psycopg's. When the limit is reached, the driver's error is raised in the block."""
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
                # Started here, because the process may fork after the watchdog was created.
                self._thread = threading.Thread(
                    target=self._run, args=(self._closed,), name="database-watchdog", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._watched.pop(key, None)

    def close(self) -> None:
        """Ends the thread when the last guarded call has ended. A later call starts a new thread."""
        with self._lock:
            self._closed.set()
            self._closed = threading.Event()
            self._thread = None

    def _run(self, closed: threading.Event) -> None:
        while self._watched or not closed.is_set():
            time.sleep(LOOK_EVERY_S)
            now = time.monotonic()
            # Under the lock, so that no file descriptor is closed and reused while it is shut down.
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
        # The connection was broken already, so the waiting thread has its error.
        return
