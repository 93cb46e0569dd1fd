"""Chooses the candidate who is asked next. Pure: it decides over candidates that were read, for many tasks at once."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.matching.rules.eligibility import Candidate, CandidateVerdict, Obstacle
from app.matching.store.records import HelpTask, NewSearch, Pick, Ranking, Skip
from app.redis_store.contract import ListChange, TaskKeys

Candidates = Mapping[tuple[UUID, int], Candidate]
"""By task and student."""


@dataclass(frozen=True)
class Walked:
    """What a walk along candidates has found."""

    pick: Pick | None = None
    skips: Sequence[Skip] = ()
    gone: Sequence[int] = ()
    """Candidates who leave the list after the commit: they were skipped, or were on the list by mistake."""
    wait_until: datetime | None = None
    """The earliest deadline among candidates whom other tasks are asking."""


NOBODY = Walked()


@dataclass(frozen=True)
class Search:
    """The search of one task through its candidates, in one transaction."""

    task: HelpTask
    listed: Sequence[int]
    is_new: bool
    """Redis does not hold this list yet."""
    eligible: int
    """The number of all candidates that the task has had, also those who were asked or skipped before."""
    walked: Walked = NOBODY

    @property
    def pick(self) -> Pick | None:
        return self.walked.pick

    @property
    def goes_on(self) -> bool:
        return self.walked.pick is not None or self.walked.wait_until is not None

    def keys(
        self, student_id: int | None, deadline: datetime | None, next_step_at: datetime, version: datetime | None = None
    ) -> TaskKeys:
        """The keys that Redis should hold after the commit. The student who is asked leaves the list."""
        removed = self.walked.gone if student_id is None else [*self.walked.gone, student_id]
        change, ids = ListChange.KEEP, removed
        if self.is_new:
            change, ids = ListChange.REPLACE, [item for item in self.listed if item not in removed]
        return TaskKeys(self.task.id, student_id, deadline, next_step_at, change, ids, version)


def walk(
    task: HelpTask,
    listed: Iterable[int],
    candidates: Candidates,
    taken: AbstractSet[int],
    taken_until: datetime,
    before: Walked = NOBODY,
) -> Walked:
    """Goes on from `before` along a list until a candidate can be asked. `taken` are the students whom older tasks of
    this batch have picked; they count as busy until `taken_until`."""
    if before.pick is not None:
        return before
    read = (candidates.get((task.id, id_)) or Candidate(id_, seen_before=True) for id_ in listed)
    return _walk_along(task, read, taken, taken_until, before)


def _walk_along(
    task: HelpTask, candidates: Iterable[Candidate], taken: AbstractSet[int], taken_until: datetime, before: Walked
) -> Walked:
    skips, gone, wait_until = [*before.skips], [*before.gone], before.wait_until
    for candidate in candidates:
        verdict = candidate.verdict
        if verdict is CandidateVerdict.WAIT or (verdict is CandidateVerdict.ASK and candidate.student_id in taken):
            free_at = candidate.busy_until or taken_until
            wait_until = free_at if wait_until is None or free_at < wait_until else wait_until
            continue
        if verdict is CandidateVerdict.ASK:
            return Walked(_pick(task, candidate, len(skips)), skips, gone, wait_until)
        gone.append(candidate.student_id)
        if candidate.obstacle is not None and verdict is CandidateVerdict.SKIP:
            skips.append(_skip(task, candidate, candidate.obstacle))
    return Walked(None, skips, gone, wait_until)


def first_pick(new: NewSearch) -> Pick | None:
    """The candidate who is asked when the task is made, as `walk_new_list` chooses."""
    free = (one for one in new.ranking.candidates if one.verdict is CandidateVerdict.ASK)
    return next(
        (Pick(new.task_id, one.student_id, 1, one.completed, one.distance_m, one.version) for one in free), None
    )


def _pick(task: HelpTask, candidate: Candidate, skipped: int) -> Pick:
    rank = task.asked + task.skipped + skipped + 1
    student_id, completed, distance_m = candidate[:3]
    return Pick(task.id, student_id, rank, completed, distance_m, candidate.version)


def _skip(task: HelpTask, candidate: Candidate, reason: Obstacle) -> Skip:
    return Skip(task.id, candidate.student_id, reason, candidate.completed, candidate.distance_m)


def walk_new_list(search: Search, ranking: Ranking, taken: AbstractSet[int], taken_until: datetime, cap: int) -> Search:
    """Walks along candidates whom PostgreSQL has just ranked. Only the first `cap` of them go on the new list."""
    task, old = search.task, search.walked
    listed = [candidate.student_id for candidate in ranking.candidates[:cap]]
    eligible = task.asked + task.skipped + len(old.skips) + ranking.eligible
    walked = _walk_along(task, ranking.candidates, taken, taken_until, Walked(None, old.skips, old.gone))
    return Search(task, listed, True, eligible, walked)


def by_age(tasks: Iterable[HelpTask]) -> list[HelpTask]:
    """The oldest task first."""
    return sorted(tasks, key=lambda task: (task.created_at, task.id))
