"""What a process tells the kernel about itself."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def end_with_parent(number: signal.Signals) -> None:
    """The kernel sends the signal when the parent has ended, however it ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def name_process(name: str) -> None:
    """As `ps -o comm` and `top` show it; the kernel keeps 15 letters."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())
