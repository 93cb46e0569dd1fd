"""Gives each thread of a worker a standard output of its own."""

import io
import os
import threading
from collections.abc import Callable

Write = Callable[[bytes], None]

_current = threading.local()


def _to_the_worker(written: bytes) -> None:
    """For threads that a script started itself: the engine reads this descriptor."""
    while written:
        written = written[os.write(1, written) :]


class _Bytes(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, written: bytes, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        content = bytes(written)
        getattr(_current, "write", _to_the_worker)(content)
        return len(content)


def thread_output() -> io.TextIOWrapper:
    """For `sys.stdout` and `sys.stderr`: what a thread prints goes to the task that it runs."""
    return io.TextIOWrapper(_Bytes(), "utf-8", "backslashreplace", write_through=True)  # pyright: ignore[reportArgumentType]


def print_to(write: Write) -> None:
    """From now on this thread prints there."""
    _current.write = write
