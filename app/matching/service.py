"""The interface of matching. Each deed is one transaction, followed by the hints that its commit calls for."""

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from app.db.database import Database, DatabaseUnavailable
from app.foundation.clock import Clock, DatabaseClock
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint
from app.foundation.faults import fault
from app.foundation.pages import Page
from app.matching import availability, deeds, nobody_found
from app.matching.cascade import first_offer, make_task
from app.matching.contract import (
    AssignableStudent,
    LeftBehind,
    ListedElder,
    ListedStudent,
    MapBox,
    MyOffer,
    NewTask,
    OfferView,
    PeoplePage,
    Pressed,
    StudentMap,
    TaskView,
)
from app.matching.follow_up import FollowUp
from app.matching.forget_elder import forget_in_notes as forget_in_notes
from app.matching.forget_elder import forget_tasks as forget_tasks
from app.matching.forget_elder import tasks_of_person as tasks_of_person
from app.matching.old_tasks import OLD_TASKS as OLD_TASKS
from app.matching.recount import (
    drifting_students,
    drifting_tasks,
    end_of_portion,
    repair_students,
    repair_tasks,
    wake_searches,
)
from app.matching.rules.errors import Overtaken
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import TaskOutcome, TaskStatus
from app.matching.rules.visibility import seen_by
from app.matching.runner import CascadeRunner
from app.matching.store.records import MadeTask, NewSearch, Overdue
from app.matching.store.stores import Store, Stores
from app.redis_store.contract import Clockwork
from app.settings.settings import Settings
from app.users.contract import PeopleSearch, StaffScope, scope_of
from app.users.models import Caller, LatLon

__all__ = [
    "Matching",
    "drifting_students",
    "drifting_tasks",
    "end_of_portion",
    "left_behind",
    "matching_on",
    "repair_students",
    "repair_tasks",
    "wake_searches",
]

TRIES, PRESS_TRIES = 5, 2
Deed = Callable[[Store], FollowUp]
Begin = Callable[[Store, NewSearch], tuple[MadeTask, FollowUp]]
Result = TypeVar("Result")
log = structlog.get_logger(__name__)


class _FirstOfferFailed(Exception):
    """The task could be made, and the offer not."""


