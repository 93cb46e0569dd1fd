"""Metrics of the role `jobs`. If several processes share a directory for metrics, a gauge is the sum over them."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from app.jobs.engine.engine import EngineHealth, EngineMetrics, EngineStatus
from app.jobs.states import JobStatus

_COUNTED = {
    "input_put": "Tasks put into the engine's input queue.",
    "input_dropped": "Tasks refused because the input queue was full.",
    "output_put": "Results that workers have put into the output queue.",
    "output_got": "Results that were taken from the output queue.",
    "retried": "Tries of tasks that failed and were repeated.",
    "workers_started": "Worker processes started.",
    "workers_killed": "Worker processes killed.",
}
_SHOWN = {"active_threads": "Threads of workers that run a task.", "pending": "Tasks that have no result yet."}


class JobMetrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._counters = {name: self._counter(name, about) for name, about in _COUNTED.items()}
        self._gauges = {name: self._gauge(name, about) for name, about in _SHOWN.items()}
        self._health = self._gauge("engine", "Engines by health.", "health")
        self._component = self._gauge("component", "1 for each component of the engine.", "component")
        self._ended = self._counter("ended", "Jobs that ended.", "status")
        self._claimed = self._counter("claimed", "Jobs claimed.")
        self._lost = self._counter("leases_lost", "Jobs whose lease passed to another runner.")
        self._seen: dict[str, int] = dict.fromkeys(_COUNTED, 0)
        self._components: set[str] = set()

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"yaninda_jobs_{name}", about, labels, registry=self.registry)

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"yaninda_jobs_{name}", about, labels, registry=self.registry, multiprocess_mode="livesum")

    def count_ended(self, status: JobStatus) -> None:
        self._ended.labels(status).inc()

    def count_claimed(self, number: int) -> None:
        self._claimed.inc(number)

    def count_lost_lease(self, number: int = 1) -> None:
        self._lost.inc(number)

    def show_engine(self, metrics: EngineMetrics, status: EngineStatus) -> None:
        """The engine counts since its start, so the counters grow by the difference."""
        for name, counter in self._counters.items():
            value: int = getattr(metrics, name)
            counter.inc(max(value - self._seen[name], 0))
            self._seen[name] = value
        for name, gauge in self._gauges.items():
            gauge.set(getattr(metrics, name))
        for health in EngineHealth:
            self._health.labels(health).set(health is status.health)
        for name in self._components - status.components.keys():
            self._component.labels(name).set(0)
        for name in status.components:
            self._component.labels(name).set(1)
        self._components = set(status.components)
