"""The role `delivery`: the dispatcher, and threads that read requests for actions, run the actions, publish their
results, watch the number of dead letters, add the coming months and sign the audit trail."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

from app.db.outbox import EVENT_TOPIC
from app.db.wake import Announcer
from app.delivery.actions.conductor import Conductor
from app.delivery.actions.intake import Intake
from app.delivery.actions.wake_actions import WAKE_ACTIONS
from app.delivery.alarm import Alarm
from app.delivery.audit_heads import AuditHeads
from app.delivery.directory.follow_channels import FOLLOW_CHANNELS
from app.delivery.messages.values import ACTION_TOPIC, Follower
from app.delivery.months_ahead import MonthsAhead
from app.delivery.sending.dispatcher import Dispatcher
from app.redis_store.breakers import Breakers
from app.redis_store.publisher import Publisher

LEAVE_S = 5.0
"""The longest time that a thread besides the dispatcher may take to stop."""

# Followers lock rows in this order: actions before the directory.
FOLLOWERS: tuple[Follower, ...] = (WAKE_ACTIONS, FOLLOW_CHANNELS)


class DeliveryRole:
    def __init__(
        self,
        dispatcher: Dispatcher,
        announcer: Announcer,
        intake: Intake,
        conductor: Conductor,
        publisher: Publisher,
        alarm: Alarm,
        months_ahead: MonthsAhead,
        audit_heads: AuditHeads,
        breakers: Breakers,
    ) -> None:
        self.dispatcher = dispatcher
        self._intake = intake
        self._conductor = conductor
        self._publisher = publisher
        self._alarm = alarm
        self._months_ahead = months_ahead
        self._audit_heads = audit_heads
        self._breakers = breakers
        announcer.on(ACTION_TOPIC, conductor.bell.ring)
        announcer.on(EVENT_TOPIC, publisher.bell.ring)

    def run(self, stop: threading.Event) -> None:
        with self._with_other_threads(stop):
            self.dispatcher.run(stop)

    @contextmanager
    def _with_other_threads(self, stop: threading.Event) -> Generator[None]:
        parts = (
            *(self._intake, self._publisher, self._conductor),
            *(self._alarm, self._months_ahead, self._audit_heads),
        )
        threads = [
            threading.Thread(target=part.run, args=(stop,), name=type(part).__name__.lower(), daemon=True)
            for part in parts
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            self._conductor.bell.ring()
            self._publisher.bell.ring()
            for thread in threads:
                thread.join(LEAVE_S)
            self._intake.close()
            self._publisher.close()
            self._breakers.close()
