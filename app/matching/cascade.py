"""The cascade: settles tasks, many in one transaction. To settle a task is to do for it what is due now: to close an
offer that is overdue, to ask the next candidate, to end the search, to report what was not started or completed.

Expiry, reject, withdrawal, moving on and a new request all end up here. `settle` may be called for any task at any time
and as often as one likes, because it does what is due and nothing else. So listener, ticker, reconciler and requests
can all call it, and the first one wins.
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
"""The head of a list is read first; nearly always one of its candidates can be asked."""
LOCKED_PAUSE = timedelta(milliseconds=100)
"""A student whose row another transaction has locked is tried again after this; the other tasks of the batch do not
wait."""


@dataclass(frozen=True)
class Lists:
    """The candidate lists that a settling begins with. A task without one is ranked anew."""

    by_task: Mapping[UUID, Sequence[int]]
    are_new: bool = False
    """Made for this settling, so Redis does not hold them yet."""

    def of(self, task_id: UUID) -> Sequence[int]:
        return self.by_task.get(task_id, ())


@dataclass(frozen=True)
class Offered:
    deadlines: Mapping[UUID, datetime]
    """Of the offer that was made for each task."""
    locked_elsewhere: frozenset[int] = frozenset()
    """Students who were chosen and whose rows another transaction has locked."""


@dataclass(frozen=True)
class Place:
    """Where a task stands that goes on searching."""

    search: Search
    next_step_at: datetime
    deadline: datetime | None = None
    """Of the offer that was just made."""
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
    seekers = [task for task in locked if task.status is TaskStatus.PENDING and task.id not in live]
    others = [task for task in locked if task.status is not TaskStatus.PENDING or task.id in live]
    return combined(
        *(FollowUp(no_offer_keys(task_id)) for task_id in unknown),
        _expiry(expired),
        *[_settle_without_search(store, task, live.get(task.id, ()), lists, rules) for task in others],
        _seek(store, by_age(seekers), lists, rules, skip_locked) if seekers else FollowUp(),
    )


def _expiry(expired: Sequence[Expired]) -> FollowUp:
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
    """Redis holds one student for each task: the one whose deadline comes first."""
    first = live[0]
    change, ids = ListChange.KEEP, list[int]()
    if lists.are_new:
        asked = {offer.student_id for offer in live}
        change, ids = ListChange.REPLACE, [item for item in lists.of(task.id) if item not in asked]
    return TaskKeys(task.id, first.student_id, first.deadline, first.deadline, change, ids, task.updated_at)


def _report_overdue(store: Store, task: Task, rules: MatchingRules) -> FollowUp:
    """Tells the coordinators once about a task that was not started, and once about one that was not completed."""
    next_step_at, version = task.next_step_at, task.updated_at
    if next_step_at is not None and next_step_at <= task.read_at:
        assert task.assigned_at is not None, "a held task was assigned"
        complete_by = task.assigned_at + rules.complete_limit
        not_started = task.status is TaskStatus.ASSIGNED and next_step_at < complete_by
        next_step_at = complete_by if not_started else None
        version = store.move_task(task, task.status, next_step_at=next_step_at).updated_at
        notices.overdue(store, task, not_started=not_started)
    return FollowUp(no_offer_keys(task.id, version, next_step_at))


def _seek(store: Store, seekers: Sequence[Task], lists: Lists, rules: MatchingRules, skip_locked: bool) -> FollowUp:
    searches, facts = _choose(store, [task for task in seekers if task.search_until > task.read_at], lists, rules)
    picks = [search.pick for search in searches if search.pick is not None]
    offered = _offer(store, picks, facts, rules, skip_locked)
    skipped = Counter(store.insert_skips([skip for search in searches for skip in search.skips]))
    places = [_place(search, offered) for search in searches if search.goes_on]
    versions = store.save_progress([place.progress(skipped[place.search.task.id]) for place in places])
    ended = _end(store, [task for task in seekers if task.id not in versions])
    made = FollowUp(figures=Figures(offered=len(offered.deadlines)))
    return combined(made, *(place.follow_up(versions[place.search.task.id]) for place in places), ended)


def _place(search: Search, offered: Offered) -> Place:
    task = search.task
    if search.pick is None:
        assert search.wait_until is not None, "a task with nobody to ask or to wait for has ended"
        return Place(search, min(search.wait_until, task.search_until), waiting=True)
    if search.pick.student_id in offered.locked_elsewhere:
        return Place(search, task.read_at + LOCKED_PAUSE)
    deadline = offered.deadlines.get(task.id)
    if deadline is None:
        # Another transaction was faster with this student; the row says that the next step is due at once.
        return Place(search, task.read_at, again=True)
    return Place(search, deadline, deadline)


def _choose(store: Store, tasks: Sequence[Task], lists: Lists, rules: MatchingRules) -> tuple[list[Search], Facts]:
    """The oldest task chooses first. The heads of all lists are read in one statement, and nearly always each of them
    holds somebody to ask. From the first task whose head does not, all choose again, each without the students whom
    older tasks took, with the rest of their lists, and with a new list if even that holds nobody."""
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
    """Goes along head and rest of the list, then along a new one. Adds to `facts` and `taken`."""
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
    """Ranks those who were never asked. Where the first of them are all busy, the rest is looked at as well."""
    task, taken_until = search.task, search.task.read_at + rules.offer_ttl
    ranking = rank(store, task, rules)
    walk_ranking(search, ranking, taken, taken_until, rules.cap)
    if search.pick is None and ranking.eligible > len(ranking.candidates):
        walk_ranking(search, rank(store, task, rules, cap=ranking.eligible), taken, taken_until, rules.cap)


def rank(store: Store, task: Task, rules: MatchingRules, cap: int | None = None) -> Ranking:
    return store.rank(task.id, task.spot, radius_m=rules.radius_m, cap=cap or rules.cap, time_zone=rules.time_zone)


def _offer(store: Store, picks: Sequence[Pick], facts: Facts, rules: MatchingRules, skip_locked: bool) -> Offered:
    """Locks the students, reads again about those who have changed since the facts were read, and offers. A live offer
    that another task made them meanwhile is no change of their row; it keeps this one from being inserted."""
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


def _end(store: Store, ending: Sequence[Task]) -> FollowUp:
    if not ending:
        return FollowUp()
    versions = store.end_searches([task.id for task in ending])
    notices.nobody_found(store, [task for task in ending if task.id in versions])
    keys = [FollowUp(no_offer_keys(task_id, version)) for task_id, version in versions.items()]
    return combined(*keys, FollowUp(figures=Figures(ended=len(versions))))
