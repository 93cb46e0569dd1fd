"""Percentiles of waiting times, from the number of tasks by whole seconds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

PERCENTILES = (50, 90, 95, 99)

Seconds = Mapping[int, int]
"""The number of tasks by their waiting time in whole seconds."""


@dataclass(frozen=True)
class Waiting:
    tasks: int
    mean_s: float | None
    p50_s: int | None
    p90_s: int | None
    p95_s: int | None
    p99_s: int | None


def waiting(seconds: Seconds) -> Waiting:
    tasks = sum(seconds.values())
    if tasks == 0:
        return Waiting(0, None, None, None, None, None)
    mean_s = sum(second * count for second, count in seconds.items()) / tasks
    return Waiting(tasks, mean_s, *(_percentile(seconds, tasks, share) for share in PERCENTILES))


def _percentile(seconds: Seconds, tasks: int, percent: int) -> int:
    """The smallest time within which at least this share of the tasks was."""
    needed = math.ceil(tasks * percent / 100)
    reached = 0
    for second in sorted(seconds):
        reached += seconds[second]
        if reached >= needed:
            return second
    raise AssertionError("the shares add up to all tasks")
