"""The listener: adds the tasks of Redis's expiry events to the due tasks."""

import threading
import time
from collections.abc import Callable

import structlog

from app.foundation.errors import Unavailable
from app.matching.due import DueTasks
from app.redis_store.events import EventsForbidden, ExpiryEvents

log = structlog.get_logger(__name__)

RECONNECT_S = 0.5
RECHECK_S = 5.0
"""How often the listener checks that Redis sends events. An operator may switch them off while the listener runs, and a
quiet connection alone does not show that."""


class Listener:
    def __init__(
        self,
        events: ExpiryEvents,
        due: DueTasks,
        on_connect: Callable[[], None],
        *,
        room: int | None = None,
        recheck_s: float = RECHECK_S,
    ) -> None:
        self._events = events
        self._due = due
        self._on_connect = on_connect
        """Events that Redis fired while the listener was not connected are lost, so the reconciler has to sweep."""
        self._room = room
        """Redis fires the events of a backlog in no order, but a ticker finds the same tasks in the order of their
        deadlines. So beside a ticker, the listener adds only as many tasks as keep the matcher busy."""
        self._recheck_s = recheck_s
        self._may_switch = True

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self.switch_on()
                with self._events:
                    self._on_connect()
                    self._follow(stop)
            except Unavailable as error:
                log.warning("listener_lost_redis", code=error.code)
            except Exception as error:
                log.error("listener_failed", error_type=type(error).__name__, exc_info=True)
            stop.wait(RECONNECT_S)

    def _follow(self, stop: threading.Event) -> None:
        checked_at = time.monotonic()
        while not stop.is_set():
            self._due.add(self._events.tasks(timeout_s=0.5), self._room)
            if self._may_switch and time.monotonic() - checked_at > self._recheck_s:
                if self.switch_on():
                    self._on_connect()
                checked_at = time.monotonic()

    def switch_on(self) -> bool:
        """True if the events were off and are on now."""
        try:
            were_off = self._events.switch_on()
            self._may_switch = True
            if were_off:
                log.info("expiry_events_switched_on")
            return were_off
        except EventsForbidden:
            self._may_switch = False
            log.error(
                "expiry_events_need_an_operator",
                detail="CONFIG is not allowed on this Redis. Set notify-keyspace-events so that it contains E and x,"
                " for example: notify-keyspace-events Ex. Until then the ticker and the reconciler do the work.",
            )
            return False
