"""Notifies those who see all dead letters, once, when the number of open ones reaches a threshold. The alarm can be
raised again after the number has fallen below half of the threshold. Dead letters whose message has lost its meaning
are closed first, because nobody can mend them."""

import threading
from collections.abc import Sequence

import structlog
from sqlalchemy import Connection, text

from app.db.database import Database
from app.delivery.actions import service as actions
from app.delivery.actions.redrive import MAX_AGE_S
from app.delivery.actions.requests import NewAction
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letter_views import count_open_dead_letters
from app.delivery.plans.shipped_plans import DEAD_LETTERS
from app.foundation.errors import NotFound
from app.foundation.loop import run_loop

log = structlog.get_logger(__name__)

EVERY_S = 5.0
QUIET_S = 3600.0
"""The shortest time between two alarms, however often the number rises and falls."""
MOST_EXPIRED = 1_000
"""The highest number of dead letters that one transaction closes."""

# Only one process checks at a time; the others skip the locked row.
_LOCK = text(
    "SELECT raised, raised_at > clock_timestamp() - make_interval(secs => :quiet_s) AS is_recent"
    " FROM delivery_alarms WHERE name = 'dead_letters' FOR UPDATE SKIP LOCKED"
)
_BEGIN = text("INSERT INTO delivery_alarms (name) VALUES ('dead_letters') ON CONFLICT DO NOTHING")
_RAISE = text("UPDATE delivery_alarms SET raised = true, raised_at = clock_timestamp() WHERE name = 'dead_letters'")
_LOWER = text("UPDATE delivery_alarms SET raised = false WHERE name = 'dead_letters'")
# Those who see all dead letters: the number tells a coordinator of one institution about the others.
_COORDINATORS = text(
    """
    SELECT id FROM users
     WHERE (role = 'ADMIN' OR role = 'COORDINATOR' AND institution_id IS NULL) AND active ORDER BY id
    """
)
_MOST_COUNTED = 1_000_000
"""The count in the message ends here, because counting more rows would take too long."""


class Alarm:
    def __init__(
        self,
        db: Database,
        threshold: int,
        *,
        max_age_s: float = MAX_AGE_S,
        every_s: float = EVERY_S,
        quiet_s: float = QUIET_S,
    ) -> None:
        self._db = db
        self._threshold = threshold
        self._max_age_s = max_age_s
        self._every_s = every_s
        self._quiet_s = quiet_s

    def run_once(self) -> bool:
        """True if this call raised the alarm."""
        while self._expire_some() == MOST_EXPIRED:
            pass
        with self._db.transaction() as conn:
            conn.execute(_BEGIN)
            state = conn.execute(_LOCK, {"quiet_s": self._quiet_s}).one_or_none()
            if state is None:
                return False
            depth = count_open_dead_letters(conn, self._threshold)
            if state.raised:
                if 2 * depth < self._threshold:
                    conn.execute(_LOWER)
                return False
            if depth < self._threshold or state.is_recent:
                return False
            conn.execute(_RAISE)
            return self._notify(conn, conn.execute(_COORDINATORS).scalars().all())

    def _expire_some(self) -> int:
        now = self._db.now()
        with self._db.transaction() as conn:
            return dead_letters.expire_late(conn, now, self._max_age_s, MOST_EXPIRED)

    def _notify(self, conn: Connection, people: Sequence[int]) -> bool:
        depth = count_open_dead_letters(conn, _MOST_COUNTED)
        log.warning("dead_letters_alarm", depth=depth, coordinators=len(people))
        new = [
            NewAction(DEAD_LETTERS, person_id=id_, variables={"depth": depth}, data={"type": "dead_letters"})
            for id_ in people
        ]
        try:
            actions.request_actions(conn, new)
        except NotFound as error:
            # The plan is retired. The alarm stays raised, so that this error is not logged every few seconds.
            log.error("dead_letters_alarm_untold", code=error.code)
        return True

    def run(self, stop: threading.Event) -> None:
        run_loop("alarm", self._turn, stop, first_pause_s=self._every_s, longest_pause_s=self._every_s)

    def _turn(self) -> float:
        self.run_once()
        return self._every_s
