"""The metrics of a dispatcher. If several processes share a directory for metrics, a gauge is the sum over them."""

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Sequence
from functools import cache

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
        self._refused = Counter(
            "yaninda_delivery_refused", "Reports of workers that had lost their lease.", registry=self.registry
        )
        self._redriven = self._counter(
            "redriven",
            "Recorded attempts of redriven notifications, which all series by type leave out.",
            "type",
            "status",
        )
        self._tries = self._counter("tries", "Messages handed to a channel, by what came of it.", "handler", "outcome")
        self._latency = self._histogram(
            "latency", "Time from the creation of a notification until it is recorded as sent.", "type", _LATENCY_S
        )
        self._try_s = self._histogram(
            "try", "Time from the moment when a channel got a message until its answer.", "handler", _HANDLER_S
        )
        self._depth = self._gauge("queue_depth", "Notifications in the queue in memory.")
        self._free = self._gauge("queue_free", "Room left in the queue in memory.")
        self._used = self._gauge("queue_used_ratio", "Share of the queue in memory that is in use.")

    # Each returns a function of the labels. It is cached, because finding a metric by its labels takes longer than
    # counting.

    def _counter(self, name: str, about: str, *labels: str) -> Callable[..., Counter]:
        return cache(Counter(f"yaninda_delivery_{name}", about, labels, registry=self.registry).labels)

    def _gauge(self, name: str, about: str) -> Callable[..., Gauge]:
        name = f"yaninda_delivery_{name}"
        return cache(Gauge(name, about, ["type"], registry=self.registry, multiprocess_mode="livesum").labels)

    def _histogram(self, name: str, about: str, label: str, buckets: Sequence[float]) -> Callable[..., Histogram]:
        name = f"yaninda_delivery_{name}_seconds"
        return cache(Histogram(name, about, [label], buckets=buckets, registry=self.registry).labels)

    def count_claimed(self, type_: NotificationType, number: int) -> None:
        self._claimed(type_).inc(number)

    def set_depth(self, type_: NotificationType, depth: int, capacity: int) -> None:
        self._depth(type_).set(depth)
        self._free(type_).set(capacity - depth)
        self._used(type_).set(depth / capacity)

    def observe_tries(self, handler: Callable[[Device | None], str], reports: Sequence[Report]) -> None:
        outcomes = Counts[tuple[str, Outcome]]()
        for report in reports:
            for try_ in report.tries:
                name = handler(try_.device)
                self._try_s(name).observe(try_.took_s)
                outcomes[name, try_.result.outcome] += 1
        for (name, outcome), number in outcomes.items():
            self._tries(name, outcome).inc(number)

    def count_failed_batch(self, handler: str) -> None:
        self._tries(handler, "EXCEPTION").inc()

    def count_recorded(self, recorded: Iterable[Recorded]) -> None:
        alike = Counts[tuple[NotificationType, NotificationStatus, str, Priority, bool]]()
        for item in recorded:
            code = item.error_code or "NONE"
            alike[item.notification_type, item.status, code, item.priority, item.is_redriven] += 1
            if item.status is S.SENT and not item.is_redriven:
                self._latency(item.notification_type).observe(item.latency_s)
        for (type_, status, code, priority, is_redriven), number in alike.items():
            if is_redriven:
                self._redriven(type_, status).inc(number)
                continue
            self._consumed(type_).inc(number)
            self._count_status(type_, status, code, priority, number)

    def _count_status(
        self, type_: NotificationType, status: NotificationStatus, code: str, priority: Priority, number: int
    ) -> None:
        if status is S.SENT:
            self._sent(type_).inc(number)
        elif status is S.DEAD:
            self._dead(type_, code).inc(number)
            if priority in CRITICAL:
                self._critical_dead(type_).inc(number)
        elif status is S.RETRYING:
            self._retried(type_, code).inc(number)
        elif status is S.EXPIRED:
            self.count_expired(type_, number)

    def count_expired(self, type_: NotificationType, number: int) -> None:
        self._expired(type_).inc(number)

    def count_refused(self, number: int) -> None:
        self._refused.inc(number)
