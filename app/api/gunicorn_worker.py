"""Gunicorn's thread worker, which knows how long a request has waited, lets nobody hold a thread who says nothing, and
leaves nobody standing when it stops."""

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


class Patient(socket.socket):
    """A connection whose caller is given the time that a request may take, for sending it and for reading the answer;
    then it counts as closed by them. One who sends a byte now and then, or does not read, would otherwise hold a
    thread for as long as they like."""

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
    """The original stops taking connections but keeps the port open until the last answer is out. Whoever connects
    meanwhile waits in the kernel's queue, and is thrown out at the end. This one takes everybody who is in the queue
    along, then closes the port, so that a client hears at once that it must go elsewhere.
    """

    alive: bool
    app: Any
    cfg: Any
    nr_conns: int
    pending_conns: Any
    poller: Any
    sockets: list[Any]

    def accept(self, listener: Any) -> None:
        """The original gives a connection to a thread at once, which waits there for the first words. Here it waits
        among the idle ones, so that a row of silent connections takes no thread from anybody."""
        try:
            taken, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        client = Patient(fileno=taken.detach())
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
        goes_on = _ThreadWorker.handle(self, conn)
        if not goes_on:
            # What has come is read before the connection is closed. The original waits two seconds for more, in the
            # one thread that serves all connections.
            conn.sock.until = time.monotonic()
        return goes_on

    def set_accept_enabled(self, enabled: bool) -> None:
        if not self.alive:
            for listener in self.sockets:
                self._empty_queue(listener)
        super().set_accept_enabled(enabled)  # pyright: ignore[reportUnknownMemberType]
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def _empty_queue(self, listener: Any) -> None:
        taken = -1
        while taken < self.nr_conns:
            taken = self.nr_conns
            self.accept(listener)
