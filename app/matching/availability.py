"""Users become available and unavailable: students go on and off duty, move, and are activated and deactivated.

Unlike a deed, such a change names no task, but it affects one: a student who becomes unavailable loses a live offer.
The lock order is task before student, so each function first reads which task has the live offer and locks it. Under
the student's lock it reads the task again. If that is another task by then, the function raises `Overtaken`, and the
transaction is tried again.
"""

from collections.abc import Mapping
from uuid import UUID

from app.foundation.errors import NotFound
from app.matching import deeds, notices
from app.matching.follow_up import FollowUp, combined
from app.matching.rules.eligibility import Obstacle
from app.matching.rules.errors import Overtaken, Suspended
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import OPEN
from app.matching.store.records import HelpTask, LeftBehind
from app.matching.store.stores import Store
from app.users.contract import StaffScope
from app.users.models import LatLon, Role


def set_availability(store: Store, student_id: int, on_duty: bool) -> FollowUp:
    task = _lock_asking_task(store, student_id)
    store.lock_students([student_id])
    if on_duty and store.is_suspended(student_id):
        raise Suspended("You are off duty until a coordinator says otherwise.")
    store.set_on_duty(student_id, on_duty)
    return _after_duty(store, student_id, task, on_duty)


def set_duty(store: Store, scope: StaffScope, student_id: int, on_duty: bool) -> FollowUp:
    """For a coordinator. A student who is put off duty cannot go on duty alone."""
    task = _lock_asking_task(store, student_id)
    store.lock_students([student_id])
    if not store.may_be_assigned(scope, student_id) or not store.set_duty(student_id, on_duty):
        raise NotFound("There is no such student.")
    return _after_duty(store, student_id, task, on_duty)


def _after_duty(store: Store, student_id: int, task: HelpTask | None, on_duty: bool) -> FollowUp:
    if on_duty:
        return FollowUp(freed=frozenset({student_id}))
    return _stop_asking(store, student_id, task, Obstacle.OFF_DUTY)


def set_location(
    store: Store, student_id: int, spot: LatLon, rules: MatchingRules, *, is_reported: bool = True
) -> FollowUp:
    """A place that the student's phone reports does not count yet if nobody can have come there so fast. A place that
    an admin has entered counts at once."""
    task = _lock_asking_task(store, student_id)
    # A task can wait only for a student with a live offer who is near.
    waiting_before: set[UUID] = set() if task is None else store.tasks_waiting_for([student_id], rules)
    if not store.place_student(student_id, spot, rules if is_reported else None):
        raise NotFound("There is no such student.")
    if store.has_strayed(student_id, rules):
        follow_up = _stop_asking(store, student_id, task, Obstacle.TOO_FAR)
    else:
        follow_up = FollowUp(freed=frozenset({student_id}))
    if not waiting_before:
        return follow_up
    out_of_reach = waiting_before - store.tasks_waiting_for([student_id], rules)
    return combined(follow_up, FollowUp(again=frozenset(out_of_reach)))


def set_active(
    store: Store, user_id: int, active: bool, rules: MatchingRules, *, keeps_devices: bool = False
) -> FollowUp:
    """Deactivating an elder cancels their open task. For the task of a deactivated student the search begins again. A
    person who was deactivated gets no more messages."""
    locked = {task.id: task for task in store.lock_tasks(store.tasks_of(user_id))}
    role = store.set_active_user(user_id, active)
    if role is None:
        raise NotFound("There is no such user.")
    if not (active or keeps_devices):
        store.drop_devices(user_id)
    if role is Role.STUDENT:
        store.lock_students([user_id])
        store.set_active_student(user_id, active)
    if active:
        return FollowUp(freed=frozenset({user_id}) if role is Role.STUDENT else frozenset())
    return _leave_tasks(store, user_id, locked, rules)


def leave_service(store: Store, user_id: int, rules: MatchingRules) -> tuple[FollowUp, LeftBehind]:
    """Ends what a user still has who was deactivated without a look at their tasks. The coordinators are told of a task
    that was closed, and not the elder, who gets no more messages. Does nothing for a user who is active again."""
    locked = {task.id: task for task in store.lock_tasks(store.tasks_of(user_id))}
    role = store.lock_inactive(user_id)
    if role is None:
        return FollowUp(), LeftBehind()
    if role is Role.STUDENT:
        store.lock_students([user_id])
    left = store.left_behind([user_id])
    follow_up = _leave_tasks(store, user_id, locked, rules)
    for task in locked.values():
        if task.elder_id == user_id and task.status in OPEN:
            notices.elder_left(store, task)
    return follow_up, left


def _leave_tasks(store: Store, user_id: int, locked: Mapping[UUID, HelpTask], rules: MatchingRules) -> FollowUp:
    if any(task_id not in locked for task_id in store.tasks_of(user_id)):
        raise Overtaken
    return combined(*[_leave_task(store, user_id, task, rules) for task in locked.values()])


def _leave_task(store: Store, user_id: int, task: HelpTask, rules: MatchingRules) -> FollowUp:
    if task.elder_id == user_id and task.status in OPEN:
        return deeds.end_by_cancel(store, task, tell_elder=False)
    if task.student_id == user_id and task.is_held:
        return deeds.give_back(store, task, rules)
    return _stop_asking(store, user_id, task, Obstacle.INACTIVE)


def _lock_asking_task(store: Store, student_id: int) -> HelpTask | None:
    task_id = store.live_task_of_students([student_id]).get(student_id)
    return None if task_id is None else store.lock_task(task_id)


def _stop_asking(store: Store, student_id: int, task: HelpTask | None, reason: Obstacle) -> FollowUp:
    asked_for = store.live_task_of_students([student_id]).get(student_id)
    if asked_for is None:
        return FollowUp()
    if task is None or task.id != asked_for:
        raise Overtaken
    deeds.take_back_offer_to(store, task, student_id, reason)
    store.set_due(task.id)
    return FollowUp(again=frozenset({task.id}), unavailable=frozenset({student_id}))
