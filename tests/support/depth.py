"""How much of a repeated or random test is run: a part in the suite, all of it with `scripts/test --deep`."""

import os
from collections.abc import Iterable

DEEP = os.environ.get("TEST_DEPTH") == "deep"


def size(suite: int, deep: int) -> int:
    """Of a test whose size is a number: examples, steps, deaths."""
    return deep if DEEP else suite


def passages(most: int) -> Iterable[int]:
    """At which passages of a place a test cuts a step short. Most places are passed fewer than five times, so that the
    suite leaves out statements only, two of three, of steps that have many."""
    return range(1, most) if DEEP else (*range(1, 5), *range(7, most, 3))
