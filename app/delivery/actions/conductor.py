"""Brings actions to their next step: after a message of theirs has ended, or when one should have arrived by now.

Any number of conductors may run side by side: each action is in the hands of one at a time. What is claimed is read,
decided and written in one transaction, so whoever dies in the middle has done nothing.
"""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from app.db.database import Database
from app.delivery.actions import effects, queries
from app.delivery.actions.context import ActionContext, DeliveryRules
from app.delivery.actions.effects import ActionTransition
from app.delivery.actions.run import advance
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import Bell, run_loop

log = structlog.get_logger(__name__)

BATCH = 200
POLL_S = 1.0
PUT_OFF = timedelta(seconds=60)
"""An action that nobody can advance must not come up again and again before all others."""


class Conductor:
    def __init__(self, db: Database, rules: DeliveryRules, *, batch: int = BATCH, poll_s: float = POLL_S) -> None:
        self._db = db
        self._rules = rules
        self._batch = batch
        self._poll_s = poll_s
        self.bell = Bell()
        """Rings when an action may have become due. A missed ring costs `poll_s` at most."""

    def run(self, stop: threading.Event) -> None:
        run_loop("conductor", self._turn, stop, sleep=self.bell.wait)

    def _turn(self) -> float:
        return self._poll_s if self.run_once() < self._batch else 0.0

    def run_once(self) -> int:
        """Advances what is due, as much as fits into one batch; says how many actions that was."""
        try:
            return self._advance_some(self._batch)
        except Unavailable:
            raise
        except Exception as error:
            # Whatever is wrong with one of them must not hold up the others.
            log.error("actions_advance_singly", **describe_error(error))
            return sum(self._advance_some(1, is_single=True) for _ in range(self._batch))

    def _advance_some(self, most: int, *, is_single: bool = False) -> int:
        with self._db.transaction() as conn:
            claimed = queries.claim(conn, most)
            failpoint("conductor.claimed")
            if claimed and is_single:
                self._advance_or_put_off(conn, claimed[0])
            elif claimed:
                self._advance(conn, claimed)
            failpoint("conductor.written")
        failpoint("conductor.committed")
        return len(claimed)

    def _advance(self, conn: Connection, claimed: Sequence[Any]) -> None:
        now, actions = claimed[0].read_at, [queries.action(row) for row in claimed]
        known = queries.known(conn, actions, queries.words(conn, actions))
        seen = queries.messages(conn, [id_ for action in actions for id_ in action.run.messages])
        desks = [ActionContext(action, known, self._rules) for action in actions]
        moves = [ActionTransition(desk, advance(desk.action.run, desk, seen, now), now) for desk in desks]
        effects.carry_out(conn, moves)
        effects.update(conn, moves)

    def _advance_or_put_off(self, conn: Connection, row: Any) -> None:
        try:
            with conn.begin_nested():
                self._advance(conn, [row])
        except OperationalError:
            raise
        except Exception as error:
            log.error("action_put_off", action_id=str(row.id), **describe_error(error))
            effects.put_off(conn, row.id, row.read_at + PUT_OFF)
