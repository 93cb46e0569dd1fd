"""Gauges of overdue deadlines, read from PostgreSQL when Prometheus asks.

A stuck matcher cannot count the tasks that it does not handle, and each of several matchers knows only its own tasks.
So every process with metrics shows the total from the database.
"""

from collections.abc import Iterable

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.foundation.errors import Unavailable
from app.matching.service import Matching

log = structlog.get_logger(__name__)


class OverdueGauges(Collector):
    def __init__(self, matching: Matching) -> None:
        self._matching = matching

    def describe(self) -> Iterable[Metric]:
        return self._metrics(0, 0.0)

    def collect(self) -> Iterable[Metric]:
        """No metrics while PostgreSQL does not answer: the missing gauge shows the failure, and all other metrics are
        still shown."""
        try:
            found = self._matching.overdue()
        except Unavailable as error:
            log.warning("backlog_not_read", code=error.code)
            return []
        return self._metrics(found.tasks, found.longest_s)

    def _metrics(self, tasks: int, longest_s: float) -> list[Metric]:
        backlog = "Tasks that are due and that no matcher has handled yet."
        longest = "How long the task that is overdue the longest has been due."
        return [
            GaugeMetricFamily("yaninda_due_backlog", backlog, tasks),
            GaugeMetricFamily("yaninda_due_longest_seconds", longest, longest_s),
        ]
