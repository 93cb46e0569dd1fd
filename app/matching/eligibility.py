"""The rules of eligibility, as parts of SQL. Every statement that decides who may be asked is built from these parts,
so a new rule is one change here.

A student may be asked for a task if no obstacle applies, the task has never asked them, and no other task is asking
them now. In all parts `s` is the student's row; other rows and values are arguments.
"""

from collections.abc import Mapping
from enum import StrEnum

from app.matching.liveness import live


class Obstacle(StrEnum):
    """Why a candidate is skipped for a task. If several obstacles apply, the first one in this order is the reason."""

    INACTIVE = "INACTIVE"
    OFF_DUTY = "OFF_DUTY"
    NO_LOCATION = "NO_LOCATION"
    HAS_A_TASK = "HAS_A_TASK"
    TOO_FAR = "TOO_FAR"


# The obstacle applies if its condition is not true. These obstacles do not depend on the task.
REQUIRED: Mapping[Obstacle, str] = {
    Obstacle.INACTIVE: "s.active",
    Obstacle.OFF_DUTY: "s.on_duty",
    Obstacle.NO_LOCATION: "s.location IS NOT NULL",
    Obstacle.HAS_A_TASK: "s.open_task_id IS NULL",
}

AVAILABLE = "s.available"
"""All conditions of `REQUIRED` as a generated column, because the index of the search has this condition. The column is
declared in `users.models`; a test compares the two."""


def without(*obstacles: Obstacle) -> str:
    """The condition that none of these obstacles applies."""
    return " AND ".join(REQUIRED[obstacle] for obstacle in obstacles)


ACTIVE = without(Obstacle.INACTIVE)

ASSIGNABLE = without(Obstacle.INACTIVE, Obstacle.HAS_A_TASK)
"""The student may accept a task, or get one from a coordinator who has talked to them. Duty and location do not matter,
because the people have agreed."""


def first_obstacle(distance_m: str, radius_m: str) -> str:
    """NULL if no obstacle applies. A student who does not exist is INACTIVE."""
    required = {**REQUIRED, Obstacle.TOO_FAR: f"{distance_m} <= {radius_m}"}
    cases = [f"WHEN ({condition}) IS NOT TRUE THEN '{obstacle}'" for obstacle, condition in required.items()]
    return f"CASE {' '.join(cases)} END"


def distance_m(place: str) -> str:
    """The exact geodesic distance."""
    return f"ST_Distance(s.location, {place})"


def within(place: str, radius_m: str) -> str:
    """The same limit as `TOO_FAR`, in a form that can use a geographic index."""
    return f"ST_DWithin({place}, s.location, {radius_m})"


def never_asked(task_id: str) -> str:
    """True if the task has neither asked nor skipped the student."""
    return f"NOT EXISTS (SELECT FROM offers o WHERE o.task_id = {task_id} AND o.student_id = s.id)"


def never_asked_by_one_task(task_id: str) -> str:
    """`never_asked` for many students and one task. The array is built once; with NOT EXISTS, PostgreSQL would run the
    subquery for every candidate."""
    return f"s.id <> ALL (ARRAY(SELECT o.student_id FROM offers o WHERE o.task_id = {task_id}))"


def not_being_asked() -> str:
    return f"NOT EXISTS (SELECT FROM offers o WHERE o.student_id = s.id AND {live('o')})"


def month(time_zone: str) -> str:
    """The current month in this time zone. A subselect, so that a statement evaluates it once."""
    return f"(SELECT date_trunc('month', clock_timestamp() AT TIME ZONE {time_zone})::date)"


def completed_this_month(time_zone: str) -> str:
    """The count is stored with its month, so it becomes 0 at local midnight without a statement that resets it."""
    return f"CASE WHEN s.month = {month(time_zone)} THEN s.completed ELSE 0 END"
