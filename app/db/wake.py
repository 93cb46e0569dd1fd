"""LISTEN and NOTIFY: announcements of new work. A lost announcement costs only time, because every listener also
polls."""

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import structlog
from psycopg import sql

from app.foundation.loop import Bell, DoublingPause

log = structlog.get_logger(__name__)

WAKE_CHANNEL = "delivery"
"""The channel of PostgreSQL's NOTIFY. Its payload is a topic: the kind of work. Delivery and the outbox, which its
role publishes, share a channel, so that one connection listens to both."""

LONGEST_PAUSE_S = 5.0
LISTENS_ON_S = 10.0
"""After it was needed for the last time, because a new connection costs more than some announcements."""
# The thread checks this often whether it has to stop.
_STOP_CHECK_S = 0.2
IDLE_CHECK_S = 5.0
"""While it is not needed. Whoever makes it needed says so at once; this is for those who forget."""
# A lost connection is noticed within about 20 s; until then the listeners poll.
_KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}


class Announcer:
    """A thread that listens on its own connection and calls the listeners of an announced topic. It calls all listeners
    after an announcement without a topic, and after each connect, because earlier announcements were lost."""

    def __init__(self, database_url: str, channel: str = WAKE_CHANNEL, *, listens_on_s: float = LISTENS_ON_S) -> None:
        self._url = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        self._channel = channel
        self._listens_on_s = listens_on_s
        self._listeners: list[tuple[str, Callable[[], None]]] = []
        self._is_needed: Callable[[], bool] = lambda: True
        self._needed = Bell()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def on(self, topic: str, wake: Callable[[], None]) -> None:
        """Adds a listener. Call this before `start`."""
        self._listeners.append((topic, wake))

    def listen_only_while(self, is_needed: Callable[[], bool]) -> None:
        """Each announcement wakes every process that listens, with a thread here and a backend there. Whoever makes it
        needed calls `listen`. Call this before `start`."""
        self._is_needed = is_needed

    def listen(self) -> None:
        self._needed.ring()

    def start(self) -> None:
        # Made here, because the process may fork after the announcer was created, and Python ends all threads then.
        self._thread = threading.Thread(target=self._run, name=f"{self._channel}-announcer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._needed.ring()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        pause = DoublingPause(longest_s=LONGEST_PAUSE_S)
        while not self._stop.is_set():
            if not self._is_needed():
                self._needed.wait(IDLE_CHECK_S)
                continue
            try:
                with self._connect() as conn:
                    pause.reset()
                    self._listen(conn)
            except psycopg.Error as error:
                pause_s = pause.next_s()
                log.warning("announcements_lost", error_type=type(error).__name__, pause_s=pause_s)
                self._stop.wait(pause_s)

    def _connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=3,
            application_name=f"yaninda-{self._channel}-listen",
            **_KEEPALIVE,
        )

    def _listen(self, conn: "psycopg.Connection[Any]") -> None:
        conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self._wake("")
        needed_at = time.monotonic()
        while not self._stop.is_set():
            if self._is_needed():
                needed_at = time.monotonic()
            elif time.monotonic() - needed_at >= self._listens_on_s:
                return
            for topic in {notify.payload for notify in conn.notifies(timeout=_STOP_CHECK_S, stop_after=1)}:
                self._wake(topic)

    def _wake(self, topic: str) -> None:
        for wanted, wake in self._listeners:
            if topic in ("", wanted):
                wake()
