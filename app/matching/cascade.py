"""The cascade: settles tasks, many in one transaction. Settling a task means doing the work that is due for it now: it
closes an overdue offer, asks the next candidate, ends the search, or reports that a task was not started or completed.

Expiry, reject, withdrawal, moving on and a new request all call `settle`. It is idempotent: it may be called for any
task, at any time and any number of times, and changes nothing if no work is due. So listener, ticker, reconciler and
requests can all call it, and the first call wins.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from app.matching import notices
from app.matching.choice import Search, by_age, walk, walk_ranking
from app.matching.follow_up import Figures, FollowUp, combined, no_offer_keys
from app.matching.rules import MatchingRules
from app.matching.states import TaskStatus
from app.matching.store.records import Expired, Fact, Offer, Pick, Progress, Ranking, Task
from app.matching.store.stores import Store
from app.redis_store.contract import ListChange, TaskKeys

Facts = dict[tuple[UUID, int], Fact]

HEAD, REST = slice(0, 2), slice(2, None)
"""The first two candidates of a list are read first, because nearly always one of them can be asked."""
LOCKED_PAUSE = timedelta(milliseconds=100)
"""If another transaction has locked the row of the chosen student, the task tries again after this pause. The other
tasks of the batch do not wait for it."""


@dataclass(frozen=True)
class Lists:
    """The candidate lists that `settle` starts from. A task without a list is ranked anew."""

    by_task: Mapping[UUID, Sequence[int]]
    are_new: bool = False
    """The lists were just made, so Redis does not hold them yet."""

    def of(self, task_id: UUID) -> Sequence[int]:
        return self.by_task.get(task_id, ())


@dataclass(frozen=True)
class Offered:
    deadlines: Mapping[UUID, datetime]
    """The deadline of the offer that was made for each task."""
    locked_elsewhere: frozenset[int] = frozenset()
    """Chosen students whose rows another transaction has locked."""


@dataclass(frozen=True)
class ContinuedSearch:
    """A search that goes on after this transaction, and when it is due again."""

    search: Search
    next_step_at: datetime
    deadline: datetime | None = None
    """The deadline of the offer that was just made."""
    waiting: bool = False
    again: bool = False

    def progress(self, skipped: int) -> Progress:
        task = self.search.task
        asked = task.asked + (self.deadline is not None)
        return Progress(task.id, self.next_step_at, self.waiting, asked, task.skipped + skipped, self.search.listed)

    def follow_up(self, version: datetime) -> FollowUp:
        task, pick = self.search.task, self.search.pick
        student_id = pick.student_id if pick is not None and self.deadline is not None else None
        only_this = frozenset({task.id})
        return FollowUp(
            {task.id: self.search.keys(student_id, self.deadline, self.next_step_at, version)},
            again=only_this if self.again else frozenset(),
            began_to_wait=only_this if self.waiting and not task.waiting else frozenset(),
        )


def settle(
    store: Store, task_ids: Sequence[UUID], lists: Lists, rules: MatchingRules, *, skip_locked: bool = False
) -> FollowUp:
    locked = store.lock_tasks(task_ids, skip_locked=skip_locked)
    unknown = store.unknown_tasks(set(task_ids) - {task.id for task in locked})
    expired, live = store.expire_offers([task.id for task in locked]) if locked else ([], {})
    searching = [task for task in locked if task.status is TaskStatus.PENDING and task.id not in live]
    others = [task for task in locked if task.status is not TaskStatus.PENDING or task.id in live]
    return combined(
        *(FollowUp(no_offer_keys(task_id)) for task_id in unknown),
        _expiry_follow_up(expired),
        *[_settle_without_search(store, task, live.get(task.id, ()), lists, rules) for task in others],
        _search_next(store, by_age(searching), lists, rules, skip_locked) if searching else FollowUp(),
    )


def _expiry_follow_up(expired: Sequence[Expired]) -> FollowUp:
    late_s = tuple(item.late_s for item in expired)
    return FollowUp(freed=frozenset(item.student_id for item in expired), figures=Figures(late_s))


def _settle_without_search(
    store: Store, task: Task, live: Sequence[Offer], lists: Lists, rules: MatchingRules
) -> FollowUp:
    if task.is_held:
        return _report_overdue(store, task, rules)
    if live:
        return FollowUp({task.id: _asking_keys(task, live, lists)})
    return FollowUp(no_offer_keys(task.id, task.updated_at))


def _asking_keys(task: Task, live: Sequence[Offer], lists: Lists) -> TaskKeys:
    """The keys of a task with a live offer. Redis holds one student for each task, the one with the first deadline."""
    first = live[0]
    change, ids = ListChange.KEEP, list[int]()
    if lists.are_new:
        asked = {offer.student_id for offer in live}
        change, ids = ListChange.REPLACE, [item for item in lists.of(task.id) if item not in asked]
    return TaskKeys(task.id, first.student_id, first.deadline, first.deadline, change, ids, task.updated_at)


def _report_overdue(store: Store, task: Task, rules: MatchingRules) -> FollowUp:
    """Notifies the coordinators once if the task was not started in time, and once if it was not completed in time."""
    next_step_at, version = task.next_step_at, task.updated_at
    if next_step_at is not None and next_step_at <= task.read_at:
        assert task.assigned_at is not None, "a held task was assigned"
        complete_by = task.assigned_at + rules.complete_limit
        not_started = task.status is TaskStatus.ASSIGNED and next_step_at < complete_by
        next_step_at = complete_by if not_started else None
        version = store.move_task(task, task.status, next_step_at=next_step_at).updated_at
        notices.overdue(store, task, not_started=not_started)
    return FollowUp(no_offer_keys(task.id, version, next_step_at))


def _search_next(
    store: Store, searching: Sequence[Task], lists: Lists, rules: MatchingRules, skip_locked: bool
) -> FollowUp:
    searches, facts = _choose(store, [task for task in searching if task.search_until > task.read_at], lists, rules)
    picks = [search.pick for search in searches if search.pick is not None]
    offered = _offer(store, picks, facts, rules, skip_locked)
    skipped = Counter(store.insert_skips([skip for search in searches for skip in search.skips]))
    continued = [_continue(search, offered) for search in searches if search.goes_on]
    versions = store.save_progress([item.progress(skipped[item.search.task.id]) for item in continued])
    ended = _end_searches(store, [task for task in searching if task.id not in versions])
    made = FollowUp(figures=Figures(offered=len(offered.deadlines)))
    return combined(made, *(item.follow_up(versions[item.search.task.id]) for item in continued), ended)


def _continue(search: Search, offered: Offered) -> ContinuedSearch:
    task = search.task
    if search.pick is None:
        assert search.wait_until is not None, "a search that goes on has a candidate to ask or to wait for"
        return ContinuedSearch(search, min(search.wait_until, task.search_until), waiting=True)
    if search.pick.student_id in offered.locked_elsewhere:
        return ContinuedSearch(search, task.read_at + LOCKED_PAUSE)
    deadline = offered.deadlines.get(task.id)
    if deadline is None:
        # Another task took this student first, so this task is due again at once.
        return ContinuedSearch(search, task.read_at, again=True)
    return ContinuedSearch(search, deadline, deadline)


def _choose(store: Store, tasks: Sequence[Task], lists: Lists, rules: MatchingRules) -> tuple[list[Search], Facts]:
    """Chooses a student for each task, the oldest task first.

    The heads of all lists are read in one statement, and nearly always each head holds a candidate who can be asked.
    If the head of a task holds none, this task and all younger ones choose again, without the students whom older tasks
    took: each from its whole list, or else from a new list.
    """
    searches = [Search(task, lists.of(task.id), lists.are_new, listed=task.listed) for task in tasks]
    facts = _facts(store, searches, HEAD, rules)
    taken: set[int] = set()
    for search in searches:
        _walk(search, HEAD, facts, taken, rules)
    found = [search.pick is not None for search in searches]
    first = next((index for index, search in enumerate(searches) if search.pick is None), len(searches))
    facts |= _facts(store, [search for search in searches if search.pick is None], REST, rules)
    taken = {search.pick.student_id for search in searches[:first] if search.pick is not None}
    for index in range(first, len(searches)):
        searches[index] = _search_whole(store, searches[index].restarted(), found[index], facts, taken, rules)
    return searches, facts


def _search_whole(
    store: Store, search: Search, rest_is_unread: bool, facts: Facts, taken: set[int], rules: MatchingRules
) -> Search:
    """Searches the head and the rest of the list, then a new list. Adds to `facts` and `taken`."""
    _walk(search, HEAD, facts, taken, rules)
    if search.pick is None and rest_is_unread:
        facts |= _facts(store, [search], REST, rules)
    if search.pick is None:
        _walk(search, REST, facts, taken, rules)
    if search.pick is None:
        _rank_anew(store, search, taken, rules)
    return search


def _facts(store: Store, searches: Sequence[Search], part: slice, rules: MatchingRules) -> Facts:
    pairs = [(search.task.id, student_id) for search in searches for student_id in search.given[part]]
    return store.facts(pairs, radius_m=rules.radius_m, time_zone=rules.time_zone)


def _walk(search: Search, part: slice, facts: Facts, taken: set[int], rules: MatchingRules) -> None:
    walk(search, search.given[part], facts, taken, search.task.read_at + rules.offer_ttl)


def _rank_anew(store: Store, search: Search, taken: set[int], rules: MatchingRules) -> None:
    """Ranks the candidates whom the task never asked. If all of the first `cap` are busy, it ranks all of them."""
    task, taken_until = search.task, search.task.read_at + rules.offer_ttl
    ranking = rank(store, task, rules)
    walk_ranking(search, ranking, taken, taken_until, rules.cap)
    if search.pick is None and ranking.eligible > len(ranking.candidates):
        walk_ranking(search, rank(store, task, rules, cap=ranking.eligible), taken, taken_until, rules.cap)


def rank(store: Store, task: Task, rules: MatchingRules, cap: int | None = None) -> Ranking:
    return store.rank(task.id, task.spot, radius_m=rules.radius_m, cap=cap or rules.cap, time_zone=rules.time_zone)


def _offer(store: Store, picks: Sequence[Pick], facts: Facts, rules: MatchingRules, skip_locked: bool) -> Offered:
    """Locks the students, reads the facts again for rows that have changed since the first read, and makes the offers.

    A live offer from another task does not change the student's row. A unique index then refuses the second offer.
    """
    wanted = frozenset(pick.student_id for pick in picks)
    if not wanted:
        return Offered({})
    locked = store.lock_students(wanted, skip_locked=skip_locked)
    picks = [pick for pick in picks if pick.student_id in locked]
    pairs = [(pick.task_id, pick.student_id) for pick in picks]
    changed = [pair for pair in pairs if pair not in facts or facts[pair].version != locked[pair[1]]]
    facts = facts | store.facts(changed, radius_m=rules.radius_m, time_zone=rules.time_zone)
    good = [pick for pick in picks if facts[pick.task_id, pick.student_id].may_be_asked]
    deadlines = store.insert_offers(good, rules.offer_ttl)
    notices.offers(store, [facts[pick.task_id, pick.student_id] for pick in good], deadlines, rules)
    return Offered(deadlines, wanted - locked.keys())


def _end_searches(store: Store, ending: Sequence[Task]) -> FollowUp:
    if not ending:
        return FollowUp()
    versions = store.end_searches([task.id for task in ending])
    notices.nobody_found(store, [task for task in ending if task.id in versions])
    keys = [FollowUp(no_offer_keys(task_id, version)) for task_id, version in versions.items()]
    return combined(*keys, FollowUp(figures=Figures(ended=len(versions))))
