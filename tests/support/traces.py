"""Records which functions of `app` run, in order, in this thread and in threads that start meanwhile."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

APP = f"{Path(__file__).resolve().parents[2] / 'app'}/"

Call = tuple[str, str]
"""A file below `app/`, and the name of a function in it."""


@contextmanager
def traced() -> Iterator[list[Call]]:
    calls: list[Call] = []

    def note(frame: FrameType, happened: str, _argument: object) -> None:
        code = frame.f_code
        if happened == "call" and code.co_filename.startswith(APP):
            calls.append((code.co_filename.removeprefix(APP), code.co_name))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
