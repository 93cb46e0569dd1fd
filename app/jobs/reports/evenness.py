"""How evenly load is shared, from the number of students by load. Loads are counts, so few values occur, and the memory
does not grow with the number of students."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

Loads = Mapping[int, int]
"""The number of students by their load."""


@dataclass(frozen=True)
class Evenness:
    students: int
    total: int
    gini: float | None
    """0 if all have the same load, near 1 if one student has everything. None if there is no load."""
    jain: float | None
    """1 if all have the same load, 1/n if one student of n has everything. None if there is no load."""


def evenness(loads: Loads) -> Evenness:
    students = sum(loads.values())
    total = sum(load * count for load, count in loads.items())
    if total == 0:
        return Evenness(students, 0, None, None)
    return Evenness(students, total, _gini(loads, students, total), _jain(loads, students, total))


def _gini(loads: Loads, students: int, total: int) -> float:
    """1 - sum over students in order of load of (2 * (students after them) + 1) * load / (n * total), in whole
    numbers until the last division, so that equal loads give exactly 0."""
    weighted, before = 0, 0
    for load in sorted(loads):
        count = loads[load]
        # The sum of (2 * rank - 1) over the ranks before + 1 to before + count.
        weighted += load * ((before + count) ** 2 - before**2)
        before += count
    return (weighted - students * total) / (students * total)


def _jain(loads: Loads, students: int, total: int) -> float:
    squares = sum(load * load * count for load, count in loads.items())
    return total * total / (students * squares)


def lorenz(loads: Loads) -> list[tuple[float, float]]:
    """Points of the curve: the share of students, those with the least load first, and their share of the load."""
    students = sum(loads.values())
    total = sum(load * count for load, count in loads.items())
    if total == 0:
        return []
    ordered = sorted(loads)
    so_far = accumulate(loads[load] for load in ordered)
    carried = accumulate(load * loads[load] for load in ordered)
    return [(0.0, 0.0), *((n / students, sum_ / total) for n, sum_ in zip(so_far, carried, strict=True))]
