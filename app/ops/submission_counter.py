"""Counts the notifications that a process submits: those of its requests, and those of actions, such as the messages of
matching. Each is counted once, by the process that commits it."""

from prometheus_client import CollectorRegistry, Counter

from app.db.database import Database
from app.delivery.contract import SUBMITTED


class SubmissionCounter:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._produced = Counter(
            "yaninda_delivery_produced", "Notifications submitted and committed.", ["type"], registry=registry
        )

    def watch(self, *databases: Database) -> None:
        for db in databases:
            db.count = self._count

    def _count(self, name: str, label: str, number: int) -> None:
        if name == SUBMITTED:
            self._produced.labels(label).inc(number)
