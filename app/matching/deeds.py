"""The deeds of people on a task: press, accept, reject, start, complete, withdraw, cancel, move on, release, assign.

A deed names its task and locks it first. `availability.py` has what a person does without naming a task.

Each function runs in the caller's transaction, takes its locks in the order that `store/stores.py` states, and returns
the follow-up for after the commit. A transaction may lock students only once, so a deed that has locked a student
leaves the next offer to a later transaction. Until then the task's row is due.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from app.delivery.service import ReadPlans
from app.foundation.errors import IdempotencyKeyReused, InvalidValue, TooManyRequests
from app.foundation.ids import uuid7
from app.matching import notices
from app.matching.cascade import Lists, settle
from app.matching.contract import NewTask
from app.matching.follow_up import FollowUp, combined, no_offer_keys
from app.matching.notices import NoticeKind
from app.matching.rules.eligibility import OfferReason
from app.matching.rules.errors import NotAssigned, Overtaken, StudentUnavailable, TaskNotFound, too_late
from app.matching.rules.map_cells import circle_of_cells, metres_between, on_the_map
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import OPEN, IllegalTaskTransition, OfferState, TaskStatus
from app.matching.store.records import (
    NOW,
    FromNow,
    HelpTask,
    Moved,
    NamedPerson,
    NewSearch,
    Offer,
    PressingElder,
    Transition,
)
from app.matching.store.stores import Store
from app.users.contract import EVERYTHING, StaffScope, scope_of
from app.users.models import Caller, LatLon, Role

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
UNAVAILABLE = "This student has another task, or is not active."


# ---- the elder ----


def press(
    store: Store, caller: Caller, new: NewTask, idempotency_key: str | None, rules: MatchingRules
) -> NewSearch | UUID:
    """A second press gets the id of the task that the first one made, even if both arrive at the same instant. The
    elder's row is locked until the commit, so that a concurrent transaction that deactivates the elder sees the task
    and cancels it."""
    locked = _lock_elder_later(store, caller, new.elder_id, idempotency_key, rules)
    task_id, expected = uuid7(), _expected_place(caller, new)
    # Together with the lock, because nearly every press is for the home that the caller had a moment ago.
    ranking = store.rank(task_id, expected, rules, elder_id=new.elder_id) if expected else None
    elder = _active_elder(locked())
    known = _pressed_before(elder, new)
    if known is not None:
        return known
    _check_pace(elder.ages, rules)
    spot, area = _place(store, caller, new, elder.home, rules)
    if ranking is None or (spot, area) != (expected, None):
        ranking = store.rank(task_id, spot, rules, elder_id=new.elder_id, area=area)
    return NewSearch(task_id, new.elder_id, new.note, spot, area, idempotency_key, ranking)


def _expected_place(caller: Caller, new: NewTask) -> LatLon | None:
    """Where help is wanted, as far as that is known before the elder's row is read."""
    return caller.home if caller.id == new.elder_id and new.location in (None, caller.home) else None


def _check_pace(ages: Sequence[timedelta], rules: MatchingRules) -> None:
    """Whoever presses, because the students who are asked cannot tell."""
    for most, period in ((rules.tasks_per_minute, MINUTE), (rules.tasks_per_hour, HOUR)):
        if len(ages) >= most and ages[most - 1] < period:
            wait_s = math.ceil((period - ages[most - 1]).total_seconds())
            raise TooManyRequests("Too many new requests in a short time; wait.", retry_after_s=wait_s)


