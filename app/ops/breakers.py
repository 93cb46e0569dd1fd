"""Which providers are left alone at the moment, for Prometheus: read from Redis when it is shown."""

from collections.abc import Iterable

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.errors import Unavailable
from app.redis_store.breakers import Breakers, BreakerState

log = structlog.get_logger(__name__)

LEVELS = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


class BreakerLevels(Collector):
    def __init__(self, breakers: Breakers) -> None:
        self._breakers = breakers

    def describe(self) -> Iterable[Metric]:
        return [_family()]

    def collect(self) -> Iterable[Metric]:
        """Nothing where Redis does not answer: nothing is held back then."""
        try:
            states = self._breakers.states()
        except Unavailable as error:
            log.warning("breakers_not_read", code=error.code)
            return []
        family = _family()
        for name, state in sorted(states.items()):
            family.add_metric([name], LEVELS[state])
        return [family]


def _family() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "yaninda_breaker", "0 closed, 1 half-open, 2 open: the provider is left alone.", labels=["provider"]
    )