class Matching:
    def __init__(self, stores: Stores, lists: Stores, clockwork: Clockwork, clock: Clock, rules: MatchingRules) -> None:
        """`lists` reads what has filters and pages."""
        self.rules = rules
        self.runner = CascadeRunner(stores, clockwork, clock, rules)
        self.stores = stores
        self._lists = lists

    # ---- the elder ----

    def press(self, caller: Caller, new: NewTask, idempotency_key: str | None = None) -> Pressed:
        """The task and its first offer are one transaction. If the offer fails, the task alone is committed. It is due
        at once, so the matcher makes the offer."""
        press = partial(self._press, caller=caller, new=new, idempotency_key=idempotency_key)
        try:
            pressed, follow_up = self._commit(partial(press, begin=self._first_offer), tries=PRESS_TRIES)
        except Overtaken:
            # Many press at once where few students live. The offer is made as by the matcher, after the commit.
            pressed, follow_up = self._commit(partial(press, begin=self._make_and_settle))
        except (_FirstOfferFailed, SQLAlchemyError, DatabaseUnavailable) as failed:
            # The rows of the offer's action are written with the commit, so that an error of theirs comes there.
            log.warning("first_offer_left_to_the_matcher", **fault(failed))
            # Without the home that the caller had, a second press is answered though candidates cannot be ranked.
            homeless = replace(caller, home=None)
            pressed, follow_up = self._commit(partial(press, caller=homeless, begin=self._make_alone))
        failpoint("press.committed")
        self._follow_up(follow_up)
        return pressed

    def _press(
        self, store: Store, *, caller: Caller, new: NewTask, idempotency_key: str | None, begin: Begin
    ) -> tuple[Pressed, FollowUp]:
        search = deeds.press(store, caller, new, idempotency_key, self.rules)
        if isinstance(search, UUID):
            return Pressed(store.task_view(caller, search), False), FollowUp()
        made, follow_up = begin(store, search)
        if made.deadline is not None:
            return Pressed(seen_by(caller, made.row), True), follow_up
        # The answer shows the task as the press made it. If the search has ended already, a notification reports that.
        return Pressed(_as_pressed(store.task_view(caller, search.task_id)), True), follow_up

    def _first_offer(self, store: Store, search: NewSearch) -> tuple[MadeTask, FollowUp]:
        try:
            return first_offer(store, search, self.rules)
        except Overtaken:
            raise
        except Exception as error:
            raise _FirstOfferFailed from error

    def _make_and_settle(self, store: Store, search: NewSearch) -> tuple[MadeTask, FollowUp]:
        return make_task(store, search, None, self.rules), FollowUp(again=frozenset({search.task_id}))

    def _make_alone(self, store: Store, search: NewSearch) -> tuple[MadeTask, FollowUp]:
        return make_task(store, search, None, self.rules), FollowUp()

    # ---- the student ----

    def accept(self, caller: Caller, task_id: UUID) -> TaskView:
        def work(store: Store) -> tuple[FollowUp, TaskView, Callable[[], AbstractSet[UUID] | None]]:
            follow_up, row = deeds.accept(store, caller, task_id, self.rules)
            view = store.task_view(caller, task_id) if row is None else seen_by(caller, row)
            return follow_up, view, store.tasks_waiting_for_after_commit(follow_up.unavailable, self.rules)

        follow_up, view, waiting = self._commit(work)
        # Students who were freed have to be looked for as well.
        self._follow_up(follow_up, None if follow_up.freed else waiting())
        return view

    def reject(self, caller: Caller, task_id: UUID) -> TaskView:
        lists = self.runner.lists([task_id])
        return self._do(caller, task_id, lambda store: deeds.reject(store, caller, task_id, lists, self.rules))

    def start(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._do(caller, task_id, lambda store: deeds.start(store, caller, task_id, self.rules))

    def complete(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._do(caller, task_id, lambda store: deeds.complete(store, caller, task_id, self.rules))

    def withdraw(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._do(caller, task_id, lambda store: deeds.withdraw(store, caller, task_id, self.rules))

    # ---- the elder, or the coordinator ----

    def cancel(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._do(caller, task_id, lambda store: deeds.cancel(store, caller, task_id))

    def assign(self, caller: Caller, task_id: UUID, student_id: int) -> TaskView:
        scope = scope_of(caller)
        return self._do(caller, task_id, lambda store: deeds.assign(store, scope, task_id, student_id, self.rules))

    def move_on(self, caller: Caller, task_id: UUID) -> TaskView:
        lists = self.runner.lists([task_id])
        return self._do(caller, task_id, lambda store: deeds.move_on(store, task_id, lists, self.rules))

    def release(self, caller: Caller, task_id: UUID) -> TaskView:
        return self._do(caller, task_id, lambda store: deeds.release(store, task_id, self.rules))

    def say_outcome(self, caller: Caller, task_id: UUID, outcome: TaskOutcome, note: str | None) -> TaskView:
        return self._do(caller, task_id, lambda store: nobody_found.say_outcome(store, caller, task_id, outcome, note))

    # ---- availability ----

    def set_availability(self, caller: Caller, on_duty: bool) -> None:
        self._follow_up(self._commit(lambda store: availability.set_availability(store, caller.id, on_duty)))

    def set_duty_of(self, scope: StaffScope, student_id: int, on_duty: bool) -> None:
        self._follow_up(self._commit(lambda store: availability.set_duty(store, scope, student_id, on_duty)))

    def set_location(self, student_id: int, spot: LatLon, *, is_reported: bool = True) -> None:
        self._follow_up(
            self._commit(
                lambda store: availability.set_location(store, student_id, spot, self.rules, is_reported=is_reported)
            )
        )

    def set_active(self, user_id: int, active: bool, *, keeps_devices: bool = False) -> None:
        """A user who is deactivated loses the devices, unless their ids are still needed."""

        def work(store: Store) -> FollowUp:
            return availability.set_active(store, user_id, active, self.rules, keeps_devices=keeps_devices)

        self._follow_up(self._commit(work))

    def students_returned(self, student_ids: Collection[int]) -> None:
        """A hint for tasks that wait for one of these students, who were activated."""
        self._follow_up(FollowUp(freed=frozenset(student_ids)))

    def leave_service(self, user_id: int) -> LeftBehind:
        """For a user who is not active any more, in a transaction of its own for each. Returns what was ended."""
        follow_up, left = self._commit(lambda store: availability.leave_service(store, user_id, self.rules))
        self._follow_up(follow_up)
        return left

    # ---- reading ----

    def busy_people(self, user_ids: Collection[int]) -> set[int]:
        """Those with an open task, a task that they have accepted, or a live offer."""
        with self.stores.reading() as store:
            return store.busy_people(user_ids)

    def task(self, caller: Caller, task_id: UUID) -> TaskView:
        with self.stores.reading() as store:
            return store.task_view(caller, task_id)

    def tasks(self, caller: Caller, *, status: TaskStatus | None, cursor: str | None, limit: int) -> Page[TaskView]:
        with self._lists.reading() as store:
            return store.task_views(caller, status, cursor, limit)

    def board(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[TaskView]:
        with self._lists.reading() as store:
            return store.board(caller, cursor, limit)

    def assignable(
        self, scope: StaffScope, task_id: UUID, search: PeopleSearch | None, limit: int
    ) -> Sequence[AssignableStudent]:
        with self._lists.reading() as store:
            return store.assignable(scope, task_id, search, self.rules, limit)

    def student_list(
        self, scope: StaffScope, page: PeoplePage, on_duty: bool | None = None, suspended: bool | None = None
    ) -> Page[ListedStudent]:
        with self._lists.reading() as store:
            return store.student_list(scope, page, on_duty, suspended, self.rules)

    def elder_list(self, scope: StaffScope, page: PeoplePage) -> Page[ListedElder]:
        with self._lists.reading() as store:
            return store.elder_list(scope, page)

    def student_map(self, scope: StaffScope, box: MapBox, most: int) -> StudentMap:
        with self._lists.reading() as store:
            return store.student_map(scope, box, most)

    def offers(self, caller: Caller, task_id: UUID) -> Sequence[OfferView]:
        with self.stores.reading() as store:
            return store.offer_views(scope_of(caller), task_id)

    def current_offer(self, caller: Caller) -> MyOffer | None:
        with self.stores.reading() as store:
            return store.current_offer(caller, self.rules)

    def open_task(self, caller: Caller) -> TaskView | None:
        with self.stores.reading() as store:
            return store.open_task(caller)

    # ---- lateness ----

    def is_late(self, after_s: float) -> bool:
        with self.stores.reading() as store:
            return store.is_late(after_s)

    def overdue(self) -> Overdue:
        with self.stores.reading() as store:
            return store.overdue()

    # ---- transactions ----

    def _do(self, caller: Caller, task_id: UUID, deed: Deed) -> TaskView:
        """Commits the deed, reads the task in the same transaction, and carries out the follow-up. For a coordinator,
        first checks that they see the task, so that no error tells anything about another one."""

        def work(store: Store) -> tuple[FollowUp, TaskView]:
            if caller.is_coordinator:
                store.check_seen(scope_of(caller), task_id)
            return deed(store), store.task_view(caller, task_id)

        follow_up, view = self._commit(work)
        self._follow_up(follow_up)
        return self.task(caller, task_id) if task_id in follow_up.again else view

    def _commit(self, work: Callable[[Store], Result], tries: int = TRIES) -> Result:
        """Rolls back and tries again if another transaction changed rows that `work` had read before it locked them."""
        for left in reversed(range(tries)):
            try:
                with self.stores.transaction() as store:
                    result = work(store)
                    failpoint("deed.before_commit")
                    return result
            except Overtaken:
                if left == 0:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    def _follow_up(self, follow_up: FollowUp, waiting: AbstractSet[UUID] | None = None) -> None:
        try:
            failpoint("deed.committed")
            self.runner.follow_up(follow_up, waiting)
        except Unavailable as error:
            # The deed is committed and its follow-up is due, so the matcher carries it out.
            log.warning("follow_up_left_to_the_matcher", code=error.code)


def matching_on(db: Database, clockwork: Clockwork, settings: Settings, deeds_db: Database | None = None) -> Matching:
    """`deeds_db` is for deeds, if they have connections of their own."""
    return Matching(
        Stores(deeds_db or db), Stores(db), clockwork, DatabaseClock(db.now), MatchingRules.from_settings(settings)
    )


def left_behind(conn: Connection, user_ids: Collection[int]) -> LeftBehind:
    """What these people would leave behind if they left the service now."""
    return Store(conn).left_behind(user_ids)


def _as_pressed(view: TaskView) -> TaskView:
    if view.status is TaskStatus.PENDING:
        return view
    return replace(view, status=TaskStatus.PENDING, student=None, next_step_at=view.created_at)
