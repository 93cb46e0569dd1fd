"""SIGTERM and Ctrl-C ask a process to finish its work and exit."""

import signal
import threading
from types import FrameType


def stop_on_signals() -> threading.Event:
    """Set when the process is asked to stop."""
    stop = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    return stop
