"""A loop that runs until `stop` is set, with a pause that doubles while a store does not answer."""

import threading
from collections.abc import Callable

import structlog

from app.foundation.errors import Unavailable
from app.foundation.logs import describe_error

log = structlog.get_logger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0


class DoublingPause:
    """How long to wait after a failure: twice as long after each one, up to a limit."""

    def __init__(self, first_s: float = FIRST_PAUSE_S, longest_s: float = LONGEST_PAUSE_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def next_s(self) -> float:
        pause_s = self._next_s
        self._next_s = min(pause_s * 2, self._longest_s)
        return pause_s

    def reset(self) -> None:
        self._next_s = self._first_s


class Bell:
    """Wakes one waiting thread. If no thread waits, the next wait ends at once."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, timeout_s: float) -> None:
        self._rung.wait(timeout_s)
        self._rung.clear()


def run_loop(
    name: str,
    turn: Callable[[], float],
    stop: threading.Event,
    *,
    sleep: Callable[[float], object] | None = None,
    first_pause_s: float = FIRST_PAUSE_S,
    longest_pause_s: float = LONGEST_PAUSE_S,
) -> None:
    """Calls `turn`, which returns how many seconds to sleep before the next call, until `stop` is set.

    `sleep` may return early, as `Bell.wait` does; the code that sets `stop` has to ring the bell. No error ends the
    loop: after `Unavailable` it pauses twice as long as the time before, after any other error for `longest_pause_s`.
    """
    pause = DoublingPause(first_pause_s, longest_pause_s)
    while not stop.is_set():
        try:
            sleep_s = turn()
        except Unavailable as error:
            pause_s = pause.next_s()
            log.warning("loop_waits", loop=name, code=error.code, pause_s=pause_s)
            stop.wait(pause_s)
        except Exception as error:
            log.error("loop_failed", loop=name, **describe_error(error))
            stop.wait(longest_pause_s)
        else:
            pause.reset()
            if sleep_s > 0:
                (sleep or stop.wait)(sleep_s)
