"""The `matcher` role: listener, ticker and reconciler bring what is due, one thread handles it."""

import gc
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

import structlog

from app.bootstrap import Services, build_services
from app.matching.due import DueTasks
from app.matching.listener import Listener
from app.matching.lost import LostSteps
from app.matching.metrics import MatcherMetrics
from app.matching.mirror import Mirror
from app.matching.reconciler import RARELY_S, Reconciler
from app.matching.ticker import Ticker
from app.ops.metrics import serve_metrics
from app.ops.overdue import OverdueSteps
from app.redis_store.events import ExpiryEvents
from app.settings import Settings

log = structlog.get_logger(__name__)


class Matcher:
    def __init__(self, services: Services) -> None:
        settings, matching, stores = services.settings, services.matching, services.matching.stores
        self.metrics = MatcherMetrics()
        self.metrics.registry.register(OverdueSteps(services.db))
        self.stop_event = threading.Event()
        self._settings = settings
        self.due = DueTasks(matching.conductor, self.metrics, settings.matcher_batch)
        self.events = ExpiryEvents(settings.redis_url)
        self.ticker = Ticker(services.clockwork, services.clock, self.due, settings.matcher_batch)
        sweep = 5 * settings.matcher_batch
        by_ticker = services.clockwork if settings.matcher_ticker else None
        self.reconciler = Reconciler(
            stores,
            Mirror(stores, services.clockwork, services.clock, matching.rules),
            self.due,
            LostSteps(stores, by_ticker, services.clock, self.due, sweep),
            self.metrics,
            batch=sweep,
            interval_s=settings.reconcile_interval_s if settings.matcher_reconciler else RARELY_S,
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
        """Finishes the batch in hand; what is left is in PostgreSQL for another matcher, or for the next start."""
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


def main(settings: Settings, _argv: list[str]) -> int:
    # Several threads share this interpreter; the one with deadlines asks for its turn after each of a dozen answers
    # from the stores, and should not wait the usual 5 ms for it.
    sys.setswitchinterval(0.0002)
    services = build_services(settings, role="matcher", pool_size=4, plan_once=True)
    matcher = Matcher(services)
    told_to_stop = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        told_to_stop.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if settings.matcher_metrics_port:
        serve_metrics(settings, settings.matcher_metrics_port, matcher.metrics.registry)
    # What was loaded stays for good: looking through all of it for garbage, now and then, takes as long as ten batches.
    gc.collect()
    gc.freeze()
    matcher.start()
    log.info("matcher_started")
    while not told_to_stop.wait(1):
        if not matcher.is_whole():
            # A matcher that lost a thread looks alive and does not match; the supervisor starts another.
            log.critical("matcher_lost_a_thread")
            return 1
    matcher.stop()
    services.close()
    log.info("matcher_stopped")
    return 0
