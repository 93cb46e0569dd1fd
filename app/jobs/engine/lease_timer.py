"""A timer of the kernel that kills this process.

Not `signal.setitimer`: each process has one such timer, and a script, or a library with a time limit of its own, sets
it for itself. Nobody else knows the number of this one.
"""

import ctypes
import signal
import time

_TIMER_ABSTIME = 1
_SIGEV_SIGNAL = 0
_libc = ctypes.CDLL(None, use_errno=True)


class _SigEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 56),
    )


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("first", _TimeSpec))


class LeaseTimer:
    def __init__(self) -> None:
        self._id = ctypes.c_void_p()
        event = _SigEvent(None, signal.SIGKILL, _SIGEV_SIGNAL)
        _check(_libc.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._id)))

    def kill_at(self, until: float) -> None:
        """A time by the monotonic clock; at once if it is over."""
        seconds, fraction = divmod(max(until, 0.000_001), 1)
        spec = _TimerSpec(_TimeSpec(0, 0), _TimeSpec(int(seconds), int(fraction * 1e9)))
        _check(_libc.timer_settime(self._id, _TIMER_ABSTIME, ctypes.byref(spec), None))


def _check(returned: int) -> None:
    if returned != 0:
        raise OSError(ctypes.get_errno(), "no timer of the kernel")
