"""Periods in which a fault lasted."""

from collections.abc import Sequence
from dataclasses import dataclass

AFTERMATH_S = 4.0
"""The effects of a fault may last this long after its end."""


@dataclass(frozen=True)
class Window:
    """In wall-clock time, which PostgreSQL uses, too."""

    kind: str
    began: float
    ended: float


def broken_s(windows: Sequence[Window], since: float, until: float) -> float:
    """How much of this period lies within faults and their aftermath."""
    spans = sorted((max(one.began, since), min(one.ended + AFTERMATH_S, until)) for one in windows)
    total, reached = 0.0, since
    for began, ended in spans:
        if ended > max(began, reached):
            total += ended - max(began, reached)
            reached = ended
    return total
