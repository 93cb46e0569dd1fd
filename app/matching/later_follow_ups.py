"""Carries out follow-ups of presses and accepts beside the requests: nobody waits for them, and those that have come
meanwhile go to Redis and PostgreSQL together."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

import structlog

from app.foundation.errors import Unavailable
from app.matching.follow_up import FollowUp, combined

log = structlog.get_logger(__name__)

AT_ONCE = 100


class LaterFollowUps:
    def __init__(self, follow_up: Callable[[FollowUp], object]) -> None:
        self._follow_up = follow_up
        # None ends the thread.
        self._waiting = SimpleQueue[FollowUp | None]()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="follow-ups", daemon=True)
        self._thread.start()

    def add(self, follow_up: FollowUp) -> None:
        """Without a thread, carries it out before it returns."""
        if self._thread is None:
            self.carry_out(follow_up)
        else:
            self._waiting.put(follow_up)

    def close(self) -> None:
        """Carries out what waits. Nothing may be added any more."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def carry_out(self, follow_up: FollowUp) -> None:
        try:
            self._follow_up(follow_up)
        except Unavailable as error:
            # The deed is committed and its follow-up is due, so the matcher carries it out.
            log.warning("follow_up_left_to_the_matcher", code=error.code)

    def _run(self) -> None:
        while parts := self._take():
            try:
                self.carry_out(combined(*parts))
            except Exception as error:
                log.error("follow_up_left_to_the_matcher", error_type=type(error).__name__, exc_info=True)

    def _take(self) -> list[FollowUp]:
        """Waits for the first one. Nothing when the thread has to end."""
        parts = [self._waiting.get()]
        while parts[-1] is not None and len(parts) < AT_ONCE and not self._waiting.empty():
            parts.append(self._waiting.get())
        if parts[-1] is None:
            # Also for the next call.
            self._waiting.put(None)
        return [part for part in parts if part is not None]
