"""The conductor: advances actions after one of their notifications has ended, or at the time that their last transition
set.

Any number of conductors may run side by side, because a conductor locks the actions that it claims. Claiming, reading,
deciding and writing are one transaction, so a conductor that dies in the middle has changed nothing.
"""

import threading
from collections.abc import Sequence
from datetime import timedelta

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from app.db.database import Database
from app.delivery.actions import queries
from app.delivery.actions.context import ActionContext, DeliveryRules
from app.delivery.actions.run import advance
from app.delivery.actions.transitions import ActionTransition, postpone, write
from app.delivery.words.templates import BatchRenderer
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.logs import describe_error
from app.foundation.loop import Bell, run_loop

log = structlog.get_logger(__name__)

BATCH = 200
POLL_S = 1.0
POSTPONED = timedelta(seconds=60)
"""The pause for an action that failed to advance. Without it, this action would be claimed before all others."""


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
        """Advances one batch of the actions that are due; returns their number."""
        try:
            return self._advance_some(self._batch)
        except Unavailable:
            raise
        except Exception as error:
            # One action that fails must not hold up the others of the batch.
            log.error("actions_advance_singly", **describe_error(error))
            return sum(self._advance_some(1, is_single=True) for _ in range(self._batch))

    def _advance_some(self, most: int, *, is_single: bool = False) -> int:
        with self._db.transaction() as conn:
            claimed = queries.claim(conn, most)
            failpoint("conductor.claimed")
            if claimed and is_single:
                self._advance_or_postpone(conn, claimed[0])
            elif claimed:
                self._advance(conn, claimed)
            failpoint("conductor.written")
        failpoint("conductor.committed")
        return len(claimed)

    def _advance(self, conn: Connection, claimed: Sequence[queries.ActionRow]) -> None:
        now, actions = claimed[0].read_at, [queries.action_of(row) for row in claimed]
        renderer = BatchRenderer(queries.templates(conn, actions))
        directory = queries.read_directory(conn, actions)
        notifications = queries.notifications(conn, [id_ for action in actions for id_ in action.run.awaited_ids])
        contexts = [ActionContext(action, directory, renderer, self._rules) for action in actions]
        decisions = [advance(context.action.run, context, notifications, now) for context in contexts]
        write(conn, [ActionTransition(*pair, now) for pair in zip(actions, decisions, strict=True)])

    def _advance_or_postpone(self, conn: Connection, row: queries.ActionRow) -> None:
        try:
            with conn.begin_nested():
                self._advance(conn, [row])
        except OperationalError:
            raise
        except Exception as error:
            log.error("action_put_off", action_id=str(row.id), **describe_error(error))
            postpone(conn, row.id, row.read_at + POSTPONED)
