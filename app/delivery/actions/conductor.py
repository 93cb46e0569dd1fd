"""Brings actions to their next step: after a message of theirs has ended, or when one should have arrived by now.

Any number of conductors may run side by side: each action is in the hands of one at a time. What is claimed is read,
decided and written in one transaction, so whoever dies in the middle has done nothing.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from app.db import Database
from app.delivery.actions import reading, writing
from app.delivery.actions.desk import ActionDesk, ActionRules
from app.delivery.actions.run import advance
from app.delivery.actions.writing import Move
from app.delivery.faults import describe
from app.errors import Unavailable
from app.failpoints import failpoint

log = structlog.get_logger(__name__)

BATCH = 200
POLL_S = 1.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
PUT_OFF = timedelta(seconds=60)
"""An action that nobody can advance must not come up again and again before all others."""


class Conductor:
    def __init__(
        self,
        db: Database,
        rules: ActionRules,
        wait: Callable[[float], object],
        *,
        batch: int = BATCH,
        poll_s: float = POLL_S,
    ) -> None:
        """`wait` comes back when an action is announced, when the time is up, or a little after the order to stop."""
        self._db = db
        self._rules = rules
        self._wait = wait
        self._batch = batch
        self._poll_s = poll_s
        self._pause_s = FIRST_PAUSE_S

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                if self.run_once() < self._batch:
                    self._wait(self._poll_s)
                self._pause_s = FIRST_PAUSE_S
            except Unavailable:
                log.warning("conductor_waits", pause_s=self._pause_s)
                stop.wait(self._pause_s)
                self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
            except Exception as error:
                log.error("conductor_failed", **describe(error))
                stop.wait(LONGEST_PAUSE_S)

    def run_once(self) -> int:
        """Advances what is due, as much as fits into one batch; says how many actions that was."""
        try:
            return self._advance_some(self._batch)
        except Unavailable:
            raise
        except Exception as error:
            # Whatever is wrong with one of them must not hold up the others.
            log.error("actions_advance_singly", **describe(error))
            return sum(self._advance_some(1, is_single=True) for _ in range(self._batch))

    def _advance_some(self, most: int, *, is_single: bool = False) -> int:
        with self._db.transaction() as conn:
            claimed = reading.claim(conn, most)
            failpoint("conductor.claimed")
            if claimed and is_single:
                self._advance_or_put_off(conn, claimed[0])
            elif claimed:
                self._advance(conn, claimed)
            failpoint("conductor.written")
        failpoint("conductor.committed")
        return len(claimed)

    def _advance(self, conn: Connection, claimed: Sequence[Any]) -> None:
        now, actions = claimed[0].read_at, [reading.action(row) for row in claimed]
        known = reading.known(conn, actions, reading.words(conn, actions))
        seen = reading.messages(conn, [id_ for action in actions for id_ in action.run.messages])
        desks = [ActionDesk(action, known, self._rules) for action in actions]
        moves = [Move(desk, advance(desk.action.run, desk, seen, now), now) for desk in desks]
        writing.carry_out(conn, moves)
        writing.update(conn, moves)

    def _advance_or_put_off(self, conn: Connection, row: Any) -> None:
        try:
            with conn.begin_nested():
                self._advance(conn, [row])
        except OperationalError:
            raise
        except Exception as error:
            log.error("action_put_off", action_id=str(row.id), **describe(error))
            writing.put_off(conn, row.id, row.read_at + PUT_OFF)
