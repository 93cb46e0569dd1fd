"""Shows that this worker is alive, and takes over what dead ones have claimed.

Nobody compares clocks: a worker is dead if the number of its beats has not changed for `DEAD_AFTER_S` of the time of
another one. It stops sending by itself after `STILL_AFTER_S` without a beat, which is before others can take over. So a
process that was stopped (SIGSTOP, a machine that slept) sends nothing late when it goes on.
"""

import threading
import time
from collections.abc import Callable, Mapping

import structlog

from app.db.database import Database
from app.delivery.messages import takeover
from app.delivery.messages.claims import Claimed
from app.foundation.errors import Unavailable
from app.foundation.loop import run_loop

log = structlog.get_logger(__name__)

BEAT_S = 0.5
STILL_AFTER_S = 2.0
DEAD_AFTER_S = 3.0
# After a longer pause between two looks, the watching worker was still itself, or the database was.
LONGEST_GAP_S = 1.5


def awake_s() -> float:
    """Seconds of a clock that nobody sets. It counts the time in which the machine slept, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Watch:
    """How long the beats of the other workers have not changed."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, float]] = {}
        self._looked_at = float("-inf")

    def find_dead(self, beats: Mapping[int, int], now: float) -> list[int]:
        known = self._seen if now - self._looked_at <= LONGEST_GAP_S else {}
        self._looked_at = now
        self._seen = {
            id_: known[id_] if id_ in known and known[id_][0] == number else (number, now)
            for id_, number in beats.items()
        }
        return [id_ for id_, (_, since) in self._seen.items() if now - since >= DEAD_AFTER_S]


class Heartbeat:
    def __init__(self, db: Database, now: Callable[[], float] = awake_s) -> None:
        self._db = db
        self._now = now
        self._watch = Watch()
        self._worker_id: int | None = None
        self._still_at = float("-inf")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=run_loop, args=("heartbeat", self._turn, self._stop), kwargs={"longest_pause_s": BEAT_S}, daemon=True
        )

    def worker_id(self) -> int:
        """Registers first if this worker is not known, or not any more."""
        with self._lock:
            if self._worker_id is None:
                began = self._now()
                with self._db.autocommit() as conn:
                    self._worker_id = takeover.register_worker(conn)
                self._still_at = began + STILL_AFTER_S
            return self._worker_id

    def holds(self, claimed: Claimed) -> bool:
        """False once others may have taken over the notification."""
        return claimed.worker_id == self._worker_id and self._now() < self._still_at

    def beat(self) -> None:
        worker_id, began = self.worker_id(), self._now()
        with self._db.autocommit() as conn:
            beats = takeover.beat(conn, worker_id)
        if beats is None:
            log.warning("delivery_worker_was_replaced", worker_id=worker_id)
            self._worker_id = None
            self.worker_id()
            return
        self._still_at = began + STILL_AFTER_S
        others = {id_: number for id_, number in beats.items() if id_ != worker_id}
        for id_ in self._watch.find_dead(others, self._now()):
            self._take_over(id_, others[id_])

    def _take_over(self, worker_id: int, beats: int | None) -> None:
        with self._db.autocommit() as conn:
            freed = takeover.take_over(conn, worker_id, beats)
        if freed:
            log.warning("delivery_worker_taken_over", worker_id=worker_id, notifications=freed)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(BEAT_S)
        self.leave()

    def leave(self) -> None:
        """Nobody waits then for what this worker still holds."""
        worker_id, self._worker_id = self._worker_id, None
        if worker_id is None:
            return
        try:
            self._take_over(worker_id, None)
        except Unavailable:
            log.warning("delivery_worker_not_left", worker_id=worker_id, hint="others take over in seconds")

    def _turn(self) -> float:
        self.beat()
        return BEAT_S
