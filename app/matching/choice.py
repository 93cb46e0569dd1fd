"""Chooses the candidate who is asked next. Pure: it decides over facts that were read, for many tasks at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from app.matching.store.records import Fact, Pick, Ranking, Skip, Task
from app.redis_store.contract import ListChange, TaskKeys


@dataclass
class Search:
    """The search of one task through its candidates, in one transaction."""

    task: Task
    given: Sequence[int] = ()
    """The candidate list that the search begins with."""
    given_is_new: bool = False
    """Redis does not hold the given list yet."""
    pick: Pick | None = None
    skips: list[Skip] = field(default_factory=list[Skip])
    dealt_with: list[int] = field(default_factory=list[int])
    """Candidates who leave the list after the commit: they were skipped, or were on the list by mistake."""
    renewed: list[int] | None = None
    """The new list, if no candidate on the given one could be asked."""
    listed: int = 0
    wait_until: datetime | None = None
    """The earliest deadline among candidates whom other tasks are asking."""

    @property
    def rank(self) -> int:
        return self.task.asked + self.task.skipped + len(self.skips) + 1

    @property
    def goes_on(self) -> bool:
        return self.pick is not None or self.wait_until is not None

    def restarted(self) -> "Search":
        return Search(self.task, self.given, self.given_is_new, listed=self.task.listed)

    def wait_for(self, moment: datetime) -> None:
        if self.wait_until is None or moment < self.wait_until:
            self.wait_until = moment

    def keys(
        self, student_id: int | None, deadline: datetime | None, next_step_at: datetime, version: datetime | None = None
    ) -> TaskKeys:
        """The keys that Redis should hold after the commit. The student who is asked leaves the list."""
        removed = self.dealt_with if student_id is None else [*self.dealt_with, student_id]
        change, ids = ListChange.KEEP, removed
        if self.renewed is not None or self.given_is_new:
            listed = self.given if self.renewed is None else self.renewed
            change, ids = ListChange.REPLACE, [item for item in listed if item not in removed]
        return TaskKeys(self.task.id, student_id, deadline, next_step_at, change, ids, version)


def walk(
    search: Search,
    candidates: Sequence[int],
    facts: Mapping[tuple[UUID, int], Fact],
    taken: set[int],
    taken_until: datetime,
) -> None:
    """Goes through the candidates until one can be asked. `taken` are the students whom older tasks of this batch have
    picked; they count as busy until `taken_until`."""
    for student_id in candidates:
        if search.pick is not None:
            return
        fact = facts.get((search.task.id, student_id))
        if fact is None or fact.seen_before:
            search.dealt_with.append(student_id)
        elif fact.obstacle is not None:
            search.dealt_with.append(student_id)
            search.skips.append(Skip(search.task.id, student_id, fact.obstacle, fact.completed, fact.distance_m))
        elif fact.busy_until is not None or student_id in taken:
            search.wait_for(fact.busy_until or taken_until)
        else:
            search.pick = Pick(search.task.id, student_id, search.rank, fact.completed, fact.distance_m or 0.0)
            taken.add(student_id)


def walk_ranking(search: Search, ranking: Ranking, taken: set[int], taken_until: datetime, cap: int) -> None:
    """Like `walk`, for a list that PostgreSQL has just made, which shows who is busy. Only the first `cap` candidates
    go on the new list."""
    search.renewed = [item.student_id for item in ranking.candidates[:cap]]
    search.listed = search.task.asked + search.task.skipped + len(search.skips) + ranking.eligible
    search.wait_until = None
    for item in ranking.candidates:
        if item.busy_until is not None or item.student_id in taken:
            search.wait_for(item.busy_until or taken_until)
        else:
            search.pick = Pick(search.task.id, item.student_id, search.rank, item.completed, item.distance_m)
            taken.add(item.student_id)
            return


def by_age(tasks: Iterable[Task]) -> list[Task]:
    """The oldest task first."""
    return sorted(tasks, key=lambda task: (task.created_at, task.id))
