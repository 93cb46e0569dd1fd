"""Load shedding: how long a request may take, and which requests are refused.

Requests beyond the number of threads wait in a queue. It is useless to answer a request that has waited long: its
sender has given up or retried, and the requests behind it wait longer. So it is refused at once, which costs almost
nothing, and the other requests are answered in time.
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
    """This process is about to stop and accepts no new request; another process answers the next try."""

    code = "draining"
    retry_after_s = 1


draining: ContextVar[bool] = ContextVar("draining", default=False)
"""True if the process was asked to stop before this request arrived."""


def refuse_while_draining() -> None:
    if draining.get():
        raise Draining("This process is stopping.")


def leave(_error: BaseException | None = None) -> None:
    """Clears the deadline, because the thread will serve other requests."""
    answer_by.set(None)


def admit(queue_limit_s: float | None, request_timeout_s: float) -> None:
    """Sets the deadline of this request, or refuses the request. Its time in the queue counts, except for routes
    without a queue limit: those are always answered."""
    waited = waited_s.get() if queue_limit_s is not None else 0.0
    # On a kept-alive connection only the first request has waited for a thread.
    waited_s.set(0.0)
    answer_by.set(time.monotonic() + request_timeout_s - waited)
    if queue_limit_s is not None and waited > queue_limit_s:
        raise Overloaded("Too many requests at this moment.")
