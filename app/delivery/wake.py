"""Sleeps until somebody announces a notification, or until the time is up. Losing an announcement costs only time."""

import time
from typing import Any

import psycopg
import structlog
from psycopg import sql

log = structlog.get_logger(__name__)

WAKE_CHANNEL = "delivery"
ACTION_TOPIC = "action"
"""What is announced on it: the type of a notification, or that an action has a step to take."""

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
# A peer that vanished without a word is noticed within about 20 s; until then polling goes on.
_KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}


class Waker:
    """A connection of its own that listens. Not shared between threads."""

    def __init__(self, database_url: str, channel: str) -> None:
        self._url = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        self._channel = channel
        self._conn: psycopg.Connection | None = None
        self._pause_s = FIRST_PAUSE_S
        self._next_try_at = 0.0

    def wait(self, timeout_s: float) -> bool:
        """True as soon as something was announced, or where it may have been while nobody listened."""
        if self._conn is None and self._connect():
            return True
        if self._conn is None:
            time.sleep(timeout_s)
            return False
        try:
            # `stop_after` ends the wait at the first; whatever came in the same packet is taken with it.
            return any(True for _ in self._conn.notifies(timeout=timeout_s, stop_after=1))
        except psycopg.Error as error:
            log.warning("delivery_listen_lost", error_type=type(error).__name__)
            self.close()
            return False

    def _connect(self) -> bool:
        if time.monotonic() < self._next_try_at:
            return False
        try:
            self._conn = psycopg.connect(
                self._url, autocommit=True, connect_timeout=3, application_name="yaninda-delivery-listen", **_KEEPALIVE
            )
            self._conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except psycopg.Error as error:
            log.warning("delivery_listen_failed", error_type=type(error).__name__)
            self.close()
            self._next_try_at = time.monotonic() + self._pause_s
            self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
            return False
        self._pause_s = FIRST_PAUSE_S
        return True

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
        self._conn = None