def _place(
    store: Store, caller: Caller, new: NewTask, home: LatLon | None, rules: MatchingRules
) -> tuple[LatLon, str | None]:
    """Where help is wanted, and the area of the search if the elder has chosen the place. Without an area, an elder who
    asks from many places would find the exact places of students by the counts."""
    spot = new.location or home
    if spot is None:
        raise InvalidValue("location", "is needed, because this elder has no home on file")
    if caller.is_coordinator or spot == home:
        return spot, None
    # The first place of an elder without a home stands for it. Nobody can go on from there step by step.
    around = home or store.first_place(new.elder_id)
    if around and metres_between(on_the_map(around), on_the_map(spot)) > rules.home_range_m:
        raise InvalidValue("location", "is too far from the elder's home; a coordinator may ask for help there")
    return spot, circle_of_cells(spot, rules.radius_m, rules.cell_m)


def _lock_elder_later(
    store: Store, caller: Caller, elder_id: int, idempotency_key: str | None, rules: MatchingRules
) -> Callable[[], PressingElder | None]:
    scope = scope_of(caller) if caller.is_coordinator else EVERYTHING
    return store.lock_elder_later(elder_id, scope, idempotency_key, max(rules.tasks_per_minute, rules.tasks_per_hour))


def _active_elder(elder: PressingElder | None) -> PressingElder:
    """An elder whom the coordinator does not see is refused like one who does not exist."""
    if elder is None or elder.role is not Role.ELDER or not elder.active:
        raise InvalidValue("elderId", "is not the id of an active elder")
    return elder


def _pressed_before(elder: PressingElder, new: NewTask) -> UUID | None:
    known = elder.known
    if known is None:
        return elder.open_task_id
    if known.note != new.note or (new.location is not None and known.spot != new.location):
        raise IdempotencyKeyReused("This Idempotency-Key was used for a different request.")
    return known.task_id


# ---- the student who is being asked ----


def accept(store: Store, caller: Caller, task_id: UUID, rules: MatchingRules) -> tuple[FollowUp, Any]:
    """The second value is the row of the view, or None if nothing changed. All of it is asked in one round trip; what
    an accept must not change is rolled back."""
    offered = _offered_later(store, caller, task_id)
    read_plans = notices.read_plan_of_elder(store, NoticeKind.ON_THE_WAY, task_id)
    accepted = store.accept(task_id, caller.id, rules.start_limit)
    task, offer, others = offered()
    if offer.state is OfferState.ACCEPTED:
        return FollowUp(), None
    if not offer.is_answerable:
        raise too_late(offer.state)
    task.becoming(TaskStatus.ASSIGNED)
    if accepted is None:
        raise StudentUnavailable(UNAVAILABLE)
    if accepted.moved is None:
        raise too_late(OfferState.EXPIRED)
    freed = _take_back(store, others, OfferReason.ACCEPTED_BY_ANOTHER)
    follow_up = _tell_assigned(store, task, accepted.student, accepted.moved, read_plans)
    return combined(follow_up, FollowUp(freed=freed)), accepted.row


def reject(store: Store, caller: Caller, task_id: UUID, lists: Lists, rules: MatchingRules) -> FollowUp:
    task, offer, _ = _offered(store, caller, task_id)
    if offer.state is OfferState.REJECTED:
        return FollowUp()
    if not offer.is_answerable:
        raise too_late(offer.state)
    store.close_offer(offer, OfferState.REJECTED)
    return combined(settle(store, [task.id], lists, rules).follow_up(), FollowUp(freed=frozenset({caller.id})))


# ---- the student who has the task ----


def start(store: Store, caller: Caller, task_id: UUID, rules: MatchingRules) -> FollowUp:
    task = _accepted_task(store, caller, task_id)
    return FollowUp() if task.status is TaskStatus.STARTED else _start(store, task, rules)


