"""The cascade: brings tasks to their next step, many in one transaction.

Expiry, reject, withdrawal, a coordinator's hand and a new request all end up here. `settle` may be called for any
task at any time and as often as one likes: it does what is due and nothing else, so listener, ticker, reconciler
and requests can all call it, and whoever is first wins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from app.matching import notices
from app.matching.choice import Walk, by_age, walk, walk_ranking
from app.matching.rules import MatchingRules
from app.matching.states import OPEN, TaskStatus
from app.matching.store.records import Fact, Pick, Progress, Ranking, Task
from app.matching.store.stores import Store
from app.redis_store.contract import ListChange, TaskKeys

Facts = dict[tuple[UUID, int], Fact]

LOOK_AHEAD = 2
"""So many of a list are looked at at first; nearly always one of them can be asked."""
OUT_OF_REACH_PAUSE = timedelta(milliseconds=100)
"""A student whose row somebody holds is tried again after this; the tasks that are due with it do not wait."""


@dataclass
class Settled:
    """What has to follow the commit. All of it is hints: a committed row covers each."""

    keys: dict[UUID, TaskKeys] = field(default_factory=dict[UUID, TaskKeys])
    """What Redis should hold for each task now."""
    again: set[UUID] = field(default_factory=set[UUID])
    """Tasks whose choice was overtaken by another transaction, to be settled again."""
    freed: set[int] = field(default_factory=set[int])
    """Students who can be asked again, perhaps by a task that waits for one."""
    lost: set[int] = field(default_factory=set[int])
    """Students who were being asked and cannot be asked now; a task that waits for one of them waits in vain."""
    out_of_reach: set[int] = field(default_factory=set[int])
    """Students whose rows are in other hands at this moment."""
    waiting: set[UUID] = field(default_factory=set[UUID])
    """Tasks that began to wait in this step. Whoever was freed while they decided so did not see them waiting."""
    late_s: list[float] = field(default_factory=list[float])
    """How long after its deadline each offer was found to be over."""
    offered: int = 0
    ended: int = 0

    def merge(self, other: "Settled") -> None:
        self.keys |= other.keys
        self.again |= other.again
        self.freed |= other.freed
        self.lost |= other.lost
        self.waiting |= other.waiting
        self.late_s += other.late_s
        self.offered += other.offered
        self.ended += other.ended

    def drop_keys(self, task_id: UUID, version: datetime | None = None, next_step_at: datetime | None = None) -> None:
        self.keys[task_id] = TaskKeys(task_id, next_step_at=next_step_at, list_change=ListChange.DROP, version=version)


def settle(
    store: Store,
    task_ids: Sequence[UUID],
    lists: Mapping[UUID, Sequence[int]],
    rules: MatchingRules,
    *,
    skip_locked: bool = False,
) -> Settled:
    """`lists` are the candidate lists as Redis had them; a task without one is ranked anew."""
    settled = Settled()
    locked = store.lock_tasks(task_ids, skip_locked=skip_locked)
    for task_id in store.unknown_tasks(set(task_ids) - {task.id for task in locked}):
        settled.drop_keys(task_id)
    expired, live = store.expire_offers([task.id for task in locked]) if locked else ([], {})
    settled.freed.update(item.student_id for item in expired)
    settled.late_s.extend(item.late_s for item in expired)
    seekers: list[Task] = []
    for task in locked:
        if task.is_held:
            _report_overdue(store, task, rules, settled)
        elif task.status not in OPEN:
            settled.drop_keys(task.id, task.updated_at)
        elif task.id in live:
            offer = live[task.id]
            settled.keys[task.id] = TaskKeys(
                task.id, offer.student_id, offer.deadline, offer.deadline, version=task.updated_at
            )
        else:
            seekers.append(task)
    if seekers:
        _seek(store, by_age(seekers), lists, rules, settled, skip_locked)
    return settled


def _report_overdue(store: Store, task: Task, rules: MatchingRules, settled: Settled) -> None:
    """Tells the coordinators once about a task that was not started, and once about one not completed."""
    next_step_at, version = task.next_step_at, task.updated_at
    if next_step_at is not None and next_step_at <= task.read_at:
        assert task.assigned_at is not None, "a held task was assigned"
        complete_by = task.assigned_at + rules.complete_limit
        not_started = task.status is TaskStatus.ASSIGNED and next_step_at < complete_by
        next_step_at = complete_by if not_started else None
        version = store.move_task(task, task.status, next_step_at=next_step_at).updated_at
        notices.overdue(store, task, not_started=not_started)
    settled.drop_keys(task.id, version, next_step_at)


def _seek(
    store: Store,
    seekers: Sequence[Task],
    lists: Mapping[UUID, Sequence[int]],
    rules: MatchingRules,
    settled: Settled,
    skip_locked: bool,
) -> None:
    steps = [Walk(task, lists.get(task.id, ()), listed=task.listed) for task in seekers if _may_search(task)]
    facts = _choose(store, steps, rules)
    picks = [step.pick for step in steps if step.pick is not None]
    deadlines = _offer(store, picks, facts, rules, settled, skip_locked)
    settled.offered += len(deadlines)
    skipped = store.insert_skips([skip for step in steps for skip in step.skips])
    going_on = [step for step in steps if step.pick is not None or step.wait_until is not None]
    versions = store.save_progress(
        [_note(step, deadlines.get(step.task.id), skipped.count(step.task.id), settled) for step in going_on]
    )
    for task_id, version in versions.items():
        settled.keys[task_id] = replace(settled.keys[task_id], version=version)
    _end(store, seekers, {step.task.id for step in going_on}, settled)


def _may_search(task: Task) -> bool:
    return task.search_until > task.read_at


def _note(step: Walk, deadline: datetime | None, skipped: int, settled: Settled) -> Progress:
    """Writes down where a task stands that goes on, for its row and for Redis."""
    task, student_id = step.task, None
    waiting = False
    if step.pick is None:
        assert step.wait_until is not None, "a task with nobody to ask or to wait for has ended"
        next_step_at, waiting = min(step.wait_until, task.search_until), True
        if not task.waiting:
            settled.waiting.add(task.id)
    elif step.pick.student_id in settled.out_of_reach:
        next_step_at = task.read_at + OUT_OF_REACH_PAUSE
    elif deadline is None:
        # Another transaction was faster with this student; the row says that the next step is due at once.
        settled.again.add(task.id)
        next_step_at = task.read_at
    else:
        next_step_at, student_id = deadline, step.pick.student_id
    settled.keys[task.id] = step.keys(student_id, deadline, next_step_at)
    asked = task.asked + (deadline is not None)
    return Progress(task.id, next_step_at, waiting, asked, task.skipped + skipped, step.listed)


def _choose(store: Store, steps: list[Walk], rules: MatchingRules) -> Facts:
    """The oldest task chooses first. A look at the heads of all lists, in one statement, nearly always finds
    somebody for everyone. From the first task for which it does not, all choose again, with the rest of their lists
    or a new one where it takes that, each knowing whom the older ones took."""
    facts = _facts(store, steps, slice(0, LOOK_AHEAD), rules)
    taken: set[int] = set()
    for step in steps:
        _walk(step, slice(0, LOOK_AHEAD), facts, taken, rules)
    first = next((index for index, step in enumerate(steps) if step.pick is None), len(steps))
    short = {step.task.id for step in steps if step.pick is None}
    facts |= _facts(store, [step for step in steps if step.pick is None], slice(LOOK_AHEAD, None), rules)
    taken = {step.pick.student_id for step in steps[:first] if step.pick is not None}
    for index in range(first, len(steps)):
        steps[index] = step = Walk(steps[index].task, steps[index].given, listed=steps[index].task.listed)
        _walk(step, slice(0, LOOK_AHEAD), facts, taken, rules)
        if step.pick is None and step.task.id not in short:
            facts |= _facts(store, [step], slice(LOOK_AHEAD, None), rules)
        if step.pick is None:
            _walk(step, slice(LOOK_AHEAD, None), facts, taken, rules)
        if step.pick is None:
            _rank_anew(store, step, taken, rules)
    return facts


def _facts(store: Store, steps: Sequence[Walk], part: slice, rules: MatchingRules) -> Facts:
    pairs = [(step.task.id, student_id) for step in steps for student_id in step.given[part]]
    return store.facts(pairs, radius_m=rules.radius_m, time_zone=rules.time_zone)


def _walk(step: Walk, part: slice, facts: Facts, taken: set[int], rules: MatchingRules) -> None:
    walk(step, step.given[part], facts, taken, step.task.read_at + rules.offer_ttl)


def _rank_anew(store: Store, step: Walk, taken: set[int], rules: MatchingRules) -> None:
    """Asks for those never asked. Where the first of them are all busy, the rest is looked at as well."""
    task, taken_until = step.task, step.task.read_at + rules.offer_ttl
    ranking = rank(store, task, rules)
    walk_ranking(step, ranking, taken, taken_until, rules.cap)
    if step.pick is None and ranking.eligible > len(ranking.candidates):
        walk_ranking(step, rank(store, task, rules, cap=ranking.eligible), taken, taken_until, rules.cap)


def rank(store: Store, task: Task, rules: MatchingRules, cap: int | None = None) -> Ranking:
    return store.rank(task.id, task.spot, radius_m=rules.radius_m, cap=cap or rules.cap, time_zone=rules.time_zone)


def _offer(
    store: Store, picks: Sequence[Pick], facts: Facts, rules: MatchingRules, settled: Settled, skip_locked: bool
) -> dict[UUID, datetime]:
    """Locks the students, reads again about those who have changed since the look, and offers. A live offer that
    another task made them meanwhile is no change of their row; it keeps this one from being inserted."""
    wanted = {pick.student_id for pick in picks}
    if not wanted:
        return {}
    locked = store.lock_students(wanted, skip_locked=skip_locked)
    settled.out_of_reach |= wanted - locked.keys()
    picks = [pick for pick in picks if pick.student_id in locked]
    pairs = [(pick.task_id, pick.student_id) for pick in picks]
    changed = [pair for pair in pairs if pair not in facts or facts[pair].version != locked[pair[1]]]
    facts = facts | store.facts(changed, radius_m=rules.radius_m, time_zone=rules.time_zone)
    good = [pick for pick in picks if _may_be_asked(facts[pick.task_id, pick.student_id])]
    deadlines = store.insert_offers(good, rules.offer_ttl)
    notices.offers(store, [facts[pick.task_id, pick.student_id] for pick in good], deadlines, rules)
    return deadlines


def _may_be_asked(fact: Fact) -> bool:
    return fact.obstacle is None and fact.busy_until is None and not fact.seen_before


def _end(store: Store, seekers: Sequence[Task], going_on: set[UUID], settled: Settled) -> None:
    ending = [task.id for task in seekers if task.id not in going_on]
    if not ending:
        return
    over = store.end_searches(ending)
    notices.nobody_found(store, [task for task in seekers if task.id in over])
    settled.ended += len(over)
    for task_id, version in over.items():
        settled.drop_keys(task_id, version)
