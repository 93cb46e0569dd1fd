"""Samples, their percentiles, and how they are printed."""

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Spread:
    """In ms, unless the section names another unit. A result that never came is infinite."""

    p50: float
    p99: float
    most: float
    samples: int
    low: float
    high: float
    """The true median is between these in 19 of 20 cases, judged by the samples, and by the rounds if there are."""

    def shown(self) -> str:
        return f"{number(self.p50)} / {number(self.p99)}"


def spread(samples: Sequence[float]) -> Spread:
    ordered = sorted(samples)
    # The number of samples below the median is binomial; this is 1.96 of its standard deviations.
    off = 0.98 / math.sqrt(len(ordered))
    low, high = percentile(ordered, 0.5 - off), percentile(ordered, 0.5 + off)
    return Spread(percentile(ordered, 0.5), percentile(ordered, 0.99), ordered[-1], len(ordered), low, high)


def spread_of_rounds(rounds: Sequence[Sequence[float]]) -> Spread:
    """Of all samples. The medians of single rounds widen `low` and `high`, because rounds differ by more than their
    samples tell: noise lasts for longer than a sample."""
    whole, medians = spread([one for samples in rounds for one in samples]), [spread(samples).p50 for samples in rounds]
    return replace(whole, low=min(whole.low, *medians), high=max(whole.high, *medians))


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(max(math.ceil(len(ordered) * share) - 1, 0), len(ordered) - 1)]


def number(value: float) -> str:
    if math.isinf(value):
        return "never"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def in_turns(
    implementations: Mapping[str, Callable[[Item], Any]], items: Sequence[Item], passes: int
) -> dict[str, list[float]]:
    """Every implementation does an item before any does the next, so that all meet the same noise. The order is
    reversed with each pass, so that none always runs after the one that evicts the caches."""
    samples: dict[str, list[float]] = {name: [] for name in implementations}
    for item in items:
        for act in implementations.values():
            act(item)
    gc.disable()
    collected = time.monotonic()
    try:
        for turn in range(passes):
            order = list(implementations.items())[:: -1 if turn % 2 else 1]
            for item in items:
                for name, act in order:
                    began = time.perf_counter()
                    act(item)
                    samples[name].append((time.perf_counter() - began) * 1e3)
            if time.monotonic() - collected > 1:
                gc.collect()
                collected = time.monotonic()
    finally:
        gc.enable()
    return samples
