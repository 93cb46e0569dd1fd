"""Fills the database with students and elders who live as in a city, and with finished tasks if asked for.

The same seed makes the same people; a second run adds only those who are missing. Names are made up and no phone number
exists. Refused in production unless `force` is given, because the people would be asked for real tasks.
"""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.city import finished_tasks
from app.jobs.city.add_residents import add_residents
from app.jobs.city.finished_tasks import History
from app.jobs.city.residents import Resident, key_prefix, residents
from app.jobs.engine.execution_context import ExecutionContext
from app.jobs.engine.task import TaskType
from app.settings.settings import Environment
from app.users.models import Role

TASK_TYPE = TaskType.IO_BOUND
MAX_RETRIES = 0

PEOPLE_AT_ONCE = 20_000
TASKS_AT_ONCE = 100_000


class DemoCityParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    students: int = Field(200, ge=0, le=1_000_000, description="How many students.")
    elders: int = Field(400, ge=0, le=1_000_000, description="How many elders.")
    seed: int = Field(1, ge=0, le=1_000_000, description="The same seed makes the same people and places.")
    on_duty: float = Field(0.8, ge=0, le=1, description="Share of the students who are on duty.")
    institutions: list[int] = Field([], description="Ids of institutions; each person belongs to one of them.")
    tasks: int = Field(0, ge=0, le=10_000_000, description="How many finished tasks, with their offers.")
    days: int = Field(60, ge=1, le=3_650, description="How many days the finished tasks are spread over.")
    until: date | None = Field(None, description="The day before which the finished tasks end; today if not given.")
    force: bool = Field(False, description="Needed in production.")


def run(params: DemoCityParams, context: ExecutionContext) -> dict[str, Any]:
    if context.settings.environment is Environment.PRODUCTION and not params.force:
        raise ValueError("This is a production copy: demo people would be asked for real tasks. `force` overrides.")
    total = params.students + params.elders + params.tasks
    added = {"students": 0, "elders": 0, "tasks": 0}
    done = 0
    for key, role, how_many in (
        ("students", Role.STUDENT, params.students),
        ("elders", Role.ELDER, params.elders),
    ):
        people = residents(params.seed, role, how_many, params.institutions)
        while (some := list(islice(people, PEOPLE_AT_ONCE))) and not context.cancelled:
            added[key] += _add(context, role, some, params.on_duty)
            done += len(some)
            context.progress(done, total, key)
    note = None
    if params.tasks and not context.cancelled:
        note = _add_tasks(params, context, added, done, total)
    return {"seed": params.seed, "added": added, "cancelled": context.cancelled, "note": note or _note(added)}


def _add(context: ExecutionContext, role: Role, some: list[Resident], on_duty: float) -> int:
    with context.db.transaction() as conn:
        return add_residents(conn, role, some, on_duty)


def _add_tasks(
    params: DemoCityParams, context: ExecutionContext, added: dict[str, int], done: int, total: int
) -> str | None:
    """Adds nothing to people who have tasks, so that a second run does not write the same history twice."""
    with context.db.transaction() as conn:
        if finished_tasks.has_tasks(conn, key_prefix(params.seed)):
            return "The people of this seed have tasks already, so no finished tasks were added."
    history = _history(params, context)
    for first, last in _bites(params.tasks):
        if context.cancelled:
            break
        with context.db.transaction() as conn:
            added["tasks"] += finished_tasks.add_finished_tasks(conn, history, first, last)
        context.progress(done + last, total, "tasks")
    with context.db.transaction() as conn:
        finished_tasks.count_completed(conn, key_prefix(params.seed), context.settings.time_zone)
    if not added["tasks"] and not context.cancelled:
        return "Finished tasks need elders, and at least seven students."
    return None


def _bites(tasks: int) -> Iterator[tuple[int, int]]:
    for first in range(1, tasks + 1, TASKS_AT_ONCE):
        yield first, min(first + TASKS_AT_ONCE - 1, tasks)


def _history(params: DemoCityParams, context: ExecutionContext) -> History:
    zone = ZoneInfo(context.settings.time_zone)
    last_day = params.until or context.db.now().astimezone(zone).date()
    until = datetime.combine(last_day, time(), zone)
    return History(key_prefix(params.seed), params.seed, params.tasks, until - timedelta(days=params.days), until)


def _note(added: dict[str, int]) -> str | None:
    return None if any(added.values()) else "Everybody of this seed is there already; nothing was added."
