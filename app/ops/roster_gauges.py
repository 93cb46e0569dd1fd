"""Metrics of the lists, read from PostgreSQL when Prometheus asks: runs work in processes that nobody scrapes."""

from collections.abc import Iterable, Sequence

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.db.database import Database
from app.foundation.errors import Unavailable
from app.roster import service as roster
from app.roster.contract import KindLoad

log = structlog.get_logger(__name__)


class RosterGauges(Collector):
    def __init__(self, db: Database) -> None:
        self._db = db

    def describe(self) -> Iterable[Metric]:
        return self._metrics([])

    def collect(self) -> Iterable[Metric]:
        """No metrics while PostgreSQL does not answer, as in `OverdueGauges`."""
        try:
            with self._db.reading() as conn:
                return self._metrics(roster.read_load(conn))
        except Unavailable as error:
            log.warning("lists_not_counted", code=error.code)
            return []

    def _metrics(self, kinds: Sequence[KindLoad]) -> list[Metric]:
        rows = GaugeMetricFamily("yaninda_roster_rows", "People on a list.", labels=["kind"])
        age = GaugeMetricFamily("yaninda_roster_last_run_age_seconds", "Since the last run of a list.", labels=["kind"])
        left = GaugeMetricFamily(
            "yaninda_roster_people_left", "People who do not follow their list yet.", labels=["kind"]
        )
        skipped = CounterMetricFamily(
            "yaninda_roster_sync_removal_skipped", "Runs that held removals back.", labels=["kind"]
        )
        for one in kinds:
            rows.add_metric([one.kind], one.rows)
            age.add_metric([one.kind], one.last_run_age_s)
            left.add_metric([one.kind], one.people_left)
            skipped.add_metric([one.kind], one.removals_skipped)
        return [rows, age, left, skipped]
