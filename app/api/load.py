"""What a request may cost, and what is turned away.

More requests than the threads can answer wait in a queue. Answering one that has waited long helps nobody: its sender
has given up or asks again, and everybody behind waits longer. So it is turned away at once, which costs next to
nothing, and the others are answered in time.
"""

import time
from contextvars import ContextVar

from app.db.watchdog import answer_by
from app.foundation.errors import Unavailable

waited_s: ContextVar[float] = ContextVar("waited_s", default=0.0)


class Overloaded(Unavailable):
    """More requests are coming in than can be answered; try again in a moment."""

    code = "overloaded"
    retry_after_s = 1


class Draining(Unavailable):
    """This process is about to stop and takes nothing new; another one answers the next try."""

    code = "draining"
    retry_after_s = 1


draining: ContextVar[bool] = ContextVar("draining", default=False)
"""Whether the process had been told to stop when this request came."""


def refuse_while_draining() -> None:
    if draining.get():
        raise Draining("This process is stopping.")


def leave(_error: BaseException | None = None) -> None:
    """The time of a request ends with it; the thread may do other work."""
    answer_by.set(None)


def admit(queue_limit_s: float | None, request_timeout_s: float) -> None:
    """Starts the clock of this request, or turns it away. Waiting is part of its time, except for those whom no limit
    turns away: they are to be answered, however long they waited."""
    waited = waited_s.get() if queue_limit_s is not None else 0.0
    # Of a kept connection only the first request has waited for a thread.
    waited_s.set(0.0)
    answer_by.set(time.monotonic() + request_timeout_s - waited)
    if queue_limit_s is not None and waited > queue_limit_s:
        raise Overloaded("Too many requests at this moment.")
