"""Students come and go: on and off duty, from place to place, into and out of the service.

Whoever leaves while being asked is no longer asked. The task is locked before the student, so each function first
looks which task that is; what came in between shows when it looks again under the student's lock, and then the
whole is tried again.
"""

from uuid import UUID

from sqlalchemy import Connection, text

from app.errors import NotFound
from app.matching import offers, service, students, tasks
from app.matching.cascade import Settled
from app.matching.errors import Overtaken
from app.matching.rules import MatchingRules
from app.matching.states import HELD, TaskStatus
from app.users.models import LatLon, Role


def set_availability(conn: Connection, student_id: int, on_duty: bool) -> Settled:
    task = _lock_asking_task(conn, student_id)
    students.lock_students(conn, [student_id])
    conn.execute(
        text("UPDATE students SET on_duty = :on_duty WHERE id = :id AND on_duty <> :on_duty"),
        {"id": student_id, "on_duty": on_duty},
    )
    if on_duty:
        return Settled(freed={student_id})
    return _stop_asking(conn, student_id, task, "OFF_DUTY")


def set_location(conn: Connection, student_id: int, spot: LatLon, rules: MatchingRules) -> Settled:
    task = _lock_asking_task(conn, student_id)
    statement = """
    UPDATE students SET location = ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography,
                        location_at = clock_timestamp()
    WHERE id = :id RETURNING id"""
    moved = conn.execute(text(statement), {"id": student_id, "lat": spot.lat, "lon": spot.lon}).one_or_none()
    if moved is None:
        raise NotFound("There is no such student.")
    if _strayed(conn, student_id, rules.leash_m):
        return _stop_asking(conn, student_id, task, "TOO_FAR")
    return Settled(freed={student_id})


def _strayed(conn: Connection, student_id: int, leash_m: float) -> bool:
    statement = """
    SELECT ST_Distance(t.location, s.location) > :leash_m
    FROM offers o JOIN tasks t ON t.id = o.task_id JOIN students s ON s.id = o.student_id
    WHERE o.student_id = :id AND o.state = 'PENDING'"""
    return bool(conn.execute(text(statement), {"id": student_id, "leash_m": leash_m}).scalar_one_or_none())


def set_active(conn: Connection, user_id: int, active: bool, rules: MatchingRules) -> Settled:
    """Who leaves the service leaves no request hanging: a student's task is searched for again, an elder's is
    cancelled."""
    locked = {task.id: task for task in tasks.lock_tasks(conn, _tasks_of(conn, user_id))}
    role = conn.execute(
        text("UPDATE users SET active = :active, updated_at = clock_timestamp() WHERE id = :id RETURNING role"),
        {"id": user_id, "active": active},
    ).scalar_one_or_none()
    if role is None:
        raise NotFound("There is no such user.")
    if role == Role.STUDENT:
        students.lock_students(conn, [user_id])
        conn.execute(text("UPDATE students SET active = :active WHERE id = :id"), {"id": user_id, "active": active})
    if active:
        return Settled(freed={user_id} if role == Role.STUDENT else set())
    if any(task_id not in locked for task_id in _tasks_of(conn, user_id)):
        raise Overtaken
    settled = Settled()
    for task in locked.values():
        _leave(conn, user_id, task, rules, settled)
    return settled


def _tasks_of(conn: Connection, user_id: int) -> list[UUID]:
    statement = """
    SELECT id FROM tasks WHERE elder_id = :id AND status IN ('PENDING', 'ASSIGNED', 'STARTED')
    UNION SELECT id FROM tasks WHERE student_id = :id AND status IN ('ASSIGNED', 'STARTED')
    UNION SELECT task_id FROM offers WHERE student_id = :id AND state = 'PENDING'"""
    return [row.id for row in conn.execute(text(statement), {"id": user_id})]


def _leave(conn: Connection, user_id: int, task: tasks.Task, rules: MatchingRules, settled: Settled) -> None:
    if task.elder_id == user_id and task.status in (TaskStatus.PENDING, *HELD):
        part = service.end_by_cancel(conn, task, tell_elder=False)
    elif task.student_id == user_id and task.is_held:
        part = service.give_back(conn, task, rules)
    else:
        part = _stop_asking(conn, user_id, task, "INACTIVE")
    settled.merge(part)


def _lock_asking_task(conn: Connection, student_id: int) -> tasks.Task | None:
    task_id = offers.live_task_of_students(conn, [student_id]).get(student_id)
    return None if task_id is None else tasks.lock_task(conn, task_id)


def _stop_asking(conn: Connection, student_id: int, task: tasks.Task | None, reason: str) -> Settled:
    asked_for = offers.live_task_of_students(conn, [student_id]).get(student_id)
    if asked_for is None:
        return Settled()
    if task is None or task.id != asked_for:
        raise Overtaken
    service.take_back_live_offer(conn, task, reason)
    tasks.set_due(conn, task.id)
    return Settled(again={task.id}, lost={student_id})
