"""A gauge of the open dead letters, read from PostgreSQL when Prometheus asks."""

from collections.abc import Iterable

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.db.database import Database
from app.delivery.service import count_open_dead_letters
from app.foundation.errors import Unavailable

log = structlog.get_logger(__name__)

MOST = 1_000_000
"""The count stops here, because an exact higher number is of no use and takes time."""


class DeadLetterGauges(Collector):
    def __init__(self, db: Database) -> None:
        self._db = db

    def describe(self) -> Iterable[Metric]:
        return [self._metric(0)]

    def collect(self) -> Iterable[Metric]:
        """No metric while PostgreSQL does not answer, as in `OverdueGauges`."""
        try:
            with self._db.reading() as conn:
                return [self._metric(count_open_dead_letters(conn, MOST))]
        except Unavailable as error:
            log.warning("dead_letters_not_counted", code=error.code)
            return []

    def _metric(self, number: int) -> Metric:
        return GaugeMetricFamily("yaninda_dead_letters_open", "Open dead letters.", number)
