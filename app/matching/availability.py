"""Students come and go: on and off duty, from place to place, into and out of the service.

Whoever leaves while being asked is no longer asked. The task is locked before the student, so each function first
looks which task that is; what came in between shows when it looks again under the student's lock, and then the
whole is tried again.
"""

from uuid import UUID

from app.foundation.errors import NotFound
from app.matching import deeds
from app.matching.cascade import Settled
from app.matching.errors import Overtaken
from app.matching.rules import MatchingRules
from app.matching.states import HELD, TaskStatus
from app.matching.store.records import Task
from app.matching.store.stores import Store
from app.users.models import LatLon, Role


def set_availability(store: Store, student_id: int, on_duty: bool) -> Settled:
    task = _lock_asking_task(store, student_id)
    store.lock_students([student_id])
    store.set_on_duty(student_id, on_duty)
    if on_duty:
        return Settled(freed={student_id})
    return _stop_asking(store, student_id, task, "OFF_DUTY")


def set_location(store: Store, student_id: int, spot: LatLon, rules: MatchingRules) -> Settled:
    task = _lock_asking_task(store, student_id)
    # Only who is being asked is waited for, and only by tasks within reach of where they were.
    waited: set[UUID] = set() if task is None else store.tasks_waiting_for([student_id], rules.radius_m)
    if not store.place_student(student_id, spot):
        raise NotFound("There is no such student.")
    if store.has_strayed(student_id, rules.leash_m):
        settled = _stop_asking(store, student_id, task, "TOO_FAR")
    else:
        settled = Settled(freed={student_id})
    if waited:
        settled.again |= waited - store.tasks_waiting_for([student_id], rules.radius_m)
    return settled


def set_active(store: Store, user_id: int, active: bool, rules: MatchingRules) -> Settled:
    """Who leaves the service leaves no request hanging: a student's task is searched for again, an elder's is
    cancelled."""
    locked = {task.id: task for task in store.lock_tasks(store.tasks_of(user_id))}
    role = store.set_active_user(user_id, active)
    if role is None:
        raise NotFound("There is no such user.")
    if role is Role.STUDENT:
        store.lock_students([user_id])
        store.set_active_student(user_id, active)
    if active:
        return Settled(freed={user_id} if role is Role.STUDENT else set())
    if any(task_id not in locked for task_id in store.tasks_of(user_id)):
        raise Overtaken
    settled = Settled()
    for task in locked.values():
        _leave(store, user_id, task, rules, settled)
    return settled


def _leave(store: Store, user_id: int, task: Task, rules: MatchingRules, settled: Settled) -> None:
    if task.elder_id == user_id and task.status in (TaskStatus.PENDING, *HELD):
        part = deeds.end_by_cancel(store, task, tell_elder=False)
    elif task.student_id == user_id and task.is_held:
        part = deeds.give_back(store, task, rules)
    else:
        part = _stop_asking(store, user_id, task, "INACTIVE")
    settled.merge(part)


def _lock_asking_task(store: Store, student_id: int) -> Task | None:
    task_id = store.live_task_of_students([student_id]).get(student_id)
    return None if task_id is None else store.lock_task(task_id)


def _stop_asking(store: Store, student_id: int, task: Task | None, reason: str) -> Settled:
    asked_for = store.live_task_of_students([student_id]).get(student_id)
    if asked_for is None:
        return Settled()
    if task is None or task.id != asked_for:
        raise Overtaken
    deeds.take_back_live_offer(store, task, reason)
    store.set_due(task.id)
    return Settled(again={task.id}, lost={student_id})
