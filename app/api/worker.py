"""Gunicorn's thread worker, which knows how long a request has waited, lets nobody hold a thread who says nothing, and
leaves nobody standing when it stops."""

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


class Listening(socket.socket):
    """A connection that is listened to for as long as a request may take; then it counts as closed by the caller. One
    who sends half a request, or a byte now and then, would otherwise hold a thread for as long as they like."""

    hears_until = math.inf

    def recv(self, *arguments: Any) -> bytes:
        if self.hears_until < math.inf:
            poll = select.poll()
            poll.register(self, select.POLLIN)
            if not poll.poll(max(self.hears_until - time.monotonic(), 0) * 1000):
                self.shutdown(socket.SHUT_RD)
        return super().recv(*arguments)


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
        client = Listening(fileno=taken.detach())
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
        conn.sock.hears_until = now + self.app.settings.request_timeout_s
        return super().handle(conn)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

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
