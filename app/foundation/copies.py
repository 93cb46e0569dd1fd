"""Copies of values that differ in some fields."""

from typing import Any, TypeVar

Value = TypeVar("Value")


def changed(value: Value, **changes: Any) -> Value:
    """What `dataclasses.replace` returns, for a dataclass that neither checks nor computes anything when it is made, in
    a fifth of the time: `replace` passes every field to the constructor. Each offer makes five copies."""
    copy = object.__new__(type(value))
    copy.__dict__.update(value.__dict__, **changes)
    return copy
