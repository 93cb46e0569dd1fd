"""The rules of eligibility: who may be asked for a task. Every statement and every decision about it is built from this
module, so a new rule is one change here.

A task may ask a student if no obstacle applies, the task has neither asked nor skipped them, its elder has not
cancelled on them too often, and no other task is asking them now. In SQL, `s` is the student's row; the task, the
radius and the clock are arguments. In Python, `Candidate` has the answers of SQL for one student, and its `verdict`
says what they mean.

While a task is open, its elder cancels nothing else. So a student whom cancels spare is never on its list, and only
what makes lists and finds waiting tasks asks for `spared`.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from app.matching.rules.liveness import NOW, live
from app.matching.rules.map_cells import MapPoint, metres_to_cell
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import TaskStatus
from app.users.models import LatLon


class Obstacle(StrEnum):
    """Why a candidate is skipped for a task. If several obstacles apply, the first one in this order is the reason."""

    INACTIVE = "INACTIVE"
    OFF_DUTY = "OFF_DUTY"
    NO_LOCATION = "NO_LOCATION"
    HAS_A_TASK = "HAS_A_TASK"
    TOO_FAR = "TOO_FAR"


class OfferReason(StrEnum):
    """What an offer says beside its state: why the student was skipped, why the offer was taken back, or that a
    coordinator has made it."""

    INACTIVE = Obstacle.INACTIVE
    OFF_DUTY = Obstacle.OFF_DUTY
    NO_LOCATION = Obstacle.NO_LOCATION
    HAS_A_TASK = Obstacle.HAS_A_TASK
    TOO_FAR = Obstacle.TOO_FAR
    ACCEPTED_BY_ANOTHER = "ACCEPTED_BY_ANOTHER"
    ASSIGNED_BY_HAND = "ASSIGNED_BY_HAND"
    CANCELLED = "CANCELLED"
    MOVED_ON = "MOVED_ON"


class NotAskedBecause(StrEnum):
    """Why the cascade would not ask a student now: an obstacle, or an offer that was made before. The first one in this
    order is the reason."""

    INACTIVE = Obstacle.INACTIVE
    OFF_DUTY = Obstacle.OFF_DUTY
    NO_LOCATION = Obstacle.NO_LOCATION
    HAS_A_TASK = Obstacle.HAS_A_TASK
    TOO_FAR = Obstacle.TOO_FAR
    ASKED_BEFORE = "ASKED_BEFORE"
    """By this task; also who was skipped."""
    LEFT_IN_PEACE = "LEFT_IN_PEACE"
    """The elder has cancelled on them too often."""
    BEING_ASKED = "BEING_ASKED"
    """By another task."""


class CandidateVerdict(Enum):
    ASK = auto()
    WAIT = auto()
    """Another task is asking the candidate, who stays on the list."""
    SKIP = auto()
    """An obstacle applies, so this task will not ask the candidate any more."""
    DROP = auto()
    """The task has asked or skipped the candidate before, so the candidate was on the list by mistake."""


class Candidate(NamedTuple):
    """A tuple and not a dataclass, because one query makes fifty of them in less than a millisecond."""

    student_id: int
    completed: int = 0
    distance_m: float | None = None
    busy_until: datetime | None = None
    """The deadline of this student's live offer."""
    obstacle: Obstacle | None = None
    seen_before: bool = False
    version: int | None = None
    """The version of the student's row. A different number means that another transaction has changed the row."""

    @property
    def verdict(self) -> CandidateVerdict:
        if self.seen_before:
            return CandidateVerdict.DROP
        if self.obstacle is not None:
            return CandidateVerdict.SKIP
        return CandidateVerdict.ASK if self.busy_until is None else CandidateVerdict.WAIT


RADIUS_M, CELL_M, CANCELS = ":radius_m", ":cell_m", ":cancels"
"""From `MatchingRules.parameters`. A statement that has the task's row may use an expression on it instead."""

# ---- obstacles ----

# The obstacle applies if its condition is not true. These obstacles do not depend on the task.
REQUIRED: Mapping[Obstacle, str] = {
    Obstacle.INACTIVE: "s.active",
    Obstacle.OFF_DUTY: "s.on_duty",
    Obstacle.NO_LOCATION: "s.location IS NOT NULL",
    Obstacle.HAS_A_TASK: "s.open_task_id IS NULL",
}

