"""What a dispatcher counts."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.delivery.models import NotificationStatus, NotificationType
from app.delivery.queue import Recorded

S = NotificationStatus
_LATENCY_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)


class DeliveryMetrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._sent = self._counter("sent", "Notifications that a channel took.", "type")
        self._retried = self._counter("retried", "Attempts that failed and will be made again.", "type", "error_code")
        self._dead = self._counter("dead", "Notifications given up.", "type", "error_code")
        self._expired = self._counter("expired", "Notifications too late to be sent.", "type")
        self._refused = self._counter("refused", "Records of workers that had lost their lease.", "type")
        self._latency = Histogram(
            "yaninda_delivery_latency_seconds",
            "From a notification's creation to the record that it was sent.",
            ["type"],
            buckets=_LATENCY_S,
            registry=self.registry,
        )
        self._in_hand = Gauge("yaninda_delivery_in_hand", "Claimed and not yet recorded.", registry=self.registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"yaninda_delivery_{name}", about, labels, registry=self.registry)

    def count_recorded(self, type_: NotificationType, recorded: Iterable[Recorded]) -> None:
        for one in recorded:
            code = one.error_code or "NONE"
            if one.status is S.SENT:
                self._sent.labels(type_).inc()
                self._latency.labels(type_).observe(one.latency_s)
            elif one.status is S.DEAD:
                self._dead.labels(type_, code).inc()
            elif one.status is S.RETRYING:
                self._retried.labels(type_, code).inc()
            elif one.status is S.EXPIRED:
                self.count_expired(type_, 1)

    def count_expired(self, type_: NotificationType, number: int) -> None:
        self._expired.labels(type_).inc(number)

    def count_refused(self, type_: NotificationType, number: int) -> None:
        self._refused.labels(type_).inc(number)

    def set_in_hand(self, number: int) -> None:
        self._in_hand.set(number)
