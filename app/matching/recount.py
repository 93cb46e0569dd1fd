"""Computes again what tasks and students repeat of other rows, and repairs rows that have drifted.

Reading takes no lock. A repair locks tasks by id, or students by id, never both in one transaction, and decides in a
new statement under the lock. Rows that another transaction has locked or changed meanwhile are left to a later call.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection

from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.records import StudentDrift, TaskDrift
from app.matching.store.stores import Store
from app.settings.settings import Settings


def drifting_students(conn: Connection, time_zone: str) -> list[StudentDrift]:
    """The students whose count of this month, open task or activity is not that of the tasks and users."""
    return Store(conn).drifting_students(time_zone)


def drifting_tasks(conn: Connection, after: UUID, until: UUID) -> list[TaskDrift]:
    """The tasks with ids in this range whose counts of asked and skipped students are not those of the offers."""
    return Store(conn).drifting_tasks(after, until)


def end_of_portion(conn: Connection, after: UUID, most: int) -> UUID | None:
    return Store(conn).end_of_portion(after, most)


def repair_students(conn: Connection, drifts: Sequence[StudentDrift], time_zone: str) -> set[int]:
    """Returns the students that were repaired. The others have changed since their drift was found, or are locked."""
    store = Store(conn)
    locked = store.lock_students([drift.student_id for drift in drifts], skip_locked=True)
    return store.repair_students([drift for drift in drifts if drift.student_id in locked], time_zone)


def repair_tasks(conn: Connection, task_ids: Sequence[UUID]) -> set[UUID]:
    """Returns the tasks whose counts are right now. The others are locked."""
    store = Store(conn)
    locked = store.lock_tasks_by_id(task_ids)
    store.repair_tasks(locked)
    return set(locked)


def wake_searches(conn: Connection, student_ids: Sequence[int], settings: Settings) -> int:
    """Makes searches due that wait for one of these students, who were freed by a repair. Call it after its commit."""
    store = Store(conn)
    waiting = store.oldest_waiting_tasks(student_ids, MatchingRules.from_settings(settings))
    for task_id in (locked := store.lock_tasks_by_id(waiting)):
        store.set_due(task_id)
    return len(locked)
