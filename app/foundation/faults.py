"""What the log says of an unexpected error: its classes and the stack. A driver's message quotes values, which may be
names and phone numbers, so it stays out."""

import traceback
from types import TracebackType
from typing import Any


def fault(error: BaseException) -> dict[str, Any]:
    return {"kinds": _kinds(error), "sqlstate": _sqlstate(error), "frames": _frames(error.__traceback__)}


def _kinds(error: BaseException | None) -> list[str]:
    kinds: list[str] = []
    while error is not None and len(kinds) < 5:
        kinds.append(f"{type(error).__module__}.{type(error).__qualname__}")
        error = error.__cause__ or error.__context__
    return kinds


def _sqlstate(error: BaseException) -> str | None:
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    return state if isinstance(state, str) else None


def _frames(trace: TracebackType | None) -> list[str]:
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)[-8:]]
