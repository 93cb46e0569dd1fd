"""Gauges of the open dead letters and of the notifications that wait, read from PostgreSQL when Prometheus asks."""

from collections.abc import Iterable, Mapping

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.db.database import Database
from app.delivery.service import count_live_notifications, count_open_dead_letters
from app.foundation.errors import Unavailable

log = structlog.get_logger(__name__)

MOST = 1_000_000
"""The count stops here, because an exact higher number is of no use and takes time."""


class DeliveryGauges(Collector):
    def __init__(self, db: Database) -> None:
        self._db = db

    def describe(self) -> Iterable[Metric]:
        return [_open_letters(0), _backlog({})]

    def collect(self) -> Iterable[Metric]:
        """No metric while PostgreSQL does not answer, as in `OverdueGauges`."""
        try:
            with self._db.reading() as conn:
                return [_open_letters(count_open_dead_letters(conn, MOST)), _backlog(count_live_notifications(conn))]
        except Unavailable as error:
            log.warning("delivery_not_counted", code=error.code)
            return []


def _open_letters(number: int) -> Metric:
    return GaugeMetricFamily("yaninda_dead_letters_open", "Open dead letters.", number)


def _backlog(live: Mapping[str, int]) -> Metric:
    metric = GaugeMetricFamily("yaninda_delivery_backlog", "Notifications that are not ended.", labels=["type"])
    for type_, number in live.items():
        metric.add_metric([type_], number)
    return metric
