"""What is due and not handled yet, for Prometheus: read from PostgreSQL at the moment it is shown.

A matcher that is stuck, or gone, cannot count what it leaves undone; and several of them each know their own part. So
every process that shows metrics shows the whole, and it is true whoever is asked.
"""

from collections.abc import Iterable

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.db.database import Database
from app.foundation.errors import Unavailable
from app.matching.lateness import overdue

log = structlog.get_logger(__name__)


class OverdueGauges(Collector):
    def __init__(self, db: Database) -> None:
        self._db = db

    def describe(self) -> Iterable[Metric]:
        return self._metrics(0, 0.0)

    def collect(self) -> Iterable[Metric]:
        """Nothing where PostgreSQL does not answer: a gauge that is missing says so, and the others are shown."""
        try:
            with self._db.reading() as conn:
                found = overdue(conn)
        except Unavailable as error:
            log.warning("backlog_not_read", code=error.code)
            return []
        return self._metrics(found.tasks, found.longest_s)

    def _metrics(self, tasks: int, longest_s: float) -> list[Metric]:
        backlog = "Tasks whose step is due and that no matcher has handled yet."
        longest = "How long the longest overdue of them has been due."
        return [
            GaugeMetricFamily("yaninda_due_backlog", backlog, tasks),
            GaugeMetricFamily("yaninda_due_longest_seconds", longest, longest_s),
        ]
