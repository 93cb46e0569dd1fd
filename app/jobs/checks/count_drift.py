"""Finds rows whose kept values have drifted, repairs them in bites, and collects what it found for the result."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from app.db.database import Database
from app.matching import service as matching
from app.matching.contract import StudentDrift, TaskDrift
from app.settings.settings import Settings

BITE = 100
"""Rows that one transaction locks. Takes a few milliseconds."""
PASSES = 5
"""How often rows are tried that another transaction has locked or changed meanwhile."""
PAUSE_S = 0.1
NO_TASK = UUID(int=0)
LAST_TASK = UUID(int=2**128 - 1)

Item = TypeVar("Item")
Example = dict[str, Any]


@dataclass
class Drift:
    """What was found of one kind."""

    examples_at_most: int
    found: int = 0
    repaired: int = 0
    examples: list[Example] = field(default_factory=list[Example])

    def add(self, example: Example) -> None:
        self.found += 1
        if len(self.examples) < self.examples_at_most:
            self.examples.append(example)

    def to_json(self, *, fix: bool) -> dict[str, Any]:
        left = {"repaired": self.repaired, "left": self.found - self.repaired} if fix else {}
        return {"drifted": self.found, **left, "examples": self.examples}


def kept_and_right(drift: StudentDrift) -> dict[str, tuple[Any, Any]]:
    pairs = {
        "completed": (drift.kept_completed, drift.completed),
        "open_task_id": (_id(drift.kept_open_task_id), _id(drift.open_task_id)),
        "active": (drift.kept_active, drift.active),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def student_example(drift: StudentDrift) -> Example:
    return {"student_id": drift.student_id, **_examples(kept_and_right(drift))}


def task_example(drift: TaskDrift) -> Example:
    pairs = {"asked": (drift.kept_asked, drift.asked), "skipped": (drift.kept_skipped, drift.skipped)}
    return {"task_id": str(drift.task_id), **_examples({n: pair for n, pair in pairs.items() if pair[0] != pair[1]})}


def _examples(pairs: dict[str, tuple[Any, Any]]) -> Example:
    return {name: {"kept": kept, "right": right} for name, (kept, right) in pairs.items()}


def _id(task_id: UUID | None) -> str | None:
    return None if task_id is None else str(task_id)


def find_students(db: Database, time_zone: str) -> list[StudentDrift]:
    with db.transaction() as conn:
        return matching.drifting_students(conn, time_zone)


def repair_students(db: Database, drifts: Sequence[StudentDrift], settings: Settings) -> set[int]:
    """A student who changes meanwhile is counted again."""
    wanted, repaired = {drift.student_id for drift in drifts}, set[int]()
    for attempt in range(PASSES):
        if attempt:
            time.sleep(PAUSE_S)
            drifts = [drift for drift in find_students(db, settings.time_zone) if drift.student_id in wanted]
            # Those who are right by now were repaired by somebody else.
            repaired |= wanted - repaired - {drift.student_id for drift in drifts}
        for bite in bites(drifts, BITE):
            with db.transaction() as conn:
                done = matching.repair_students(conn, bite, settings.time_zone)
            _wake_searches(db, [drift for drift in bite if drift.student_id in done], settings)
            repaired |= done
        if repaired >= wanted:
            break
    return repaired


def _wake_searches(db: Database, repaired: Sequence[StudentDrift], settings: Settings) -> None:
    freed = [drift.student_id for drift in repaired if drift.open_task_id is None and drift.active]
    if freed:
        with db.transaction() as conn:
            matching.wake_searches(conn, freed, settings)


def portions(db: Database, most: int) -> Iterator[list[TaskDrift]]:
    """The drifting tasks of each portion of all tasks."""
    after = NO_TASK
    while after != LAST_TASK:
        with db.transaction() as conn:
            until = matching.end_of_portion(conn, after, most) or LAST_TASK
            drifts = matching.drifting_tasks(conn, after, until)
        yield drifts
        after = until


def repair_tasks(db: Database, drifts: Sequence[TaskDrift]) -> set[UUID]:
    left = {drift.task_id for drift in drifts}
    for attempt in range(PASSES):
        if attempt:
            time.sleep(PAUSE_S)
        for bite in bites(sorted(left), BITE):
            with db.transaction() as conn:
                left -= matching.repair_tasks(conn, bite)
        if not left:
            break
    return {drift.task_id for drift in drifts} - left


def bites(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    rest = iter(items)
    while bite := list(islice(rest, size)):
        yield bite
