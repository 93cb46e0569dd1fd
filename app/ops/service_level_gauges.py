"""Gauges of delivery's service levels with their targets, read from PostgreSQL when Prometheus asks."""

from collections.abc import Iterable

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.db.database import Database
from app.delivery.contract import ServiceLevels
from app.delivery.service import measure_service_levels
from app.foundation.errors import Unavailable

log = structlog.get_logger(__name__)

NO_FAILURES = ServiceLevels(0.0, 1.0, 0.0, 0.0, 0.0)


class ServiceLevelGauges(Collector):
    def __init__(self, db: Database) -> None:
        self._db = db

    def describe(self) -> Iterable[Metric]:
        return _metrics(NO_FAILURES)

    def collect(self) -> Iterable[Metric]:
        """No metrics while PostgreSQL does not answer, as in `OverdueGauges`."""
        try:
            with self._db.reading() as conn:
                return _metrics(measure_service_levels(conn))
        except Unavailable as error:
            log.warning("objectives_not_measured", code=error.code)
            return []


def _metrics(found: ServiceLevels) -> list[Metric]:
    hour = "of the last hour's notifications"
    sent, given_up = f"Share sent {hour}; target above 0.99.", f"Share given up {hour}; target below 0.005."
    return [
        GaugeMetricFamily(
            "yaninda_slo_delivery_p95_seconds", f"Time from creation to sent, 95 % {hour}; target below 5.", found.p95_s
        ),
        GaugeMetricFamily("yaninda_slo_delivery_success_ratio", sent, found.success_rate),
        GaugeMetricFamily("yaninda_slo_dlq_ratio", given_up, found.dlq_rate),
        GaugeMetricFamily(
            "yaninda_slo_critical_exhausted_ratio",
            f"Share of the urgent ones {hour} whose retries ran out; target below 0.001.",
            found.critical_exhausted_rate,
        ),
        GaugeMetricFamily(
            "yaninda_slo_action_p95_seconds",
            "Time from an action's request until its last message is sent, 95 % of the last hour; target below 5.",
            found.action_p95_s,
        ),
    ]
