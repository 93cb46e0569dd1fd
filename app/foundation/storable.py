"""Checks that PostgreSQL can store a value: text without NUL and without half a surrogate pair, and JSON of such text.

A value that PostgreSQL refuses makes the whole transaction fail, so values from outside are checked first.
"""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, cast


class Flaw(StrEnum):
    NUL = "NUL"
    SURROGATE = "SURROGATE"
    NUMBER = "NUMBER"
    """Infinite, not a number, or larger than the caller allows."""
    DEPTH = "DEPTH"


def flaw_of_text(text: str) -> Flaw | None:
    if "\0" in text:
        return Flaw.NUL
    try:
        text.encode()
    except UnicodeEncodeError:
        return Flaw.SURROGATE
    return None


def made_storable(text: str) -> str:
    """Removes NUL, and replaces half a surrogate pair by a question mark."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def flaw_of_json(value: Any, *, deepest: int, largest: int | None = None) -> Flaw | None:
    """The first flaw of a JSON value; `deepest` is how many objects and arrays may be nested in each other."""
    match value:
        case None | bool():
            return None
        case str():
            return flaw_of_text(value)
        case int() | float():
            return None if _is_within(value, largest) else Flaw.NUMBER
        case dict() | list() if deepest == 0:
            return Flaw.DEPTH
        case dict():
            members = cast("dict[str, Any]", value)
            return _first_flaw((*members, *members.values()), deepest - 1, largest)
        case list():
            return _first_flaw(cast("list[Any]", value), deepest - 1, largest)
        case _:
            return None


def _is_within(number: float, largest: int | None) -> bool:
    if isinstance(number, float) and not math.isfinite(number):
        return False
    return largest is None or abs(number) <= largest


def _first_flaw(values: Iterable[Any], deepest: int, largest: int | None) -> Flaw | None:
    flaws = (flaw_of_json(value, deepest=deepest, largest=largest) for value in values)
    return next((flaw for flaw in flaws if flaw is not None), None)
