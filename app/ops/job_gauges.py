"""Gauges of the jobs that have not ended, read from PostgreSQL when Prometheus asks."""

from collections.abc import Iterable

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.db.database import Database
from app.foundation.errors import Unavailable
from app.jobs import service as jobs
from app.jobs.contract import QueueLoad

log = structlog.get_logger(__name__)


class JobGauges(Collector):
    def __init__(self, db: Database) -> None:
        self._db = db

    def describe(self) -> Iterable[Metric]:
        return self._metrics(QueueLoad(0, 0, 0.0))

    def collect(self) -> Iterable[Metric]:
        """No metrics while PostgreSQL does not answer, as in `OverdueGauges`."""
        try:
            with self._db.reading() as conn:
                return self._metrics(jobs.read_load(conn))
        except Unavailable as error:
            log.warning("jobs_not_counted", code=error.code)
            return []

    def _metrics(self, load: QueueLoad) -> list[Metric]:
        live = GaugeMetricFamily("yaninda_jobs_live", "Jobs that have not ended, by status.", labels=["status"])
        live.add_metric(["QUEUED"], load.queued)
        live.add_metric(["RUNNING"], load.running)
        about = "How long the oldest job has waited that no runner has claimed."
        return [live, GaugeMetricFamily("yaninda_jobs_oldest_queued_seconds", about, load.oldest_queued_s)]
