"""What people do to a task: press, accept, reject, start, complete, withdraw, cancel, and the coordinator's hands.

Each function runs in the caller's transaction, takes the locks in the order `store.py` states, and returns what has
to follow the commit. A step that frees a student leaves the next offer to a transaction of its own, because
students are locked once in a transaction; the row says meanwhile that the next step is due.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, text

from app.errors import InvalidValue, TooManyRequests
from app.ids import uuid7
from app.matching import candidates, notices, offers, students, tasks
from app.matching.cascade import Settled, settle
from app.matching.contract import NewTask
from app.matching.errors import (
    IdempotencyKeyReused,
    NotAssigned,
    Overtaken,
    StudentUnavailable,
    TaskNotFound,
    too_late,
)
from app.matching.offers import Offer
from app.matching.rules import MatchingRules
from app.matching.states import OfferState, TaskStatus, check_task_step
from app.matching.tasks import NOW, Moved, Task, in_the_future
from app.matching.words import Message
from app.users.models import Caller, LatLon, Role

Lists = Mapping[UUID, Sequence[int]]


@dataclass(frozen=True)
class Created:
    task_id: UUID
    created: bool
    candidates: Sequence[int] = ()


# ---- the elder ----


def press(conn: Connection, new: NewTask, idempotency_key: str | None, rules: MatchingRules) -> Created:
    """A second press finds the task of the first one, also when both arrive at the same instant. The elder's row is
    held until the task is there, so that whoever deactivates the elder meanwhile finds it."""
    home = _home_of_elder(conn, new.elder_id)
    known = _pressed_before(conn, new, idempotency_key)
    if known is not None:
        return Created(known.id, False)
    if tasks.count_recent_tasks(conn, new.elder_id, rules.tasks_per_minute) >= rules.tasks_per_minute:
        raise TooManyRequests("Too many new requests in a minute; wait a moment.", retry_after_s=60)
    created = _create(conn, new, new.location or home, idempotency_key, rules)
    if created is None:
        raise Overtaken
    return created


def _home_of_elder(conn: Connection, elder_id: int) -> LatLon | None:
    statement = """
    SELECT role, active, ST_Y(home::geometry) AS lat, ST_X(home::geometry) AS lon FROM users WHERE id = :id FOR SHARE"""
    row = conn.execute(text(statement), {"id": elder_id}).one_or_none()
    if row is None or row.role != Role.ELDER or not row.active:
        raise InvalidValue("elderId", "is not the id of an active elder")
    return None if row.lat is None else LatLon(row.lat, row.lon)


def _pressed_before(conn: Connection, new: NewTask, idempotency_key: str | None) -> Task | None:
    if idempotency_key is not None:
        known = tasks.find_task_by_key(conn, new.elder_id, idempotency_key)
        if known is not None:
            if known.note != new.note or (new.location is not None and known.spot != new.location):
                raise IdempotencyKeyReused("This Idempotency-Key was used for a different request.")
            return known
    return tasks.find_open_task(conn, new.elder_id)


def _create(
    conn: Connection, new: NewTask, spot: LatLon | None, idempotency_key: str | None, rules: MatchingRules
) -> Created | None:
    if spot is None:
        raise InvalidValue("location", "is needed, because this elder has no home on file")
    task_id = uuid7()
    ranking = candidates.rank(conn, task_id, spot, radius_m=rules.radius_m, cap=rules.cap, time_zone=rules.time_zone)
    inserted = tasks.insert_task(
        conn,
        task_id=task_id,
        elder_id=new.elder_id,
        note=new.note,
        spot=spot,
        listed=ranking.eligible,
        search_limit=rules.search_limit,
        idempotency_key=idempotency_key,
    )
    return Created(task_id, True, [item.student_id for item in ranking.candidates]) if inserted else None


# ---- the student who is being asked ----


def accept(conn: Connection, caller: Caller, task_id: UUID, rules: MatchingRules) -> Settled:
    task, offer = _asked(conn, caller, task_id)
    if offer.state is OfferState.ACCEPTED:
        return Settled()
    if offer.state is not OfferState.PENDING or offer.overdue:
        raise too_late(offer.state)
    students.lock_students(conn, [caller.id])
    if not offers.accept_offer(conn, offer):
        raise too_late(OfferState.EXPIRED)
    return _assign(conn, task, caller.id, rules)


def reject(conn: Connection, caller: Caller, task_id: UUID, lists: Lists, rules: MatchingRules) -> Settled:
    task, offer = _asked(conn, caller, task_id)
    if offer.state is OfferState.REJECTED:
        return Settled()
    if offer.state is not OfferState.PENDING or offer.overdue:
        raise too_late(offer.state)
    offers.close_offer(conn, offer, OfferState.REJECTED)
    settled = settle(conn, [task.id], lists, rules)
    settled.freed.add(caller.id)
    return settled


# ---- the student who has the task ----


def start(conn: Connection, caller: Caller, task_id: UUID, rules: MatchingRules) -> Settled:
    task = _own(conn, caller, task_id)
    return Settled() if task.status is TaskStatus.STARTED else _start(conn, task, rules)


def complete(conn: Connection, caller: Caller, task_id: UUID, rules: MatchingRules) -> Settled:
    """The student starts before completing. A coordinator who completes what the student forgot to start takes the
    task through both steps."""
    task = _locked(conn, task_id) if caller.is_coordinator else _own(conn, caller, task_id)
    if task.status is TaskStatus.COMPLETED:
        return Settled()
    if caller.is_coordinator and task.status is TaskStatus.ASSIGNED:
        _start(conn, task, rules)
        task = _locked(conn, task_id)
    check_task_step(task.status, TaskStatus.COMPLETED)
    student_id = _holder(task)
    students.lock_students(conn, [student_id])
    moved = tasks.move_task(conn, task, TaskStatus.COMPLETED, ended_at=NOW, next_step_at=None)
    students.count_completed(conn, student_id, rules.time_zone)
    notices.to_elder(conn, task, Message.COMPLETED, student_id)
    return _ended(task, moved, freed={student_id})


def withdraw(conn: Connection, caller: Caller, task_id: UUID, rules: MatchingRules) -> Settled:
    task, offer = _asked(conn, caller, task_id)
    if offer.state is OfferState.RELEASED:
        return Settled()
    if task.student_id != caller.id:
        raise (
            too_late(offer.state)
            if offer.state is not OfferState.PENDING
            else NotAssigned("You have not accepted this task; reject it instead.")
        )
    check_task_step(task.status, TaskStatus.PENDING)
    return give_back(conn, task, rules)


# ---- either side, and the coordinator ----


def cancel(conn: Connection, caller: Caller, task_id: UUID) -> Settled:
    task = _locked(conn, task_id)
    if not caller.is_coordinator and task.elder_id != caller.id:
        raise TaskNotFound
    if task.status is TaskStatus.CANCELLED:
        return Settled()
    return end_by_cancel(conn, task, tell_elder=caller.id != task.elder_id)


def end_by_cancel(conn: Connection, task: Task, *, tell_elder: bool) -> Settled:
    check_task_step(task.status, TaskStatus.CANCELLED)
    freed = take_back_live_offer(conn, task, "CANCELLED")
    moved = tasks.move_task(conn, task, TaskStatus.CANCELLED, ended_at=NOW, next_step_at=None)
    if task.student_id is not None:
        students.lock_students(conn, [task.student_id])
        students.free_student(conn, task.student_id)
        notices.to_student(conn, task, Message.CANCELLED, task.student_id)
        freed = {task.student_id}
    if tell_elder:
        notices.to_elder(conn, task, Message.CANCELLED)
    return _ended(task, moved, freed)


def move_on(conn: Connection, task_id: UUID, lists: Lists, rules: MatchingRules) -> Settled:
    task = _locked(conn, task_id)
    if task.status is not TaskStatus.PENDING:
        raise NotAssigned(f"A task that is {task.status} is not asking anybody.")
    freed = take_back_live_offer(conn, task, "MOVED_ON")
    settled = settle(conn, [task.id], lists, rules)
    settled.freed |= freed
    return settled


def release(conn: Connection, task_id: UUID, rules: MatchingRules) -> Settled:
    task = _locked(conn, task_id)
    check_task_step(task.status, TaskStatus.PENDING)
    settled = give_back(conn, task, rules)
    notices.to_student(conn, task, Message.RELEASED, _holder(task))
    return settled


def assign(conn: Connection, task_id: UUID, student_id: int, rules: MatchingRules) -> Settled:
    """By hand: the coordinator has talked to the student, so duty and distance do not matter. Whatever offers
    stand in the way are taken back."""
    elsewhere = offers.live_task_of_students(conn, [student_id]).get(student_id)
    wanted = {task_id} if elsewhere is None else {task_id, elsewhere}
    locked = {task.id: task for task in tasks.lock_tasks(conn, wanted)}
    task = locked.get(task_id)
    if task is None:
        raise TaskNotFound
    if task.is_held and task.student_id == student_id:
        return Settled()
    check_task_step(task.status, TaskStatus.ASSIGNED)
    students.lock_students(conn, [student_id])
    if not students.is_active_student(conn, student_id):
        raise InvalidValue("studentId", "is not the id of an active student")
    freed: set[int] = set()
    own = offers.offer_of(conn, task_id, student_id)
    if own is None or own.state is not OfferState.PENDING:
        freed = take_back_live_offer(conn, task, "ASSIGNED_BY_HAND")
    again = _take_back_elsewhere(conn, student_id, task, locked)
    offers.accept_by_hand(conn, task.id, student_id, rules.time_zone)
    settled = _assign(conn, task, student_id, rules)
    notices.to_student(conn, task, Message.ASSIGNED_TO_YOU, student_id)
    settled.again |= again
    settled.freed |= freed
    return settled


def _take_back_elsewhere(conn: Connection, student_id: int, task: Task, locked: Mapping[UUID, Task]) -> set[UUID]:
    """Read again under the student's lock: an offer that came meanwhile belongs to a task that is not locked."""
    elsewhere = offers.live_task_of_students(conn, [student_id]).get(student_id)
    if elsewhere is None or elsewhere == task.id:
        return set()
    if elsewhere not in locked:
        raise Overtaken
    take_back_live_offer(conn, locked[elsewhere], "ASSIGNED_BY_HAND")
    tasks.set_due(conn, elsewhere)
    return {elsewhere}


