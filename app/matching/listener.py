"""Turns Redis's expiry events into due tasks."""

import threading
from collections.abc import Callable

import structlog

from app.errors import Unavailable
from app.matching.due import DueTasks
from app.redis_store.events import EventsForbidden, ExpiryEvents

log = structlog.get_logger(__name__)

RECONNECT_S = 0.5


class Listener:
    def __init__(self, events: ExpiryEvents, due: DueTasks, on_connect: Callable[[], None]) -> None:
        self._events = events
        self._due = due
        self._on_connect = on_connect
        """Events of the time without a connection are gone for good, so somebody has to sweep."""

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self.switch_on()
                with self._events:
                    self._on_connect()
                    while not stop.is_set():
                        self._due.add(self._events.tasks(timeout_s=0.5))
            except Unavailable as error:
                log.warning("listener_lost_redis", code=error.code)
            except Exception as error:
                log.error("listener_failed", error_type=type(error).__name__, exc_info=True)
            stop.wait(RECONNECT_S)

    def switch_on(self) -> None:
        try:
            if self._events.switch_on():
                log.info("expiry_events_switched_on")
        except EventsForbidden:
            log.error(
                "expiry_events_need_an_operator",
                detail="CONFIG is not allowed on this Redis. Set notify-keyspace-events so that it contains E and x,"
                " for example: notify-keyspace-events Ex. Until then the ticker and the reconciler do the work.",
            )
