"""Gunicorn's thread worker, which leaves nobody standing in the queue when it stops."""

from typing import Any, cast

from gunicorn.workers.gthread import ThreadWorker  # pyright: ignore[reportMissingTypeStubs]

_ThreadWorker = cast(Any, ThreadWorker)


class DrainingWorker(_ThreadWorker):
    """The original stops taking connections but keeps the port open until the last answer is out. Whoever connects
    meanwhile waits in the kernel's queue, and is thrown out at the end. This one takes everybody who is in the queue
    along, then closes the port, so that a client hears at once that it must go elsewhere.
    """

    alive: bool
    nr_conns: int
    sockets: list[Any]

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