# ---- pieces ----


def _locked(conn: Connection, task_id: UUID) -> Task:
    task = tasks.lock_task(conn, task_id)
    if task is None:
        raise TaskNotFound
    return task


def _asked(conn: Connection, caller: Caller, task_id: UUID) -> tuple[Task, Offer]:
    """The task and the caller's offer for it. Who was never asked does not learn that the task exists."""
    task = _locked(conn, task_id)
    offer = offers.offer_of(conn, task_id, caller.id)
    if offer is None or offer.state is OfferState.SKIPPED:
        raise TaskNotFound
    return task, offer


def _own(conn: Connection, caller: Caller, task_id: UUID) -> Task:
    task, offer = _asked(conn, caller, task_id)
    if task.student_id != caller.id:
        if offer.state is OfferState.PENDING:
            raise NotAssigned("You have not accepted this task yet.")
        raise too_late(offer.state)
    return task


def _holder(task: Task) -> int:
    assert task.student_id is not None, "a held task has a student"
    return task.student_id


def _assign(conn: Connection, task: Task, student_id: int, rules: MatchingRules) -> Settled:
    if not students.take_student(conn, student_id, task.id):
        raise StudentUnavailable("This student has another task, or is not active.")
    moved = tasks.move_task(
        conn,
        task,
        TaskStatus.ASSIGNED,
        student_id=student_id,
        assigned_at=NOW,
        waiting=False,
        next_step_at=in_the_future("start_limit", rules.start_limit),
    )
    notices.to_elder(conn, task, Message.ON_THE_WAY, student_id)
    settled = Settled(lost={student_id})
    settled.drop_keys(task.id, moved.updated_at, moved.next_step_at)
    return settled


