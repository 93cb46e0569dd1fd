"""The door to matching for everybody outside: each call is one transaction, then the hints that follow it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection

from app.clock import Clock
from app.db import Database
from app.errors import Unavailable
from app.failpoints import failpoint
from app.matching import duty, reading, service
from app.matching.cascade import Settled
from app.matching.conductor import Conductor
from app.matching.contract import MyOffer, NewTask, OfferView, Page, Pressed, TaskView
from app.matching.errors import Overtaken
from app.matching.rules import MatchingRules
from app.matching.states import TaskStatus
from app.redis_store.contract import Clockwork
from app.users.models import Caller, LatLon

TRIES = 5
Lists = dict[UUID, list[int]]
Step = Callable[[Connection], Settled]
Result = TypeVar("Result")
log = structlog.get_logger(__name__)


class Matching:
    def __init__(self, db: Database, clockwork: Clockwork, clock: Clock, rules: MatchingRules) -> None:
        self.rules = rules
        self.conductor = Conductor(db, clockwork, clock, rules)
        self._db = db

    # ---- the elder ----

    def press(self, caller: Caller, new: NewTask, idempotency_key: str | None = None) -> Pressed:
        created = self._try(lambda conn: service.press(conn, new, idempotency_key, self.rules))
        task_id = created.task_id
        if not created.created:
            return Pressed(self.task(caller, task_id), False)
        failpoint("press.committed")
        try:
            view = self.conductor.first_offer(
                task_id, created.candidates, lambda conn: reading.task_view(conn, caller, task_id)
            )
        except Unavailable as error:
            # The request is committed, and due: the matcher makes the first offer.
            log.warning("first_offer_left_to_the_matcher", code=error.code)
            view = self.task(caller, task_id)
        # The answer to a press is about the press; what came of it so fast is told by a message.
        return Pressed(_as_pressed(view), True)

    # ---- the student ----

    def accept(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._step(caller, task_id, lambda conn: service.accept(conn, caller, task_id, self.rules))

    def reject(self, caller: Caller, task_id: UUID) -> TaskView:
        lists = self.conductor.lists([task_id])
        return self._step(caller, task_id, lambda conn: service.reject(conn, caller, task_id, lists, self.rules))

    def start(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._step(caller, task_id, lambda conn: service.start(conn, caller, task_id, self.rules))

    def complete(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._step(caller, task_id, lambda conn: service.complete(conn, caller, task_id, self.rules))

    def withdraw(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._step(caller, task_id, lambda conn: service.withdraw(conn, caller, task_id, self.rules))

    # ---- the elder, or the coordinator ----

    def cancel(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._step(caller, task_id, lambda conn: service.cancel(conn, caller, task_id))

    def assign(self, caller: Caller, task_id: UUID, student_id: int) -> TaskView:
        return self._step(caller, task_id, lambda conn: service.assign(conn, task_id, student_id, self.rules))

    def move_on(self, caller: Caller, task_id: UUID) -> TaskView:
        lists = self.conductor.lists([task_id])
        return self._step(caller, task_id, lambda conn: service.move_on(conn, task_id, lists, self.rules))

    def release(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._step(caller, task_id, lambda conn: service.release(conn, task_id, self.rules))

    # ---- coming and going ----

    def set_availability(self, caller: Caller, on_duty: bool) -> None:
        self._follow_up(self._try(lambda conn: duty.set_availability(conn, caller.id, on_duty)))

    def set_location(self, student_id: int, spot: LatLon) -> None:
        self._follow_up(self._try(lambda conn: duty.set_location(conn, student_id, spot, self.rules)))

    def set_active(self, user_id: int, active: bool) -> None:
        self._follow_up(self._try(lambda conn: duty.set_active(conn, user_id, active, self.rules)))

    # ---- looking ----

    def task(self, caller: Caller, task_id: UUID) -> TaskView:
        with self._db.reading() as conn:
            return reading.task_view(conn, caller, task_id)

    def tasks(self, caller: Caller, *, status: TaskStatus | None, cursor: str | None, limit: int) -> Page[TaskView]:
        with self._db.reading() as conn:
            return reading.task_views(conn, caller, status, cursor, limit)

    def offers(self, caller: Caller, task_id: UUID) -> Sequence[OfferView]:
        with self._db.reading() as conn:
            return reading.offer_views(conn, task_id)

    def current_offer(self, caller: Caller) -> MyOffer | None:
        with self._db.reading() as conn:
            return reading.current_offer(conn, caller)

    def open_task(self, caller: Caller) -> TaskView | None:
        with self._db.reading() as conn:
            return reading.open_task(conn, caller)

    # ---- pieces ----

    def _step(self, caller: Caller, task_id: UUID, step: Step) -> TaskView:
        def step_and_look(conn: Connection) -> tuple[Settled, TaskView]:
            return step(conn), reading.task_view(conn, caller, task_id)

        settled, view = self._try(step_and_look)
        self._follow_up(settled)
        return self.task(caller, task_id) if task_id in settled.again else view

    def _follow_up(self, settled: Settled) -> None:
        try:
            failpoint("step.committed")
            self.conductor.follow_up(settled)
        except Unavailable as error:
            # What the caller asked for is committed; what follows from it is due, and the matcher's work too.
            log.warning("follow_up_left_to_the_matcher", code=error.code)

    def _try(self, step: Callable[[Connection], Result]) -> Result:
        """Rolls back and tries again when another transaction changed what `step` had read before its locks."""
        for left in reversed(range(TRIES)):
            try:
                with self._db.transaction() as conn:
                    result = step(conn)
                    failpoint("step.before_commit")
                    return result
            except Overtaken:
                if left == 0:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")


def _as_pressed(view: TaskView) -> TaskView:
    if view.status is TaskStatus.PENDING:
        return view
    return replace(view, status=TaskStatus.PENDING, student=None, next_step_at=view.created_at)
