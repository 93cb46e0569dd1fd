"""The cascade: settles tasks, many in one transaction. Settling a task means doing the work that is due for it now: it
closes an overdue offer, asks the next candidate, ends the search, or reports that a task was not started or completed.

Expiry, reject, withdrawal, moving on and a new request all call `settle`. It is idempotent: it may be called for any
task, at any time and any number of times, and changes nothing if no work is due. So listener, ticker, reconciler and
requests can all call it, and the first call wins.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from app.matching import notices
from app.matching.choice import NOBODY, Candidates, Search, by_age, first_pick, walk, walk_new_list
from app.matching.follow_up import Figures, FollowUp, combined, no_offer_keys
from app.matching.notices import NoticeKind
from app.matching.rules.eligibility import CandidateVerdict
from app.matching.rules.errors import Overtaken
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import TaskStatus
from app.matching.store.records import Expired, HelpTask, MadeTask, NewSearch, Offer, Pick, Progress, Ranking
from app.matching.store.stores import Store
from app.redis_store.contract import ListChange, TaskKeys

HEAD, REST = slice(0, 2), slice(2, None)
"""The first two candidates of a list are read first, because nearly always one of them can be asked."""
LOCKED_PAUSE = timedelta(milliseconds=100)
"""If another transaction has locked the row of the chosen student, the task tries again after this pause. The other
tasks of the batch do not wait for it."""


@dataclass(frozen=True)
class Lists:
    """The candidate lists that `settle` starts from. A task without a list is ranked anew."""

    by_task: Mapping[UUID, Sequence[int]]

    def of(self, task_id: UUID) -> Sequence[int]:
        return self.by_task.get(task_id, ())


@dataclass(frozen=True)
class Offered:
    deadlines: Mapping[tuple[UUID, int], datetime]
    """The deadline of each offer that was made, by task and student."""
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
        return Progress(task.id, self.next_step_at, self.waiting, asked, task.skipped + skipped, self.search.eligible)

    def follow_up(self, version: datetime) -> FollowUp:
        task, pick = self.search.task, self.search.pick
        student_id = pick.student_id if pick is not None and self.deadline is not None else None
        only_this = frozenset({task.id})
        return FollowUp(
            {task.id: self.search.keys(student_id, self.deadline, self.next_step_at, version)},
            again=only_this if self.again else frozenset(),
            began_to_wait=only_this if self.waiting and not task.waiting else frozenset(),
        )


@dataclass(frozen=True)
class Settled:
    freed: frozenset[int]
    """The students whose offers have expired."""
    follow_up: Callable[[], FollowUp]
    """Called after the commit, it needs no round trip: the last statements go together with COMMIT."""


def settle(
    store: Store, task_ids: Sequence[UUID], lists: Lists, rules: MatchingRules, *, skip_locked: bool = False
) -> Settled:
    # In one round trip, so the heads of the lists are also read of the few tasks that turn out to be locked elsewhere,
    # to have a live offer, or to search no more.
    locking = store.lock_tasks_later(task_ids, skip_locked=skip_locked)
    expiring = store.expire_offers(task_ids)
    heads = store.candidates(_pairs((task_id, lists.of(task_id)[HEAD]) for task_id in task_ids), rules)
    locked, (expired, live) = locking(), expiring()
    not_locked = set(task_ids) - {task.id for task in locked}
    unknown = store.unknown_tasks(not_locked) if not_locked else set[UUID]()
    searching = [task for task in locked if task.is_searching and task.id not in live]
    others = [task for task in locked if not task.is_searching or task.id in live]
    done = [
        *(FollowUp(no_offer_keys(task_id)) for task_id in unknown),
        _expiry_follow_up(expired),
        *[_settle_without_search(store, task, live.get(task.id, ()), rules) for task in others],
    ]
    freed = frozenset(item.student_id for item in expired)
    if not searching:
        return Settled(freed, lambda: combined(*done))
    going_on = _search_next(store, by_age(searching), lists, heads, rules, skip_locked)
    return Settled(freed, lambda: combined(*done, going_on()))


def _expiry_follow_up(expired: Sequence[Expired]) -> FollowUp:
    late_s = tuple(item.late_s for item in expired)
    return FollowUp(freed=frozenset(item.student_id for item in expired), figures=Figures(late_s))


def first_offer(store: Store, new: NewSearch, rules: MatchingRules) -> tuple[MadeTask, FollowUp]:
    """Makes the task, and with it the offer to the first candidate who is free. If nobody is, the search goes on or
    ends like any other. Raises `Overtaken` if the student has changed since the candidates were ranked."""
    pick = first_pick(new)
    if pick is None:
        made = make_task(store, new, None, rules)
        search = _walk_ranking(store, Search(made.task, (), True, 0), new.ranking, frozenset(), rules)
        return made, _go_on(store, [search], rules)()
    version = store.lock_student_later(pick.student_id)
    read_plans = notices.read_plan_of(store, NoticeKind.OFFER, pick.student_id, new.elder_id)
    made = make_task(store, new, pick, rules)
    if made.deadline is None or version() != pick.version:
        raise Overtaken
    task, offered = made.task, {(made.task.id, pick.student_id): made.deadline}
    notices.offers(store, offered, {task.id: task}, rules, read_plans)
    search = walk_new_list(Search(task, (), True, 0), new.ranking, frozenset(), task.read_at, rules.cap)
    asking = ContinuedSearch(search, made.deadline, made.deadline).follow_up(task.updated_at)
    return made, combined(asking, FollowUp(figures=Figures(offered=1)))


def make_task(store: Store, new: NewSearch, pick: Pick | None, rules: MatchingRules) -> MadeTask:
    made = store.make_task(new, pick, rules.offer_ttl, rules.search_limit)
    if made is None:
        raise Overtaken
    return made


def _settle_without_search(store: Store, task: HelpTask, live: Sequence[Offer], rules: MatchingRules) -> FollowUp:
    if task.is_held:
        return _report_overdue(store, task, rules)
    if live:
        return FollowUp({task.id: _asking_keys(store, task, live)})
    return FollowUp(no_offer_keys(task.id, task.updated_at))


def _asking_keys(store: Store, task: HelpTask, live: Sequence[Offer]) -> TaskKeys:
    """The keys of a task with live offers. Redis holds one student for each task, the one with the first deadline."""
    first, version = live[0], task.updated_at
    if task.next_step_at != first.deadline:
        # The offer that was due before this one was closed.
        version = store.move_task(task.staying(), next_step_at=first.deadline).updated_at
    return TaskKeys(task.id, first.student_id, first.deadline, first.deadline, ListChange.KEEP, [], version)


def _report_overdue(store: Store, task: HelpTask, rules: MatchingRules) -> FollowUp:
    """Notifies the coordinators once if the task was not started in time, and once if it was not completed in time."""
    next_step_at, version = task.next_step_at, task.updated_at
    if next_step_at is not None and next_step_at <= task.read_at:
        assert task.assigned_at is not None, "a held task was assigned"
        complete_by = task.assigned_at + rules.complete_limit
        not_started = task.status is TaskStatus.ASSIGNED and next_step_at < complete_by
        next_step_at = complete_by if not_started else None
        version = store.move_task(task.staying(), next_step_at=next_step_at).updated_at
        notices.overdue(store, task, not_started=not_started)
    return FollowUp(no_offer_keys(task.id, version, next_step_at))


def _search_next(
    store: Store,
    searching: Sequence[HelpTask],
    lists: Lists,
    heads: Candidates,
    rules: MatchingRules,
    skip_locked: bool,
) -> Callable[[], FollowUp]:
    searches = _choose(store, [task for task in searching if task.goes_on_searching], lists, heads, rules)
    too_late = [task for task in searching if not task.goes_on_searching]
    return _go_on(store, searches, rules, too_late=too_late, skip_locked=skip_locked)


def _go_on(
    store: Store,
    searches: Sequence[Search],
    rules: MatchingRules,
    *,
    too_late: Sequence[HelpTask] = (),
    skip_locked: bool = False,
) -> Callable[[], FollowUp]:
    """Asks the chosen students. Ends the searches that found nobody, and those that are too late."""
    picks = [search.pick for search in searches if search.pick is not None]
    offered = _offer(store, picks, {search.task.id: search.task for search in searches}, rules, skip_locked)
    skipped = Counter(store.insert_skips([skip for search in searches for skip in search.walked.skips]))
    continued = [_continue(search, offered) for search in searches if search.goes_on]
    saved = store.save_progress([item.progress(skipped[item.search.task.id]) for item in continued])
    ended = _end_searches(store, [*(search.task for search in searches if not search.goes_on), *too_late], rules)
    made = FollowUp(figures=Figures(offered=len(offered.deadlines)))

    def follow_up() -> FollowUp:
        versions = saved()
        return combined(made, *(item.follow_up(versions[item.search.task.id]) for item in continued), ended)

    return follow_up


def _continue(search: Search, offered: Offered) -> ContinuedSearch:
    task = search.task
    if search.pick is None:
        wait_until = search.walked.wait_until
        assert wait_until is not None, "a search that goes on has a candidate to ask or to wait for"
        return ContinuedSearch(search, min(wait_until, task.search_until), waiting=True)
    if search.pick.student_id in offered.locked_elsewhere:
        return ContinuedSearch(search, task.read_at + LOCKED_PAUSE)
    deadline = offered.deadlines.get((task.id, search.pick.student_id))
    if deadline is None:
        # Another task took this student first, so this task is due again at once.
        return ContinuedSearch(search, task.read_at, again=True)
    return ContinuedSearch(search, deadline, deadline)


def _choose(
    store: Store, tasks: Sequence[HelpTask], lists: Lists, heads: Candidates, rules: MatchingRules
) -> list[Search]:
    """Chooses a student for each task, the oldest task first.

    The heads of all lists were read in one statement, and nearly always each head holds a candidate who can be asked.
    If the head of a task holds none, this task and all younger ones choose again, without the students whom older tasks
    took: each from its whole list, or else from a new list.
    """
    new = [Search(task, lists.of(task.id), False, task.listed) for task in tasks]
    searches = _in_turn(new, frozenset(), lambda search, taken: _walk(search, HEAD, heads, taken, rules))
    first = next((index for index, search in enumerate(searches) if search.pick is None), len(searches))
    rests = _read(store, [search for search in searches if search.pick is None], REST, rules)
    read = {**heads, **rests} if rests else heads
    done = searches[:first]
    taken = frozenset(search.pick.student_id for search in done if search.pick is not None)
    return done + _in_turn(
        searches[first:], taken, lambda search, taken: _choose_again(store, search, read, taken, rules)
    )


def _in_turn(
    searches: Sequence[Search], taken: AbstractSet[int], choose: Callable[[Search, AbstractSet[int]], Search]
) -> list[Search]:
    """The search of the oldest task chooses first. Whom it picks is taken for the others."""
    chosen, now_taken = list[Search](), set(taken)
    for search in searches:
        chosen.append(choose(search, now_taken))
        if (pick := chosen[-1].pick) is not None:
            now_taken.add(pick.student_id)
    return chosen


def _choose_again(
    store: Store, earlier: Search, read: Candidates, taken: AbstractSet[int], rules: MatchingRules
) -> Search:
    """Searches the head and the rest of the list, then a new list."""
    search = _walk(replace(earlier, walked=NOBODY), HEAD, read, taken, rules)
    if search.pick is None and earlier.pick is not None:
        read = _read(store, [search], REST, rules)
    search = _walk(search, REST, read, taken, rules)
    return search if search.pick is not None else _rank_anew(store, search, taken, rules)


def _read(store: Store, searches: Sequence[Search], part: slice, rules: MatchingRules) -> Candidates:
    return store.candidates(_pairs((search.task.id, search.listed[part]) for search in searches), rules)


def _pairs(listed: Iterable[tuple[UUID, Sequence[int]]]) -> list[tuple[UUID, int]]:
    return [(task_id, student_id) for task_id, student_ids in listed for student_id in student_ids]


def _walk(search: Search, part: slice, read: Candidates, taken: AbstractSet[int], rules: MatchingRules) -> Search:
    task, listed = search.task, search.listed
    walked = walk(task, listed[part], read, taken, task.read_at + rules.offer_ttl, search.walked)
    return Search(task, listed, search.is_new, search.eligible, walked)


def _rank_anew(store: Store, search: Search, taken: AbstractSet[int], rules: MatchingRules) -> Search:
    """Ranks the candidates whom the task never asked."""
    return _walk_ranking(store, search, store.rank_for(search.task, rules), taken, rules)


def _walk_ranking(
    store: Store, search: Search, ranking: Ranking, taken: AbstractSet[int], rules: MatchingRules
) -> Search:
    """If all of the first `cap` are busy, ranks all candidates."""
    task, taken_until = search.task, search.task.read_at + rules.offer_ttl
    found = walk_new_list(search, ranking, taken, taken_until, rules.cap)
    if found.pick is None and ranking.eligible > len(ranking.candidates):
        ranking = store.rank_for(task, rules, cap=ranking.eligible)
        found = walk_new_list(search, ranking, taken, taken_until, rules.cap)
    return found


def _offer(
    store: Store, picks: Sequence[Pick], tasks: Mapping[UUID, HelpTask], rules: MatchingRules, skip_locked: bool
) -> Offered:
    """Locks the students and makes the offers, after a second check of those whose rows have changed since they were
    read.

    A live offer from another task does not change the student's row. A unique index then refuses the second offer.
    """
    wanted = frozenset(pick.student_id for pick in picks)
    if not wanted:
        return Offered({})
    elders = {tasks[pick.task_id].elder_id for pick in picks}
    read_plans = notices.read_plan_of(store, NoticeKind.OFFER, *wanted, *elders)
    deadlines, locked = store.ask(picks, rules.offer_ttl, skip_locked=skip_locked)
    changed = [pick for pick in picks if locked.get(pick.student_id, pick.version) != pick.version]
    again = store.candidates([(pick.task_id, pick.student_id) for pick in changed], rules)
    asked = {pair for pair, candidate in again.items() if candidate.verdict is CandidateVerdict.ASK}
    deadlines |= store.insert_offers(
        [pick for pick in changed if (pick.task_id, pick.student_id) in asked], rules.offer_ttl
    )
    notices.offers(store, deadlines, tasks, rules, read_plans)
    return Offered(deadlines, wanted - locked.keys())


def _end_searches(store: Store, ending: Sequence[HelpTask], rules: MatchingRules) -> FollowUp:
    if not ending:
        return FollowUp()
    ended = {item.task_id: item for item in store.end_searches([task.id for task in ending], rules)}
    owed = {item.task_id for item in ended.values() if item.alarm_owed}
    notices.nobody_found(store, [task for task in ending if task.id in ended], owed)
    keys = [FollowUp(no_offer_keys(item.task_id, item.version)) for item in ended.values()]
    return combined(*keys, FollowUp(figures=Figures(ended=len(ended))))


def send_owed_alarms(store: Store, rules: MatchingRules) -> int:
    """Tells the coordinators of searches that ended soon after another one for the same elder. Returns for how many
    elders."""
    owed = store.take_owed_alarms(rules)
    for elder_id, task_ids in owed.items():
        notices.joined_alarm(store, elder_id, task_ids)
    return len(owed)
