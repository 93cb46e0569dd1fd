"""What a process has to do with the one that started it."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals) -> None:
    """The kernel sends the signal when the parent has ended, however it ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