def _start(conn: Connection, task: Task, rules: MatchingRules) -> Settled:
    check_task_step(task.status, TaskStatus.STARTED)
    assert task.assigned_at is not None, "a held task was assigned"
    # Where no step is left, it was reported as not completed before it even started; once is enough.
    complete_by = None if task.next_step_at is None else task.assigned_at + rules.complete_limit
    moved = tasks.move_task(conn, task, TaskStatus.STARTED, started_at=NOW, next_step_at=complete_by)
    notices.to_elder(conn, task, Message.STARTED, task.student_id)
    settled = Settled()
    settled.drop_keys(task.id, moved.updated_at, moved.next_step_at)
    return settled


def give_back(conn: Connection, task: Task, rules: MatchingRules) -> Settled:
    """ASSIGNED or STARTED to PENDING: the search begins again, without the student who had the task."""
    student_id = _holder(task)
    students.lock_students(conn, [student_id])
    accepted = offers.offer_of(conn, task.id, student_id)
    assert accepted is not None, "whoever holds a task has accepted an offer for it"
    offers.close_offer(conn, accepted, OfferState.RELEASED)
    students.free_student(conn, student_id)
    tasks.move_task(
        conn,
        task,
        TaskStatus.PENDING,
        student_id=None,
        assigned_at=None,
        started_at=None,
        search_until=in_the_future("search_limit", rules.search_limit),
        next_step_at=NOW,
    )
    notices.to_elder(conn, task, Message.SEARCHING_AGAIN, student_id)
    return Settled(again={task.id}, freed={student_id})


def take_back_live_offer(conn: Connection, task: Task, reason: str) -> set[int]:
    """The students, one or none, who were being asked and now are not."""
    live = offers.live_offers(conn, [task.id]).get(task.id)
    if live is None:
        return set()
    offers.close_offer(conn, live, OfferState.WITHDRAWN, reason)
    notices.offer_taken_back(conn, task.id, live.student_id)
    return {live.student_id}


def _ended(task: Task, moved: Moved, freed: set[int]) -> Settled:
    settled = Settled(freed=freed)
    settled.drop_keys(task.id, moved.updated_at)
    return settled
