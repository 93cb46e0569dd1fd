"""Gauges of the circuit breakers, read from Redis when Prometheus asks."""

from collections import Counter
from collections.abc import Iterable

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.foundation.errors import Unavailable
from app.redis_store.breakers import Breakers, BreakerState

log = structlog.get_logger(__name__)

LEVELS = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


class BreakerGauges(Collector):
    def __init__(self, breakers: Breakers) -> None:
        self._breakers = breakers

    def describe(self) -> Iterable[Metric]:
        return [_providers(), _receivers()]

    def collect(self) -> Iterable[Metric]:
        """No metrics while Redis does not answer: then the breakers allow every call."""
        try:
            states = self._breakers.states()
        except Unavailable as error:
            log.warning("breakers_not_read", code=error.code)
            return []
        providers, receivers = _providers(), _receivers()
        for name, state in sorted(states.items()):
            if not is_receiver(name):
                providers.add_metric([name], LEVELS[state])
        counts = Counter(state for name, state in states.items() if is_receiver(name))
        for state in BreakerState:
            receivers.add_metric([state.value], counts[state])
        return [providers, receivers]


def is_receiver(name: str) -> bool:
    """True for the host and port of a webhook. There may be any number of them, and their names are private, so they
    are only counted."""
    return ":" in name


def _providers() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "yaninda_breaker", "0 closed, 1 half-open, 2 open: the provider is not called.", labels=["provider"]
    )


def _receivers() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "yaninda_webhook_breakers", "Receivers of webhooks in the last hour, by breaker state.", labels=["state"]
    )