def complete(store: Store, caller: Caller, task_id: UUID, rules: MatchingRules) -> FollowUp:
    """A student has to start a task before completing it. A coordinator may complete a task that the student forgot to
    start: it goes through both transitions."""
    task = _lock_task(store, task_id) if caller.is_coordinator else _accepted_task(store, caller, task_id)
    if task.status is TaskStatus.COMPLETED:
        return FollowUp()
    if caller.is_coordinator and task.status is TaskStatus.ASSIGNED:
        _start(store, task, rules)
        task = _lock_task(store, task_id)
    completed = task.becoming(TaskStatus.COMPLETED)
    student_id = _student_of(task)
    store.lock_students([student_id])
    moved = store.move_task(completed, ended_at=NOW, next_step_at=None)
    store.count_completed(student_id, rules.time_zone)
    notices.to_elder(store, task, NoticeKind.COMPLETED, student_id)
    if not caller.is_coordinator:
        _report_short_visits(store, task, student_id, rules)
    return _ended_follow_up(task, moved, freed=frozenset({student_id}))


def _report_short_visits(store: Store, task: HelpTask, student_id: int, rules: MatchingRules) -> None:
    assert task.assigned_at is not None, "a held task was assigned"
    if task.read_at - task.assigned_at < rules.shortest_visit:
        count = store.short_visits(student_id, task.read_at, rules.shortest_visit)
        if count >= rules.withdrawals_per_day:
            notices.short_visits(store, task, student_id, count)


def withdraw(store: Store, caller: Caller, task_id: UUID, rules: MatchingRules) -> FollowUp:
    task, offer, _ = _offered(store, caller, task_id)
    if offer.state is OfferState.RELEASED:
        return FollowUp()
    if task.student_id != caller.id:
        raise (
            too_late(offer.state)
            if offer.state is not OfferState.PENDING
            else NotAssigned("You have not accepted this task; reject it instead.")
        )
    follow_up = give_back(store, task, rules)
    withdrawals = store.count_withdrawal(caller.id, rules.withdrawals_per_day)
    notices.withdrew(store, task, caller.id, withdrawals)
    return follow_up


# ---- the elder, or the coordinator ----


def cancel(store: Store, caller: Caller, task_id: UUID) -> FollowUp:
    task = _lock_task(store, task_id)
    if not caller.is_coordinator and task.elder_id != caller.id:
        raise TaskNotFound
    if task.status is TaskStatus.CANCELLED:
        return FollowUp()
    return end_by_cancel(store, task, tell_elder=caller.id != task.elder_id)


def end_by_cancel(store: Store, task: HelpTask, *, tell_elder: bool) -> FollowUp:
    cancelled = task.becoming(TaskStatus.CANCELLED)
    freed = take_back_live_offers(store, task, OfferReason.CANCELLED)
    moved = store.move_task(cancelled, ended_at=NOW, next_step_at=None)
    if task.student_id is not None:
        store.lock_students([task.student_id])
        store.free_student(task.student_id)
        notices.to_student(store, task, NoticeKind.CANCELLED, task.student_id)
        freed |= {task.student_id}
    if tell_elder:
        notices.to_elder(store, task, NoticeKind.CANCELLED)
    return _ended_follow_up(task, moved, freed)


def move_on(store: Store, task_id: UUID, lists: Lists, rules: MatchingRules) -> FollowUp:
    task = _lock_task(store, task_id)
    if task.status not in OPEN:
        raise IllegalTaskTransition(
            f"This task has ended, it is {task.status}: nobody is asked any more.", status=task.status
        )
    if task.status is not TaskStatus.PENDING:
        raise NotAssigned("A student has accepted this task; release it to ask others.")
    freed = take_back_live_offers(store, task, OfferReason.MOVED_ON)
    return combined(settle(store, [task.id], lists, rules).follow_up(), FollowUp(freed=freed))


def release(store: Store, task_id: UUID, rules: MatchingRules) -> FollowUp:
    task = _lock_task(store, task_id)
    follow_up = give_back(store, task, rules)
    notices.to_student(store, task, NoticeKind.RELEASED, _student_of(task))
    return follow_up


