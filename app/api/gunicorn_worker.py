"""Gunicorn's thread worker with three changes: it measures how long a request has waited, silent or slow callers do not
block a thread, and before it stops it answers all clients that have connected.

It overrides methods that gunicorn does not document; `tests/unit/api/test_gunicorn_worker.py` lists them.
"""

import errno
import math
import select
import socket
import time
from functools import partial
from selectors import EVENT_READ
from typing import Any, cast

from gunicorn.workers.gthread import TConn, ThreadWorker  # pyright: ignore[reportMissingTypeStubs]

from app.api import load

_ThreadWorker, _Connection = cast(Any, ThreadWorker), cast(Any, TConn)


class TimedSocket(socket.socket):
    """A connection with one deadline for the whole request and answer. After the deadline, the connection counts as
    closed by the caller. Otherwise a caller that sends a byte now and then, or does not read, could block a thread
    without a limit."""

    until = math.inf

    def recv(self, *arguments: Any) -> bytes:
        if self.until < math.inf and not self._becomes(select.POLLIN):
            self.shutdown(socket.SHUT_RD)
        return super().recv(*arguments)

    def sendall(self, *arguments: Any) -> None:
        left = memoryview(arguments[0])
        while left:
            try:
                left = left[self.send(left, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                if not self._becomes(select.POLLOUT):
                    raise BrokenPipeError(errno.EPIPE, "The caller does not read.") from None

    def _becomes(self, ready: int) -> bool:
        poll = select.poll()
        poll.register(self, ready)
        return bool(poll.poll(max(self.until - time.monotonic(), 0) * 1000))


class DrainingWorker(_ThreadWorker):
    """When it stops, gunicorn's worker accepts no more connections but keeps the port open until the last answer is
    sent. Clients that connect meanwhile wait in the kernel's queue and are dropped at the end. This worker accepts all
    connections in the queue and then closes the port, so that later clients are refused at once and try another
    process.
    """

    alive: bool
    app: Any
    cfg: Any
    nr_conns: int
    pending_conns: Any
    poller: Any
    sockets: list[Any]

    def accept(self, listener: Any) -> None:
        """Gunicorn's worker gives a connection to a thread at once, and the thread waits for the first byte. Here the
        poller waits for it, so that silent connections block no threads."""
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        client = TimedSocket(fileno=accepted.detach())
        self.nr_conns += 1
        conn = _Connection(self.cfg, client, address, listener.getsockname())
        if not self.alive:
            self.enqueue_req(conn)
            return
        conn.set_timeout()
        self.pending_conns.append(conn)
        self.poller.register(client, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _cap_keepalive(self, deadline: float) -> None:
        super()._cap_keepalive(deadline)  # pyright: ignore[reportUnknownMemberType]
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def enqueue_req(self, conn: Any) -> None:
        conn.queued_at = time.monotonic()
        super().enqueue_req(conn)  # pyright: ignore[reportUnknownMemberType]

    def handle(self, conn: Any) -> Any:
        now = time.monotonic()
        load.waited_s.set(now - conn.queued_at)
        load.draining.set(not self.alive)
        conn.sock.until = now + self.app.settings.request_timeout_s
        keeps_alive = _ThreadWorker.handle(self, conn)
        if not keeps_alive:
            # Before gunicorn closes a connection, it reads from it for up to two seconds, in the only thread that
            # serves all connections. This deadline makes it read only the bytes that have arrived.
            conn.sock.until = time.monotonic()
        return keeps_alive

    def set_accept_enabled(self, enabled: bool) -> None:
        if not self.alive:
            for listener in self.sockets:
                self._empty_queue(listener)
        super().set_accept_enabled(enabled)  # pyright: ignore[reportUnknownMemberType]
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def _empty_queue(self, listener: Any) -> None:
        accepted = -1
        while accepted < self.nr_conns:
            accepted = self.nr_conns
            self.accept(listener)
