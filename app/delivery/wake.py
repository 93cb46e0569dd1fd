"""Hears that there is something to do. Losing an announcement costs only time, because everybody polls besides."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog
from psycopg import sql

log = structlog.get_logger(__name__)

WAKE_CHANNEL = "delivery"
ACTION_TOPIC = "action"
EVENT_TOPIC = "event"
"""What is announced on it: the type of a notification, that an action has a step to take, or an event to be told."""

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
# How long the thread may be deaf to the order to stop.
_SLICE_S = 0.2
# A peer that vanished without a word is noticed within about 20 s; until then polling goes on.
_KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}


@dataclass(frozen=True)
class Listener:
    topic: str
    """What is announced: a type of notification, or that an action has a step to take."""
    wake: Callable[[], None]


class Bell:
    """For one who sleeps until there is something to do. What rang while they were busy wakes them at once."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, timeout_s: float) -> None:
        self._rung.wait(timeout_s)
        self._rung.clear()


class Announcer:
    """A thread with a connection of its own that listens and wakes whoever is meant. An announcement without a topic,
    and whatever may have been announced while nobody listened, is for all."""

    def __init__(self, database_url: str, listeners: Sequence[Listener], channel: str = WAKE_CHANNEL) -> None:
        self._url = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        self._channel = channel
        self._listeners = listeners
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delivery-announcer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(5)

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stop.is_set():
            try:
                with self._connect() as conn:
                    pause_s = FIRST_PAUSE_S
                    self._listen(conn)
            except psycopg.Error as error:
                log.warning("delivery_listen_lost", error_type=type(error).__name__, pause_s=pause_s)
                self._stop.wait(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(
            self._url, autocommit=True, connect_timeout=3, application_name="yaninda-delivery-listen", **_KEEPALIVE
        )

    def _listen(self, conn: "psycopg.Connection[Any]") -> None:
        conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self._wake("")
        while not self._stop.is_set():
            for topic in {notify.payload for notify in conn.notifies(timeout=_SLICE_S, stop_after=1)}:
                self._wake(topic)

    def _wake(self, topic: str) -> None:
        for listener in self._listeners:
            if topic in ("", listener.topic):
                listener.wake()