def assign(store: Store, scope: StaffScope, task_id: UUID, student_id: int, rules: MatchingRules) -> FollowUp:
    """The coordinator has talked to the student, so duty and distance do not matter. Takes back the live offers of the
    task to other students, and the live offer of another task to this student."""
    if not store.may_be_assigned(scope, student_id):
        raise InvalidValue("studentId", "is not the id of an active student")
    elsewhere = store.live_task_of_students([student_id]).get(student_id)
    wanted = {task_id} if elsewhere is None else {task_id, elsewhere}
    locked = {task.id: task for task in store.lock_tasks(wanted)}
    task = locked.get(task_id)
    if task is None:
        raise TaskNotFound
    if task.is_held and task.student_id == student_id:
        return FollowUp()
    assigned = task.becoming(TaskStatus.ASSIGNED)
    store.lock_students([student_id])
    if not store.is_active_student(student_id):
        raise InvalidValue("studentId", "is not the id of an active student")
    freed, again = _clear_the_way(store, task, student_id, locked)
    student = _take(store, student_id, task)
    store.accept_by_hand(task.id, student_id, rules.time_zone)
    follow_up = _assign(store, task, assigned, student, rules)
    notices.to_student(store, task, NoticeKind.ASSIGNED_TO_YOU, student_id)
    return combined(follow_up, FollowUp(freed=freed, again=again))


def _clear_the_way(
    store: Store, task: HelpTask, student_id: int, locked: Mapping[UUID, HelpTask]
) -> tuple[frozenset[int], frozenset[UUID]]:
    """Takes back the offers of the task to others, and the offer of another task to the student. Returns the students
    who are free again, and the task that has to go on."""
    others = _live_offers(store, task, to_others_than=student_id)
    elsewhere = _task_asking(store, student_id, task, locked)
    if elsewhere is None:
        return _take_back(store, others, OfferReason.ASSIGNED_BY_HAND), frozenset()
    # Together, because only one call that locks actions cannot deadlock.
    to_student = _live_offers(store, elsewhere, to=student_id)
    freed = _take_back(store, [*others, *to_student], OfferReason.ASSIGNED_BY_HAND) - {student_id}
    store.set_due(elsewhere.id)
    return freed, frozenset({elsewhere.id})


def _task_asking(store: Store, student_id: int, task: HelpTask, locked: Mapping[UUID, HelpTask]) -> HelpTask | None:
    """Reads again under the student's lock, because another task may have made an offer meanwhile. If that task is not
    locked, the transaction has to be tried again."""
    elsewhere = store.live_task_of_students([student_id]).get(student_id)
    if elsewhere is None or elsewhere == task.id:
        return None
    if elsewhere not in locked:
        raise Overtaken
    return locked[elsewhere]


# ---- shared by several deeds ----


def _lock_task(store: Store, task_id: UUID) -> HelpTask:
    task = store.lock_task(task_id)
    if task is None:
        raise TaskNotFound
    return task


Offered = tuple[HelpTask, Offer, Sequence[Offer]]
"""A task, the caller's offer for it, and its live offers to others."""


def _offered(store: Store, caller: Caller, task_id: UUID) -> Offered:
    return _offered_later(store, caller, task_id)()


def _offered_later(store: Store, caller: Caller, task_id: UUID) -> Callable[[], Offered]:
    """Locks the task. For a student who was never asked, it does not exist."""
    locked = store.lock_task_later(task_id)
    around = store.offers_around_later(task_id, caller.id)

    def read() -> Offered:
        offer, others = around()
        task = locked()
        if task is None or offer is None or offer.state is OfferState.SKIPPED:
            raise TaskNotFound
        return task, offer, others

    return read


def _accepted_task(store: Store, caller: Caller, task_id: UUID) -> HelpTask:
    task, offer, _ = _offered(store, caller, task_id)
    if task.student_id != caller.id:
        if offer.state is OfferState.PENDING:
            raise NotAssigned("You have not accepted this task yet.")
        raise too_late(offer.state)
    return task