AVAILABLE = "s.available"
"""The conditions `IN_COLUMN` as a generated column, because the index of the search has this condition. The column is
declared in `users.models`; a test compares the two."""
IN_COLUMN = (Obstacle.INACTIVE, Obstacle.OFF_DUTY, Obstacle.NO_LOCATION, Obstacle.HAS_A_TASK)


def none_of(*obstacles: Obstacle) -> str:
    return " AND ".join(REQUIRED[obstacle] for obstacle in obstacles)


NO_OBSTACLE = " AND ".join([AVAILABLE, *(REQUIRED[obstacle] for obstacle in REQUIRED if obstacle not in IN_COLUMN)])

ACTIVE = none_of(Obstacle.INACTIVE)
UNAVAILABLE = f"{ACTIVE} AND NOT {AVAILABLE}"
"""Active students whom no list holds. With this condition they have an index of their own by place."""

ASSIGNABLE = none_of(Obstacle.INACTIVE, Obstacle.HAS_A_TASK)
"""The student may accept a task, or get one from a coordinator who has talked to them. Duty and location do not matter,
because the people have agreed."""


def first_obstacle(near: str) -> str:
    """NULL if no obstacle applies. A student who does not exist is INACTIVE."""
    required = {**REQUIRED, Obstacle.TOO_FAR: near}
    cases = [f"WHEN ({condition}) IS NOT TRUE THEN '{obstacle}'" for obstacle, condition in required.items()]
    return f"CASE {' '.join(cases)} END"


# ---- distance ----

WIDER = 1.02
"""A circle on the map with one factor for all of it is not quite the circle on the ground."""
CELLS_AROUND = 3
"""A student whose cell is near is not farther beyond the radius than so many cells are wide."""


def distance_m(place: str) -> str:
    """The exact geodesic distance."""
    return f"ST_Distance(s.location, {place})"


def near(distance_m: str, radius_m: str = RADIUS_M) -> str:
    return f"{distance_m} <= {radius_m}"


def cell_is_near(area: str, cell_m: str = CELL_M) -> str:
    """Decides in place of `near` for a task with an `area`, whose place the elder has chosen. It depends on the cell of
    the student alone, so presses from many places find no more than the cell."""
    return f"{middle_on_the_map(cell_m)} <@ {area}"


def middle_on_the_map(cell_m: str = CELL_M, plane: str = "s.plane") -> str:
    x, y = (f"(floor({plane}[{axis}] / {cell_m}) + 0.5) * {cell_m}" for axis in (0, 1))
    return f"point({x}, {y})"


def middles_are_near(place: str, radius_m: str = RADIUS_M, cell_m: str = CELL_M) -> str:
    """Decides in place of `near` about a student who has moved since the press, while the search waits. Each report of
    a place is a question then, so an exact circle would tell its rim to whoever walks towards it. The circle is wider
    by the diagonal of a cell, so that nobody within the radius is missed."""
    on_the_map = f"ST_Transform({place}::geometry, 3395)"
    plane = f"(SELECT point(ST_X(p), ST_Y(p)) FROM {on_the_map} p)"
    student, task = (_on_the_ground(middle_on_the_map(cell_m, point)) for point in ("s.plane", plane))
    diagonal = f"1.5 * {cell_m} * cos(radians(ST_Y({place}::geometry)))"
    return f"ST_Distance({student}, {task}) <= {radius_m} + {diagonal}"


def _on_the_ground(point: str) -> str:
    return f"(SELECT ST_Transform(ST_SetSRID(ST_MakePoint(p[0], p[1]), 3395), 4326)::geography FROM {point} p)"


def near_task(distance_m: str, task: str = "t") -> str:
    return f"""
    CASE WHEN {task}.area IS NOT NULL THEN {cell_is_near(f"{task}.area")}
         WHEN {task}.waiting AND s.location_at > {task}.created_at THEN {middles_are_near(f"{task}.location")}
         ELSE {near(distance_m)} END"""


def near_place(task: str = "t") -> str:
    """`near_task` in a form that can use a geographic index. Its circle is wider, for those whose cell is near."""
    wide = f"ST_DWithin({task}.location, s.location, {RADIUS_M} * {WIDER} + {CELLS_AROUND} * {CELL_M})"
    return f"{wide} AND {near_task(distance_m(f'{task}.location'), task)}"


