"""Who of a list is asked next: pure decisions over facts, for many tasks at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from app.matching.store.records import Fact, Pick, Ranking, Skip, Task
from app.redis_store.contract import ListChange, TaskKeys


@dataclass
class Walk:
    """How far one task gets through its candidates in one step."""

    task: Task
    given: Sequence[int] = ()
    """The list as Redis had it."""
    pick: Pick | None = None
    skips: list[Skip] = field(default_factory=list[Skip])
    dealt_with: list[int] = field(default_factory=list[int])
    """Leave the list once this step is committed: skipped, or on it by mistake."""
    renewed: list[int] | None = None
    """The new list, where the one in Redis held nobody to ask."""
    listed: int = 0
    wait_until: datetime | None = None
    """The earliest deadline among those who are being asked elsewhere."""

    @property
    def rank(self) -> int:
        return self.task.asked + self.task.skipped + len(self.skips) + 1

    def wait_for(self, moment: datetime) -> None:
        if self.wait_until is None or moment < self.wait_until:
            self.wait_until = moment

    def keys(self, student_id: int | None, deadline: datetime | None, next_step_at: datetime) -> TaskKeys:
        """What Redis should hold once this step is committed: whoever is being asked has left the list."""
        if self.renewed is not None:
            ids = [item for item in self.renewed if item != student_id]
            return TaskKeys(self.task.id, student_id, deadline, next_step_at, ListChange.REPLACE, ids)
        gone = self.dealt_with if student_id is None else [*self.dealt_with, student_id]
        return TaskKeys(self.task.id, student_id, deadline, next_step_at, ListChange.KEEP, gone)


def walk(
    step: Walk,
    candidates: Sequence[int],
    facts: Mapping[tuple[UUID, int], Fact],
    taken: set[int],
    taken_until: datetime,
) -> None:
    """Goes down the list until somebody can be asked. `taken` are students whom older tasks of this batch have
    just picked."""
    for student_id in candidates:
        if step.pick is not None:
            return
        fact = facts.get((step.task.id, student_id))
        if fact is None or fact.seen_before:
            step.dealt_with.append(student_id)
        elif fact.obstacle is not None:
            step.dealt_with.append(student_id)
            step.skips.append(Skip(step.task.id, student_id, fact.obstacle, fact.completed, fact.distance_m))
        elif fact.busy_until is not None or student_id in taken:
            step.wait_for(fact.busy_until or taken_until)
        else:
            step.pick = Pick(step.task.id, student_id, step.rank, fact.completed, fact.distance_m or 0.0)
            taken.add(student_id)


def walk_ranking(step: Walk, ranking: Ranking, taken: set[int], taken_until: datetime, cap: int) -> None:
    """The same over a list that PostgreSQL has just made, which knows who is busy. Only the first `cap` are kept."""
    step.renewed = [item.student_id for item in ranking.candidates[:cap]]
    step.listed = step.task.asked + step.task.skipped + len(step.skips) + ranking.eligible
    step.wait_until = None
    for item in ranking.candidates:
        if item.busy_until is not None or item.student_id in taken:
            step.wait_for(item.busy_until or taken_until)
        else:
            step.pick = Pick(step.task.id, item.student_id, step.rank, item.completed, item.distance_m)
            taken.add(item.student_id)
            return


def by_age(tasks: Iterable[Task]) -> list[Task]:
    """The oldest task chooses first."""
    return sorted(tasks, key=lambda task: (task.created_at, task.id))
