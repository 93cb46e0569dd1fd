"""Who may be asked. Every statement that decides this is built from the parts below, so a new rule is one change here.

A student may be asked for a task if no obstacle applies, the task has never asked them, and no other task is asking
them now. In all parts `s` is the student's row; everything else that a part speaks of is an argument.
"""

from collections.abc import Mapping
from enum import StrEnum

from app.matching.liveness import live


class Obstacle(StrEnum):
    """Why a candidate is skipped for a task. Where several apply, the first one is the reason."""

    INACTIVE = "INACTIVE"
    OFF_DUTY = "OFF_DUTY"
    NO_LOCATION = "NO_LOCATION"
    HAS_A_TASK = "HAS_A_TASK"
    TOO_FAR = "TOO_FAR"


# What must be true of the student, whatever the task; otherwise this obstacle applies.
REQUIRED: Mapping[Obstacle, str] = {
    Obstacle.INACTIVE: "s.active",
    Obstacle.OFF_DUTY: "s.on_duty",
    Obstacle.NO_LOCATION: "s.location IS NOT NULL",
    Obstacle.HAS_A_TASK: "s.open_task_id IS NULL",
}

AVAILABLE = "s.available"
"""All of `REQUIRED`, as a generated column, because the index that the search reads has this condition. The column is
declared in `users.models`; a test compares the two."""


def without(*obstacles: Obstacle) -> str:
    """None of these applies."""
    return " AND ".join(REQUIRED[obstacle] for obstacle in obstacles)


ACTIVE = without(Obstacle.INACTIVE)

ASSIGNABLE = without(Obstacle.INACTIVE, Obstacle.HAS_A_TASK)
"""May be given a task that they accept, or that a coordinator assigns after talking to them. Duty and place are between
the people."""


def first_obstacle(distance_m: str, radius_m: str) -> str:
    """NULL where none applies. A student who does not exist is INACTIVE."""
    required = {**REQUIRED, Obstacle.TOO_FAR: f"{distance_m} <= {radius_m}"}
    cases = [f"WHEN ({condition}) IS NOT TRUE THEN '{obstacle}'" for obstacle, condition in required.items()]
    return f"CASE {' '.join(cases)} END"


def distance_m(place: str) -> str:
    """The exact geodesic distance."""
    return f"ST_Distance(s.location, {place})"


def within(place: str, radius_m: str) -> str:
    """The same limit as `TOO_FAR`, in the form that a geographic index answers."""
    return f"ST_DWithin({place}, s.location, {radius_m})"


def never_asked(task_id: str) -> str:
    """Neither asked nor skipped."""
    return f"NOT EXISTS (SELECT FROM offers o WHERE o.task_id = {task_id} AND o.student_id = s.id)"


def never_asked_by_one_task(task_id: str) -> str:
    """The same for many students and one task. It is an array, because PostgreSQL would otherwise compare every
    candidate with a plan of its own."""
    return f"s.id <> ALL (ARRAY(SELECT o.student_id FROM offers o WHERE o.task_id = {task_id}))"


def not_being_asked() -> str:
    return f"NOT EXISTS (SELECT FROM offers o WHERE o.student_id = s.id AND {live('o')})"


def month(time_zone: str) -> str:
    """The current month where the service is. A subselect, so that a statement reads it once."""
    return f"(SELECT date_trunc('month', clock_timestamp() AT TIME ZONE {time_zone})::date)"


def completed_this_month(time_zone: str) -> str:
    """A count belongs to its month, so it ends at local midnight without a statement that resets it."""
    return f"CASE WHEN s.month = {month(time_zone)} THEN s.completed ELSE 0 END"
