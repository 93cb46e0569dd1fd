"""Load shedding: how long a request may take, and which requests are refused.

Requests beyond the number of threads wait in a queue. It is useless to answer a request that has waited long: its
sender has given up or retried, and the requests behind it wait longer. So it is refused at once, which costs almost
nothing, and the other requests are answered in time.
"""

import time
from contextvars import ContextVar
from dataclasses import dataclass

from app.db.watchdog import answer_by
from app.foundation.errors import Unavailable


class Overloaded(Unavailable):
    """More requests are coming in than can be answered; try again in a moment."""

    code = "overloaded"
    retry_after_s = 1


class Draining(Unavailable):
    """This process is about to stop and accepts no new request; another process answers the next try."""

    code = "draining"
    retry_after_s = 1


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a request came to its thread."""

    began: float
    """When its first byte came, by the monotonic clock."""
    waited_s: float
    """How long it waited for the thread, once it was complete."""
    draining: bool
    """True if the process was asked to stop before the request was complete."""


arrival: ContextVar[Arrival | None] = ContextVar("arrival", default=None)
"""Of the request that this thread works on; None where there is no server."""


def refuse_while_draining() -> None:
    came = arrival.get()
    if came is not None and came.draining:
        raise Draining("This process is stopping.")


def leave(_error: BaseException | None = None) -> None:
    """Clears the deadline, because the thread will serve other requests."""
    answer_by.set(None)


def admit(queue_limit_s: float | None, request_timeout_s: float) -> None:
    """Sets the deadline of this request, or refuses the request. Routes without a queue limit are always answered, and
    their time begins here."""
    came = arrival.get()
    if came is None or queue_limit_s is None:
        answer_by.set(time.monotonic() + request_timeout_s)
        return
    answer_by.set(came.began + request_timeout_s)
    if came.waited_s > queue_limit_s:
        raise Overloaded("Too many requests at this moment.")
