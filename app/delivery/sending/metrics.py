"""The metrics of a dispatcher. If several processes share a directory for metrics, a gauge is the sum over them."""

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.delivery.messages.outcomes import Recorded, Report
from app.delivery.messages.values import Device, NotificationStatus, NotificationType, Outcome, Priority

S = NotificationStatus
CRITICAL = frozenset({Priority.URGENT})
_LATENCY_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)
_HANDLER_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class DeliveryMetrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._claimed = self._counter("claimed", "Claims, one for each attempt.", "type")
        self._consumed = self._counter("consumed", "Notifications whose attempt was recorded.", "type")
        self._sent = self._counter("sent", "Notifications sent.", "type")
        self._retried = self._counter("retried", "Attempts that failed and are repeated later.", "type", "error_code")
        self._dead = self._counter("dead", "Notifications given up.", "type", "error_code")
        self._critical_dead = self._counter("critical_dead", "Urgent notifications given up.", "type")
        self._expired = self._counter("expired", "Notifications that expired before they were sent.", "type")
        self._refused = self._counter("refused", "Reports of workers that had lost their lease.")
        self._redriven = self._counter(
            "redriven",
            "Recorded attempts of redriven notifications, which all series by type leave out.",
            "type",
            "status",
        )
        self._tries = self._counter("tries", "Messages handed to a channel, by what came of it.", "handler", "outcome")
        self._latency = Histogram(
            "yaninda_delivery_latency_seconds",
            "Time from the creation of a notification until it is recorded as sent.",
            ["type"],
            buckets=_LATENCY_S,
            registry=self.registry,
        )
        self._try_s = Histogram(
            "yaninda_delivery_try_seconds",
            "Time from the moment when a channel got a message until its answer.",
            ["handler"],
            buckets=_HANDLER_S,
            registry=self.registry,
        )
        self._depth = self._gauge("queue_depth", "Notifications in the queue in memory.")
        self._free = self._gauge("queue_free", "Room left in the queue in memory.")
        self._used = self._gauge("queue_used_ratio", "Share of the queue in memory that is in use.")

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"yaninda_delivery_{name}", about, labels, registry=self.registry)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(f"yaninda_delivery_{name}", about, ["type"], registry=self.registry, multiprocess_mode="livesum")

    def count_claimed(self, type_: NotificationType, number: int) -> None:
        self._claimed.labels(type_).inc(number)

    def set_depth(self, type_: NotificationType, depth: int, capacity: int) -> None:
        self._depth.labels(type_).set(depth)
        self._free.labels(type_).set(capacity - depth)
        self._used.labels(type_).set(depth / capacity)

    def observe_tries(self, handler: Callable[[Device | None], str], reports: Sequence[Report]) -> None:
        outcomes = Counts[tuple[str, Outcome]]()
        for report in reports:
            for try_ in report.tries:
                name = handler(try_.device)
                self._try_s.labels(name).observe(try_.took_s)
                outcomes[name, try_.result.outcome] += 1
        for (name, outcome), number in outcomes.items():
            self._tries.labels(name, outcome).inc(number)

    def count_failed_batch(self, handler: str) -> None:
        self._tries.labels(handler, "EXCEPTION").inc()

    def count_recorded(self, recorded: Iterable[Recorded]) -> None:
        for item in recorded:
            type_, code = item.notification_type, item.error_code or "NONE"
            if item.is_redriven:
                self._redriven.labels(type_, item.status).inc()
                continue
            self._consumed.labels(type_).inc()
            if item.status is S.SENT:
                self._sent.labels(type_).inc()
                self._latency.labels(type_).observe(item.latency_s)
            elif item.status is S.DEAD:
                self._dead.labels(type_, code).inc()
                if item.priority in CRITICAL:
                    self._critical_dead.labels(type_).inc()
            elif item.status is S.RETRYING:
                self._retried.labels(type_, code).inc()
            elif item.status is S.EXPIRED:
                self.count_expired(type_, 1)

    def count_expired(self, type_: NotificationType, number: int) -> None:
        self._expired.labels(type_).inc(number)

    def count_refused(self, number: int) -> None:
        self._refused.inc(number)
