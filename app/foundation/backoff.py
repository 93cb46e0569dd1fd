"""The pauses between tries of the same work, the same for messages and jobs."""

from collections.abc import Callable

Rng = Callable[[], float]
"""Returns a number from 0 to 1, like `random.random`."""

BACKOFF_S = (1.0, 5.0, 15.0)


def backoff_pause_s(pauses_s: tuple[float, ...], attempt: int, rng: Rng) -> float:
    """The pause after the failed try number `attempt`; the last pause is repeated. Up to half of it is added by chance,
    so that what failed together is not tried again together."""
    return pauses_s[min(attempt, len(pauses_s)) - 1] * (1.0 + rng() / 2.0)
