"""The size of repeated and random tests: a part in the suite, all with `scripts/test --deep`."""

import os
from collections.abc import Iterable

DEEP = os.environ.get("TEST_DEPTH") == "deep"


def size(suite: int, deep: int) -> int:
    """The size of a test as a number, such as of examples or kills."""
    return deep if DEEP else suite


def passages(most: int) -> Iterable[int]:
    """At which passages of a failpoint a test interrupts an operation. Most are passed fewer than five times, so the
    suite leaves out only three of four later statements of long operations."""
    return range(1, most) if DEEP else (*range(1, 5), *range(8, most, 4))
