"""Calls a function at a constant rate, and measures how well the rate was kept."""

import threading
import time
from collections.abc import Callable

THREADS = 4
"""So that one slow commit does not delay the next notification."""


def call_at_rate(per_second: int, lasting_s: float, act: Callable[[int], None]) -> float:
    """Calls `act` with 0, 1, 2, … Returns the longest delay of a call behind its planned time, in seconds."""
    number = int(per_second * lasting_s)
    began = time.monotonic() + 0.05
    late: list[float] = []
    failed: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for one in range(first, number, THREADS):
                left_s = began + one / per_second - time.monotonic()
                if left_s > 0:
                    time.sleep(left_s)
                late.append(time.monotonic() - began - one / per_second)
                act(one)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return max(late)
