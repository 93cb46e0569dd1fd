"""Gunicorn's thread worker, which knows how long a request has waited, and leaves nobody standing when it stops."""

import time
from typing import Any, cast

from gunicorn.workers.gthread import ThreadWorker  # pyright: ignore[reportMissingTypeStubs]

from app.api import load

_ThreadWorker = cast(Any, ThreadWorker)


class DrainingWorker(_ThreadWorker):
    """The original stops taking connections but keeps the port open until the last answer is out. Whoever connects
    meanwhile waits in the kernel's queue, and is thrown out at the end. This one takes everybody who is in the queue
    along, then closes the port, so that a client hears at once that it must go elsewhere.
    """

    alive: bool
    nr_conns: int
    sockets: list[Any]

    def enqueue_req(self, conn: Any) -> None:
        conn.queued_at = time.monotonic()
        super().enqueue_req(conn)  # pyright: ignore[reportUnknownMemberType]

    def handle(self, conn: Any) -> Any:
        load.waited_s.set(time.monotonic() - conn.queued_at)
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