def _student_of(task: HelpTask) -> int:
    assert task.student_id is not None, "a held task has a student"
    return task.student_id


def _take(store: Store, student_id: int, task: HelpTask) -> NamedPerson:
    student = store.take_student(student_id, task.id)
    if student is None:
        raise StudentUnavailable(UNAVAILABLE)
    return student


def _assign(store: Store, task: HelpTask, assigned: Transition, student: NamedPerson, rules: MatchingRules) -> FollowUp:
    moved = store.move_task(
        assigned,
        student_id=student.id,
        assigned_at=NOW,
        waiting=False,
        next_step_at=FromNow(rules.start_limit),
    )
    read_plans = notices.read_plan_of(store, NoticeKind.ON_THE_WAY, task.elder_id)
    return _tell_assigned(store, task, student, moved, read_plans)


def _tell_assigned(store: Store, task: HelpTask, student: NamedPerson, moved: Moved, read_plans: ReadPlans) -> FollowUp:
    notices.on_the_way(store, task, student, read_plans)
    notices.details_shown(store, task, student.id)
    keys = no_offer_keys(task.id, moved.updated_at, moved.next_step_at)
    return FollowUp(keys, unavailable=frozenset({student.id}))


def _start(store: Store, task: HelpTask, rules: MatchingRules) -> FollowUp:
    started = task.becoming(TaskStatus.STARTED)
    assert task.assigned_at is not None, "a held task was assigned"
    # If nothing is due any more, the task was reported as not completed before it was started. Report it only once.
    complete_by = None if task.next_step_at is None else task.assigned_at + rules.complete_limit
    moved = store.move_task(started, started_at=NOW, next_step_at=complete_by)
    notices.to_elder(store, task, NoticeKind.STARTED, task.student_id)
    return FollowUp(no_offer_keys(task.id, moved.updated_at, moved.next_step_at))


def give_back(store: Store, task: HelpTask, rules: MatchingRules) -> FollowUp:
    """ASSIGNED or STARTED to PENDING: the search begins again and leaves out the student who had the task."""
    searching, student_id = task.becoming(TaskStatus.PENDING), _student_of(task)
    store.lock_students([student_id])
    accepted = store.offer_of(task.id, student_id)
    assert accepted is not None, "the student of a held task has accepted an offer for it"
    store.close_offer(accepted, OfferState.RELEASED)
    store.free_student(student_id)
    store.move_task(
        searching,
        student_id=None,
        assigned_at=None,
        started_at=None,
        search_until=FromNow(rules.search_limit),
        next_step_at=NOW,
    )
    notices.to_elder(store, task, NoticeKind.SEARCHING_AGAIN, student_id)
    return FollowUp(again=frozenset({task.id}), freed=frozenset({student_id}))


def take_back_live_offers(store: Store, task: HelpTask, reason: str) -> frozenset[int]:
    """Returns the students whose offers were taken back."""
    return _take_back(store, _live_offers(store, task), reason)


def take_back_offer_to(store: Store, task: HelpTask, student_id: int, reason: str) -> None:
    _take_back(store, _live_offers(store, task, to=student_id), reason)


def _live_offers(
    store: Store, task: HelpTask, *, to: int | None = None, to_others_than: int | None = None
) -> list[Offer]:
    live = store.live_offers([task.id]).get(task.id, [])
    return [offer for offer in live if to in (None, offer.student_id) and offer.student_id != to_others_than]


def _take_back(store: Store, offers: Sequence[Offer], reason: str) -> frozenset[int]:
    for offer in offers:
        store.close_offer(offer, OfferState.WITHDRAWN, reason)
    if offers:
        notices.offers_taken_back(store, offers)
    return frozenset(offer.student_id for offer in offers)


def _ended_follow_up(task: HelpTask, moved: Moved, freed: frozenset[int]) -> FollowUp:
    return FollowUp(no_offer_keys(task.id, moved.updated_at), freed=freed)