def has_strayed(student: MapPoint, elder: LatLon, rules: MatchingRules) -> bool:
    """The student who is being asked has moved too far away. The cell of the elder decides, because who walks until the
    offer is withdrawn would find the rim of an exact circle."""
    return metres_to_cell(student, elder, rules.cell_m) > rules.offer_reach_m


# ---- offers ----


def seen_before(task_id: str) -> str:
    """The task has asked or skipped the student. Not EXISTS, for which PostgreSQL may read and hash all offers."""
    return f"(SELECT o.id FROM offers o WHERE o.task_id = {task_id} AND o.student_id = s.id) IS NOT NULL"


def spared(elder_id: str, cancels: str = CANCELS) -> str:
    """Selects the students who were asked for so many tasks of this elder that were cancelled within an hour. They have
    their peace for an hour after the last. The newest tasks are more than an elder may make in two hours."""
    return f"""
    SELECT o.student_id
    FROM (SELECT id, status, ended_at FROM tasks WHERE elder_id = {elder_id} ORDER BY id DESC LIMIT 50) past
    JOIN offers o ON o.task_id = past.id AND o.offered_at IS NOT NULL
    WHERE past.status = '{TaskStatus.CANCELLED}' AND past.ended_at > {NOW} - interval '2 hours'
    GROUP BY o.student_id
    HAVING max(past.ended_at) > {NOW} - interval '1 hour'
       AND (array_agg(past.ended_at ORDER BY past.ended_at DESC))[{cancels}] > max(past.ended_at) - interval '1 hour'"""


def seen_or_spared(task_id: str, elder_id: str) -> str:
    return f"({seen_before(task_id)} OR s.id = ANY (ARRAY({spared(elder_id)})))"


def seen_or_spared_by_one_task(task_id: str, elder_id: str, cancels: str) -> str:
    """The same for many students and one task. The array is built once, and not a subquery run for each."""
    seen = f"SELECT o.student_id FROM offers o WHERE o.task_id = {task_id}"
    return f"s.id = ANY (ARRAY({seen} UNION ALL {spared(elder_id, cancels)}))"


def busy_until(student_id: str = "s.id") -> str:
    """The deadline of the student's live offer, which no other offer can follow before it is closed."""
    return f"(SELECT o.deadline FROM offers o WHERE o.student_id = {student_id} AND {live('o')})"


def not_asked_because(near: str, task_id: str, elder_id: str) -> str:
    """NULL if the cascade may ask the student now."""
    return f"""
    coalesce({first_obstacle(near)},
             CASE WHEN {seen_before(task_id)} THEN '{NotAskedBecause.ASKED_BEFORE}'
                  WHEN s.id = ANY (ARRAY({spared(elder_id)})) THEN '{NotAskedBecause.LEFT_IN_PEACE}'
                  WHEN {busy_until()} IS NOT NULL THEN '{NotAskedBecause.BEING_ASKED}' END)"""


# ---- who may be asked ----


def may_be_asked_later(near: str, ruled_out: str) -> str:
    """True for students whom the task may ask as soon as they are available and not busy."""
    return f"{near} AND NOT ({ruled_out})"


def may_be_listed(near: str, ruled_out: str) -> str:
    """True for the candidates of a task: the students whom it may ask now, or after another task's offer."""
    return f"{NO_OBSTACLE} AND {may_be_asked_later(near, ruled_out)}"


def may_be_asked(near: str, ruled_out: str) -> str:
    return f"{may_be_listed(near, ruled_out)} AND {busy_until()} IS NULL"


def goes_on_searching(task: str, now: str = NOW) -> str:
    """After its search limit, a task asks nobody new."""
    return f"{task}.search_until > {now}"


# ---- the order of candidates ----


def month(time_zone: str, now: str = NOW) -> str:
    """The current month in this time zone. A subselect, so that a statement evaluates it once."""
    return f"(SELECT date_trunc('month', {now} AT TIME ZONE {time_zone})::date)"


def completed_this_month(time_zone: str, now: str = NOW) -> str:
    """The count is stored with its month, so it becomes 0 at local midnight without a statement that resets it."""
    return f"CASE WHEN s.month = {month(time_zone, now)} THEN s.completed ELSE 0 END"
