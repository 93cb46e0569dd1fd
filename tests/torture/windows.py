"""Times in which something was broken."""

from collections.abc import Sequence
from dataclasses import dataclass

AFTERMATH_S = 4.0
"""What was broken may be felt for so long after it was mended."""


@dataclass(frozen=True)
class Window:
    """By the wall clock, which is also PostgreSQL's."""

    kind: str
    began: float
    ended: float


def broken_s(windows: Sequence[Window], since: float, until: float) -> float:
    """For how long of this time anything was broken, or had just been mended."""
    spans = sorted((max(one.began, since), min(one.ended + AFTERMATH_S, until)) for one in windows)
    total, reached = 0.0, since
    for began, ended in spans:
        if ended > max(began, reached):
            total += ended - max(began, reached)
            reached = ended
    return total
