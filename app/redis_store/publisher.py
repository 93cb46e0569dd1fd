"""Moves events from the outbox to their Redis streams. An event stays in PostgreSQL until Redis has confirmed it.
Delivery is at least once: if a publisher dies between Redis's answer and its own commit, its events are published
again. Consumers recognise results by `trace_id` and `step_order`, dead letters by `dead_letter_id`.
"""

import json
import threading
from collections.abc import Sequence

from sqlalchemy import text

from app.db.database import Database
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.loop import Bell, run_loop
from app.redis_store.streams import Outlet

MOST_AT_ONCE = 500
POLL_S = 1.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0

# One publisher at a time for each topic, so that events keep their order. A stalled publisher loses the lock with its
# transaction.
_LOCK_TOPIC = text("SELECT pg_try_advisory_xact_lock(hashtextextended('action_events ' || :topic, 0))")
_OLDEST = text(
    "SELECT id, payload FROM action_events WHERE topic = :topic ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED"
)
_DELETE = text("DELETE FROM action_events WHERE id = ANY(:ids)")


class StreamRefuses(Unavailable):
    """Another key may have the name of the stream, or Redis has no memory left."""

    code = "stream_refuses"


class Publisher:
    def __init__(
        self, db: Database, outlet: Outlet, prefix: str, topics: Sequence[str], *, poll_s: float = POLL_S
    ) -> None:
        self._db = db
        self._outlet = outlet
        self._prefix = prefix
        self._topics = topics
        self._poll_s = poll_s
        self.bell = Bell()
        """Rings when an event may have been stored. An event whose ring was missed waits for `poll_s` at most."""

    def run_once(self) -> int:
        """Publishes one batch of each topic and returns the number of events. A failing topic does not hold up the
        others."""
        published, failure = 0, None
        for topic in self._topics:
            try:
                published += self._publish(topic)
            except Unavailable as error:
                failure = error
        if failure is not None:
            raise failure
        return published

    def _publish(self, topic: str) -> int:
        with self._db.transaction() as conn:
            if not conn.execute(_LOCK_TOPIC, {"topic": topic}).scalar_one():
                return 0
            rows = conn.execute(_OLDEST, {"topic": topic, "limit": MOST_AT_ONCE}).all()
            if not rows:
                return 0
            # Inside the transaction on purpose: its locks keep other publishers from sending the same rows.
            confirmed = self._outlet.add(f"{self._prefix}.{topic}", [_json(row.payload) for row in rows])
            failpoint("publisher.told")
            conn.execute(_DELETE, {"ids": [row.id for row in rows[:confirmed]]})
        failpoint("publisher.forgotten")
        if confirmed < len(rows):
            raise StreamRefuses(f"Redis refuses the events of {topic}.")
        return confirmed

    def close(self) -> None:
        self._outlet.close()

    def run(self, stop: threading.Event) -> None:
        run_loop(
            "publisher",
            self._turn,
            stop,
            sleep=self.bell.wait,
            first_pause_s=FIRST_PAUSE_S,
            longest_pause_s=LONGEST_PAUSE_S,
        )

    def _turn(self) -> float:
        return 0.0 if self.run_once() else self._poll_s


def _json(payload: object) -> str:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
