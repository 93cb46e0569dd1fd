"""Metrics of events."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.realtime.contract import EndReason


class EventMetrics:
    """A process that is forked counts from 0, in files of its own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self.open_streams = Gauge(
            "yaninda_event_streams", "Open streams of events.", registry=registry, multiprocess_mode="livesum"
        )
        self._written = Counter("yaninda_events_written", "Events, once for each stream they go to.", registry=registry)
        self._ended = Counter(
            "yaninda_event_streams_ended", "Streams that the service ended.", ("reason",), registry=registry
        )
        self._lateness = Histogram(
            "yaninda_event_lateness_seconds",
            "From the change, before its commit, until the event is in the queues of its streams.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )

    def count_written(self, written: int, late_s: Sequence[float]) -> None:
        self._written.inc(written)
        for seconds in late_s:
            self._lateness.observe(seconds)

    def count_end(self, reason: EndReason) -> None:
        self._ended.labels(reason.value).inc()
