"""The `matcher` role: listener, ticker and reconciler find due tasks, and one thread settles them."""

import threading
from collections.abc import Callable

import structlog

from app.matching.due import DueTasks
from app.matching.listener import Listener
from app.matching.metrics import MatcherMetrics
from app.matching.missed_deadlines import MissedDeadlines
from app.matching.reconciler import INTERVAL_WHEN_OFF_S, Reconciler
from app.matching.redis_sync import RedisSync
from app.matching.service import Matching
from app.matching.ticker import Ticker
from app.redis_store.events import ExpiryEvents
from app.settings.settings import Settings

log = structlog.get_logger(__name__)


class Matcher:
    def __init__(self, settings: Settings, matching: Matching, events: ExpiryEvents) -> None:
        stores, clockwork, clock = matching.stores, matching.runner.clockwork, matching.runner.clock
        self.metrics = MatcherMetrics()
        self.stop_event = threading.Event()
        self._settings = settings
        self.due = DueTasks(matching.runner, self.metrics, settings.matcher_batch)
        self.events = events
        self.ticker = Ticker(clockwork, clock, self.due, settings.matcher_batch, matching.rules.cap)
        sweep = 5 * settings.matcher_batch
        ticker_clockwork = clockwork if settings.matcher_ticker else None
        self.reconciler = Reconciler(
            stores,
            RedisSync(stores, clockwork, clock, matching.rules),
            self.due,
            MissedDeadlines(stores, ticker_clockwork, clock, self.due, sweep),
            self.metrics,
            matching.rules,
            batch=sweep,
            interval_s=settings.reconcile_interval_s if settings.matcher_reconciler else INTERVAL_WHEN_OFF_S,
        )
        self.listener = Listener(
            self.events,
            self.due,
            on_connect=self.reconciler.sweep_soon,
            room=settings.matcher_batch if settings.matcher_ticker else None,
        )
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._run("due", self.due.run)
        self._run("reconciler", lambda: self.reconciler.run(self.stop_event))
        if self._settings.matcher_ticker:
            self._run("ticker", lambda: self.ticker.run(self.stop_event))
        if self._settings.matcher_listener:
            self._run("listener", lambda: self.listener.run(self.stop_event))

    def is_whole(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Finishes the current batch. The other due tasks are left to another matcher, or to the next start."""
        self.stop_event.set()
        self.due.stop()
        self.reconciler.sweep_soon()
        for thread in self._threads:
            thread.join()
        self.events.close()

    def _run(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=f"matcher-{name}", daemon=True)
        thread.start()
        self._threads.append(thread)
