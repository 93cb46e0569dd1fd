"""Puts events on their streams. They wait in PostgreSQL until Redis has them, so that none is lost with either.

At least once: a publisher that dies between Redis's answer and its own commit leaves events that are put there again.
A consumer knows them by `trace_id` and `step_order`, a dead letter by `dead_letter_id`.
"""

import json
import threading

import structlog
from sqlalchemy import text

from app.db import Database
from app.delivery.actions.events import Topic
from app.delivery.faults import describe
from app.errors import Unavailable
from app.failpoints import failpoint
from app.redis_store.streams import Outlet
from app.settings import Settings

log = structlog.get_logger(__name__)

OUTGOING = (Topic.EXECUTED, Topic.FAILED, Topic.DEAD_LETTER, Topic.HANDOVER)
MOST_AT_ONCE = 500
POLL_S = 1.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
_SLICE_S = 0.2

# One at a time for each topic, so that what came first is told first however many processes publish. Whoever stands
# still with the lock loses it with the transaction.
_MY_TURN = text("SELECT pg_try_advisory_xact_lock(hashtextextended('action_events ' || :topic, 0))")
_OLDEST = text(
    "SELECT id, payload FROM action_events WHERE topic = :topic ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED"
)
_FORGET = text("DELETE FROM action_events WHERE id = ANY(:ids)")


class StreamRefuses(Unavailable):
    """Something else may have the name of the stream, or Redis has no room."""

    code = "stream_refuses"


def open_publisher(db: Database, settings: Settings) -> "Publisher":
    return Publisher(db, Outlet(settings.redis_url), settings.action_topic_prefix)


class Publisher:
    def __init__(self, db: Database, outlet: Outlet, prefix: str, *, poll_s: float = POLL_S) -> None:
        self._db = db
        self._outlet = outlet
        self._prefix = prefix
        self._poll_s = poll_s
        self._pause_s = FIRST_PAUSE_S
        self._woken = threading.Event()

    def wake(self) -> None:
        """Something may have been put into the table. Forgetting to call costs `poll_s` at most."""
        self._woken.set()

    def run_once(self) -> int:
        """One batch of each topic; says how many events left. A topic that fails keeps no other from leaving."""
        left, failure = 0, None
        for topic in OUTGOING:
            try:
                left += self._publish(topic)
            except Unavailable as error:
                failure = error
        if failure is not None:
            raise failure
        return left

    def _publish(self, topic: Topic) -> int:
        with self._db.transaction() as conn:
            if not conn.execute(_MY_TURN, {"topic": topic}).scalar_one():
                return 0
            rows = conn.execute(_OLDEST, {"topic": topic, "limit": MOST_AT_ONCE}).all()
            if not rows:
                return 0
            # Within the transaction on purpose: the rows must not be anybody else's while Redis is told.
            taken = self._outlet.add(f"{self._prefix}.{topic}", [_json(row.payload) for row in rows])
            failpoint("publisher.told")
            conn.execute(_FORGET, {"ids": [row.id for row in rows[:taken]]})
        failpoint("publisher.forgotten")
        if taken < len(rows):
            raise StreamRefuses(f"Redis refuses what is for {topic}.")
        return taken

    def close(self) -> None:
        self._outlet.close()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._woken.clear()
            try:
                left = self.run_once()
            except Unavailable as error:
                log.warning("events_wait", code=error.code, pause_s=self._pause_s)
                stop.wait(self._pause_s)
                self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
                continue
            except Exception as error:
                log.error("publisher_failed", **describe(error))
                stop.wait(LONGEST_PAUSE_S)
                continue
            self._pause_s = FIRST_PAUSE_S
            if left == 0:
                self._sleep(stop)

    def _sleep(self, stop: threading.Event) -> None:
        left_s = self._poll_s
        while left_s > 0 and not stop.is_set() and not self._woken.wait(min(left_s, _SLICE_S)):
            left_s -= _SLICE_S


def _json(payload: object) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
