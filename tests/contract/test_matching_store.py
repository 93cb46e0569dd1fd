"""What the rules of matching may expect of the store."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from app.foundation.ids import uuid7
from app.matching.rules.errors import Overtaken, TaskNotFound
from app.matching.rules.matching_rules import MatchingRules
from app.matching.rules.states import OfferState, TaskStatus
from app.matching.store.records import (
    NOW,
    FromNow,
    NewSearch,
    Offer,
    Pick,
    PressingElder,
    Progress,
    Ranking,
    Skip,
)
from app.matching.store.stores import Store
from app.matching.store.students import PLACE_WAITING
from app.users.contract import EVERYTHING
from app.users.models import Caller, Role
from tests.model.worlds import World, open_world

ZONE = "Europe/Istanbul"
HOUR = timedelta(hours=1)
TTL = timedelta(seconds=600)
RULES = MatchingRules()
T, O = TaskStatus, OfferState  # noqa: E741


world = pytest.fixture(open_world)


@pytest.fixture
def store(world: World) -> Iterator[Store]:
    with world.stores.reading() as store:
        yield store


def new_task(store: Store, elder: Caller, world: World, metres: float = 0, key: str | None = None) -> UUID | None:
    new = NewSearch(uuid7(), elder.id, "a note", world.spot(metres), None, key, Ranking((), 3))
    made = store.make_task(new, None, TTL, HOUR)
    return made and made.task.id


def elder_at_press(store: Store, elder: Caller, key: str | None = None, newest: int = 20) -> PressingElder:
    pressing = store.lock_elder_later(elder.id, EVERYTHING, key, newest)()
    assert pressing is not None
    return pressing


def task_of(world: World, store: Store, metres: float = 0) -> UUID:
    task_id = new_task(store, world.elder(metres), world, metres)
    assert task_id is not None
    return task_id


def ask(store: Store, task_id: UUID, *students: Caller) -> list[int]:
    """Who was really asked."""
    picks = [Pick(task_id, student.id, 1, 0, 10.0) for student in students]
    store.insert_offers(picks, TTL)
    return [offer.student_id for offer in store.live_offers([task_id]).get(task_id, [])]


def live_offer(store: Store, task_id: UUID) -> Offer:
    [offer] = store.live_offers([task_id])[task_id]
    return offer


class NotAccepted(Exception): ...


def accepts(world: World, offer: Offer) -> bool:
    """In a transaction that is rolled back unless the student got the task, as in the deed."""
    with suppress(NotAccepted), world.stores.transaction() as store:
        accepted = store.accept(offer.task_id, offer.student_id, HOUR)
        if accepted is None or accepted.moved is None:
            raise NotAccepted
        return True
    return False


# ---- tasks ----


def test_a_new_task_is_due_at_once_and_searches_for_its_time(world: World, store: Store) -> None:
    elder = world.elder(0)
    task_id = new_task(store, elder, world)
    assert task_id is not None
    task = store.lock_task(task_id)
    assert task is not None
    assert (task.status, task.elder_id, task.student_id, task.note) == (T.PENDING, elder.id, None, "a note")
    assert (task.asked, task.skipped, task.listed, task.waiting) == (0, 0, 3, False)
    assert task.next_step_at == task.created_at == task.updated_at
    assert task.search_until == task.created_at + HOUR
    assert task.read_at > task.created_at
    assert store.due_tasks(10) == [task_id]
    assert elder_at_press(store, elder).open_task_id == task_id


def test_an_elder_has_one_open_task_and_uses_a_key_once(world: World, store: Store) -> None:
    elder, other = world.elder(0), world.elder(0)
    first = new_task(store, elder, world, key="k")
    assert first is not None and new_task(store, elder, world) is None
    store.end_searches([first], RULES)
    assert new_task(store, elder, world, key="k") is None
    assert new_task(store, other, world, key="k") is not None, "keys belong to their elder"
    assert new_task(store, elder, world) is not None
    known = elder_at_press(store, elder, "k").known
    assert known is not None and (known.task_id, known.note) == (first, "a note")
    assert elder_at_press(store, elder, "another").known is None
    assert elder_at_press(store, elder).open_task_id != first


def test_ages_of_the_newest_tasks_of_the_last_hour(world: World, store: Store) -> None:
    elder = world.elder(0)
    for _ in range(3):
        task_id = new_task(store, elder, world)
        assert task_id is not None
        store.end_searches([task_id], RULES)
    assert [len(elder_at_press(store, elder, newest=most).ages) for most in (2, 5)] == [2, 3]
    world.pass_time(61)
    assert new_task(store, elder, world) is not None
    ages = elder_at_press(store, elder, newest=5).ages
    assert len(ages) == 4 and ages[0] < timedelta(minutes=1) < ages[1] < ages[-1]
    world.pass_time(3540)
    assert len(elder_at_press(store, elder, newest=5).ages) == 1


def test_tasks_are_locked_in_order_and_the_unknown_named(world: World, store: Store) -> None:
    ids = [task_of(world, store) for _ in range(3)]
    stranger = uuid7()
    assert [task.id for task in store.lock_tasks([ids[2], ids[0], stranger])] == [ids[0], ids[2]]
    assert store.unknown_tasks({ids[1], stranger}) == {stranger}
    assert store.lock_task(stranger) is None


def test_a_step_from_a_status_that_is_over_is_overtaken(world: World, store: Store) -> None:
    task = store.lock_task(task_of(world, store))
    assert task is not None
    moved = store.move_task(task.becoming(T.CANCELLED), ended_at=NOW, next_step_at=None)
    assert moved.next_step_at is None and moved.updated_at > task.updated_at
    with pytest.raises(Overtaken):
        store.move_task(task.becoming(T.ASSIGNED), student_id=world.student(1).id)


def test_moments_from_now_are_fixed_by_the_store(world: World, store: Store) -> None:
    task, student = store.lock_task(task_of(world, store)), world.student(1)
    assert task is not None
    moved = store.move_task(
        task.becoming(T.ASSIGNED), student_id=student.id, assigned_at=NOW, next_step_at=FromNow(HOUR)
    )
    assert moved.next_step_at is not None
    assert timedelta(0) <= moved.next_step_at - HOUR - task.read_at < timedelta(seconds=5)
    assert store.due_tasks(5) == []


def test_rows_that_promise_nothing_are_refused(world: World) -> None:
    with world.stores.transaction() as store:
        first, second, student = task_of(world, store), task_of(world, store), world.student(1)
    with pytest.raises(IntegrityError), world.stores.transaction() as store:
        store.move_task(_locked(store, first).staying(), next_step_at=None)
    with pytest.raises(IntegrityError), world.stores.transaction() as store:
        store.move_task(_locked(store, first).becoming(T.ASSIGNED))
    with world.stores.transaction() as store:
        store.move_task(_locked(store, first).becoming(T.ASSIGNED), student_id=student.id)
    with pytest.raises(IntegrityError), world.stores.transaction() as store:
        store.move_task(_locked(store, second).becoming(T.ASSIGNED), student_id=student.id)


def _locked(store: Store, task_id: UUID):
    task = store.lock_task(task_id)
    assert task is not None
    return task


def test_a_transaction_that_fails_leaves_nothing(world: World) -> None:
    with pytest.raises(Overtaken), world.stores.transaction() as store:
        task_id = task_of(world, store)
        raise Overtaken
    with world.stores.reading() as store:
        assert store.lock_task(task_id) is None


def test_versions_grow_with_every_change(world: World, store: Store) -> None:
    task = _locked(store, task_of(world, store))
    versions = [task.updated_at]
    assert task.next_step_at is not None
    versions.append(store.save_progress([Progress(task.id, task.next_step_at + HOUR, True, 2, 1, 9)])()[task.id])
    store.set_due(task.id)
    changed = _locked(store, task.id)
    versions += [changed.updated_at, store.end_searches([task.id], RULES)[0].version]
    assert versions == sorted(set(versions))
    assert (changed.waiting, changed.asked, changed.skipped, changed.listed) == (True, 2, 1, 9)
    assert store.changed_tasks(versions[0], versions[-1], 5) == {task.id: versions[-1]}
    assert store.changed_tasks(versions[-1], versions[-1] + HOUR, 5) == {}


def test_search_that_is_set_due_is_due_now(world: World, store: Store) -> None:
    task = store.lock_task(task_of(world, store))
    assert task is not None
    store.move_task(task.staying(), next_step_at=FromNow(HOUR))
    assert store.due_tasks(10) == []
    store.set_due(task.id)
    assert store.due_tasks(10) == [task.id]


def test_a_search_ends_once_with_the_counts_of_its_offers(world: World, store: Store) -> None:
    task_id = task_of(world, store)
    asked, passed = world.student(1), world.student(2)
    ask(store, task_id, asked)
    store.insert_skips([Skip(task_id, passed.id, "OFF_DUTY", 0, None)])
    assert [item.task_id for item in store.end_searches([task_id], RULES)] == [task_id]
    task = _locked(store, task_id)
    assert (task.status, task.asked, task.skipped, task.next_step_at) == (T.TIMED_OUT, 1, 1, None)
    assert store.end_searches([task_id], RULES) == []
    store.set_due(task_id)
    assert _locked(store, task_id).next_step_at is None, "what has ended is never due"


# ---- offers ----


def test_one_live_offer_for_a_task_and_for_a_student(world: World, store: Store) -> None:
    first, second = task_of(world, store), task_of(world, store)
    ali, banu = world.student(1), world.student(2)
    assert ask(store, first, ali, banu) == [ali.id]
    assert ask(store, second, ali) == []
    assert ask(store, second, banu) == [banu.id]
    assert store.live_task_of_students([ali.id, banu.id]) == {ali.id: first, banu.id: second}


def test_nobody_is_asked_twice_for_a_task(world: World, store: Store) -> None:
    task_id, ali = task_of(world, store), world.student(1)
    ask(store, task_id, ali)
    store.close_offer(live_offer(store, task_id), O.REJECTED)
    assert ask(store, task_id, ali) == []
    assert store.insert_skips([Skip(task_id, ali.id, "OFF_DUTY", 0, None)]) == []
    offer = store.offer_of(task_id, ali.id)
    assert offer is not None and offer.state is O.REJECTED


def test_an_offer_is_closed_once(world: World, store: Store) -> None:
    task_id, ali = task_of(world, store), world.student(1)
    ask(store, task_id, ali)
    offer = live_offer(store, task_id)
    assert store.close_offer(offer, O.WITHDRAWN, "CANCELLED")
    assert not store.close_offer(offer, O.REJECTED)
    [seen] = world.snapshot().offers
    assert (seen.state, seen.reason) == ("WITHDRAWN", "CANCELLED")


def test_an_offer_expires_at_its_deadline_and_cannot_be_accepted_then(world: World, store: Store) -> None:
    first, second = task_of(world, store), task_of(world, store)
    ali, banu = world.student(1), world.student(2)
    ask(store, first, ali)
    world.pass_time(300)
    ask(store, second, banu)
    world.pass_time(301)
    offer = live_offer(store, first)
    assert offer.overdue and not accepts(world, offer)
    expired, live = store.expire_offers([first, second])()
    assert [(item.task_id, item.student_id) for item in expired] == [(first, ali.id)]
    assert 0.9 < expired[0].late_s < 5
    assert live.keys() == {second}
    [still] = live[second]
    assert not still.overdue and accepts(world, still) and not accepts(world, still)
    assert store.expire_offers([first, second])() == ([], {})


def test_one_accepted_offer_for_a_task(world: World) -> None:
    ali, banu = world.student(1), world.student(2)
    with world.stores.transaction() as store:
        task_id = task_of(world, store)
        store.accept_by_hand(task_id, ali.id, ZONE)
    with pytest.raises(IntegrityError), world.stores.transaction() as store:
        store.accept_by_hand(task_id, banu.id, ZONE)


def test_a_hand_takes_up_an_earlier_offer_whatever_became_of_it(world: World, store: Store) -> None:
    task_id, ali, banu = task_of(world, store), world.student(150), world.student(2)
    store.insert_skips([Skip(task_id, banu.id, "OFF_DUTY", 0, 2.0)])
    store.accept_by_hand(task_id, banu.id, ZONE)
    [offer] = world.snapshot().offers
    assert (offer.state, offer.reason, offer.rank) == ("ACCEPTED", "ASSIGNED_BY_HAND", 1)
    assert offer.offered_at is not None
    task = _locked(store, task_id)
    assert (task.asked, task.skipped) == (1, 0)
    accepted = store.offer_of(task_id, banu.id)
    assert accepted is not None and store.close_offer(accepted, O.RELEASED)
    store.accept_by_hand(task_id, ali.id, ZONE)
    offer = next(item for item in world.snapshot().offers if item.student_id == ali.id)
    assert (offer.reason, offer.rank) == ("ASSIGNED_BY_HAND", 2)
    assert offer.distance_m == pytest.approx(150, abs=0.01)


def test_those_passed_by_must_exist_and_do_not_count_as_asked(world: World, store: Store) -> None:
    task_id, ali = task_of(world, store), world.student(1)
    skips = [Skip(task_id, ali.id, "OFF_DUTY", 2, 1.0), Skip(task_id, 999_999, "INACTIVE", 0, None)]
    assert store.insert_skips(skips) == [task_id]
    [offer] = world.snapshot().offers
    assert (offer.state, offer.reason, offer.completed, offer.offered_at) == ("SKIPPED", "OFF_DUTY", 2, None)


def test_the_facts_about_a_candidate(world: World, store: Store) -> None:
    task_id, other = task_of(world, store), task_of(world, store)
    fine, busy, off, gone, far, lost, holder, seen = [world.student(metres) for metres in (1, 2, 3, 4, 1001, 6, 7, 8)]
    ask(store, other, busy)
    ask(store, task_id, seen)
    store.set_on_duty(off.id, False)
    store.set_active_student(gone.id, False)
    world.hide(lost.id)
    assert store.take_student(holder.id, other)
    people = (fine, busy, off, gone, far, lost, holder, seen)
    read = store.candidates([(task_id, item.id) for item in people] + [(uuid7(), fine.id)], RULES)
    assert len(read) == len(people), "of a task nobody knows there are none"
    found = [read[task_id, item.id] for item in people]
    assert [item.obstacle for item in found] == [
        None,
        None,
        "OFF_DUTY",
        "INACTIVE",
        "TOO_FAR",
        "NO_LOCATION",
        "HAS_A_TASK",
        None,
    ]
    assert [item.seen_before for item in found] == [False] * 7 + [True]
    assert [item.busy_until is not None for item in found] == [False, True] + [False] * 5 + [True]
    assert found[4].distance_m == pytest.approx(1001, abs=0.01) and found[5].distance_m is None
    assert store.candidates([(task_id, 999_999)], RULES)[task_id, 999_999].obstacle == "INACTIVE"
    assert store.candidates([], RULES) == {}


# ---- students ----


def completes(store: Store, student: Caller, times: int) -> None:
    for _ in range(times):
        store.count_completed(student.id, ZONE)


def test_the_order_of_candidates(world: World, store: Store) -> None:
    task_id = task_of(world, store)
    often, far, near, some, twin = [world.student(metres) for metres in (10, 900, 100, 300, 100)]
    outside, asked, busy = [world.student(metres) for metres in (1000.5, 5, 999.5)]
    completes(store, often, 5)
    completes(store, some, 2)
    ask(store, task_id, asked)
    ask(store, task_of(world, store), busy)
    ranking = store.rank(task_id, world.spot(0), RULES)
    assert [item.student_id for item in ranking.candidates] == [near.id, twin.id, far.id, busy.id, some.id, often.id]
    assert ranking.eligible == 6 and outside.id not in [item.student_id for item in ranking.candidates]
    assert [item.busy_until is not None for item in ranking.candidates] == [False] * 3 + [True, False, False]
    assert [item.completed for item in ranking.candidates] == [0, 0, 0, 0, 2, 5]
    assert ranking.candidates[0].distance_m == pytest.approx(100, abs=0.01)
    cut = store.rank(task_id, world.spot(0), RULES, cap=2)
    assert ([item.student_id for item in cut.candidates], cut.eligible) == ([near.id, twin.id], 6)


def test_only_those_who_can_come_are_candidates(world: World, store: Store) -> None:
    off, gone, lost, holder = [world.student(metres) for metres in (1, 2, 3, 4)]
    task_id = task_of(world, store)
    store.set_on_duty(off.id, False)
    store.set_active_student(gone.id, False)
    world.hide(lost.id)
    store.take_student(holder.id, task_id)
    assert store.rank(uuid7(), world.spot(0), RULES).eligible == 0
    store.set_on_duty(off.id, True)
    store.free_student(holder.id)
    store.set_active_student(gone.id, True)
    store.place_student(lost.id, world.spot(9))
    ranking = store.rank(uuid7(), world.spot(0), RULES)
    assert [item.student_id for item in ranking.candidates] == [off.id, gone.id, holder.id, lost.id]


def test_counts_belong_to_their_month(world: World, store: Store) -> None:
    ali = world.student(1)
    completes(store, ali, 2)
    assert store.rank(uuid7(), world.spot(0), RULES).candidates[0].completed == 2
    world.begin_a_month()
    assert store.rank(uuid7(), world.spot(0), RULES).candidates[0].completed == 0
    completes(store, ali, 1)
    assert store.rank(uuid7(), world.spot(0), RULES).candidates[0].completed == 1


def test_a_student_holds_one_task(world: World, store: Store) -> None:
    first, second, ali, gone = task_of(world, store), task_of(world, store), world.student(1), world.student(2)
    taken = store.take_student(ali.id, first)
    assert taken is not None and taken.id == ali.id
    assert not store.take_student(ali.id, second)
    store.set_active_student(gone.id, False)
    assert not store.take_student(gone.id, first)
    assert [store.is_active_student(id_) for id_ in (ali.id, gone.id, 999_999)] == [True, False, False]
    assert store.lock_students([ali.id, gone.id, 999_999]).keys() == {ali.id, gone.id}
    completes(store, ali, 1)
    assert store.take_student(ali.id, second), "completing sets free"


def test_only_students_who_are_as_they_were_read_and_whom_nobody_asks_are_asked(world: World, store: Store) -> None:
    tasks = [task_of(world, store) for _ in range(4)]
    ali, moved, busy, unread = (world.student(number) for number in range(1, 5))
    ask(store, task_of(world, store), busy)
    read = store.candidates([(tasks[0], one.id) for one in (ali, moved, busy, unread)], RULES)
    versions = {one.student_id: one.version for one in read.values()} | {unread.id: None}
    store.place_student(moved.id, world.spot(5))
    picks = [
        Pick(task_id, one.id, 1, 0, 10.0, versions[one.id])
        for task_id, one in zip(tasks, (unread, busy, moved, ali), strict=True)
    ]
    made, locked = store.ask(picks, TTL)
    assert made.keys() == {(tasks[3], ali.id)}
    assert locked.keys() == {ali.id, moved.id, busy.id, unread.id}
    assert [locked[one.id] == versions[one.id] for one in (ali, moved, busy)] == [True, False, True]
    offer = live_offer(store, tasks[3])
    assert (offer.student_id, offer.deadline) == (ali.id, made[tasks[3], ali.id])


def test_places_that_count_from_now_on_are_found_without_looking_at_all_students(world: World) -> None:
    with world.stores.transaction() as store:
        due, longer_due, later, _ = (world.student(number) for number in range(1, 5))
        for student, minutes in ((due, -1), (longer_due, -2), (later, 1)):
            store.conn.execute(
                text(
                    "UPDATE students SET next_location = location, location = NULL,"
                    " next_location_from = clock_timestamp() + :wait WHERE id = :id"
                ),
                {"id": student.id, "wait": timedelta(minutes=minutes)},
            )
        store.conn.execute(text("SET LOCAL enable_seqscan = off"))
        plan = store.conn.execute(text(f"EXPLAIN {PLACE_WAITING.text}"), {"most": 1}).scalars().all()
        assert [line for line in plan if "Scan using students_next_location_idx" in line]
        assert [store.place_waiting_students(1) for _ in range(3)] == [[longer_due.id], [due.id], []]


def waits(store: Store, task_id: UUID) -> None:
    task = _locked(store, task_id)
    store.save_progress([Progress(task_id, task.search_until, True, task.asked, task.skipped, 0)])


def test_a_free_student_finds_the_oldest_task_that_waits_within_reach(world: World, store: Store) -> None:
    oldest, older, younger, idle = [task_of(world, store, metres) for metres in (3000, 0, 500, 0)]
    for task_id in (oldest, older, younger):
        waits(store, task_id)
    ali = world.student(400)
    assert store.oldest_waiting_tasks({ali.id, 999_999}, RULES) == {older}
    assert store.tasks_waiting_for({ali.id}, RULES) == {older, younger}
    store.insert_skips([Skip(older, ali.id, "OFF_DUTY", 0, None)])
    assert store.oldest_waiting_tasks({ali.id}, RULES) == store.tasks_waiting_for({ali.id}, RULES) == {younger}
    ask(store, idle, ali)
    assert store.oldest_waiting_tasks({ali.id}, RULES) == set(), "who is being asked is not free"
    assert store.tasks_waiting_for({ali.id}, RULES) == {younger}
    world.pass_time(3601)
    store.expire_offers([idle])()
    assert store.oldest_waiting_tasks({ali.id}, RULES) == set(), "nobody new is asked after the search limit"


def test_who_strays_from_the_task_they_are_asked_for(world: World, store: Store) -> None:
    ali, task_id = world.student(1), task_of(world, store)
    assert not store.has_strayed(ali.id, RULES)
    ask(store, task_id, ali)
    assert store.place_student(ali.id, world.spot(1425)) and not store.has_strayed(ali.id, RULES)
    assert store.place_student(ali.id, world.spot(1575)) and store.has_strayed(ali.id, RULES)
    assert not store.place_student(999_999, world.spot(0))


# ---- people ----


def test_people_and_what_hangs_on_them(world: World, store: Store) -> None:
    elder, ali, banu = world.elder(70), world.student(1), world.student(2)
    task_id = new_task(store, elder, world)
    assert task_id is not None
    ask(store, task_id, ali)
    held = elder_at_press(store, elder)
    assert (held.role, held.active) == (Role.ELDER, True)
    assert held.home is not None and held.home.lat == pytest.approx(world.spot(70).lat)
    assert [store.tasks_of(item.id) for item in (elder, ali, banu)] == [[task_id], [task_id], []]
    assert store.set_active_user(elder.id, False) is Role.ELDER
    assert (
        store.set_active_user(999_999, False) is None and store.lock_elder_later(999_999, EVERYTHING, None, 1)() is None
    )
    assert store.people([ali.id, 999_999]).keys() == {ali.id}
    zeynep, mehmet = world.coordinator(), world.coordinator()
    store.set_active_user(mehmet.id, False)
    assert store.coordinators(elder.id) == [zeynep.id]


# ---- the reconciler, and what is shown ----


def test_what_is_due_the_longest_overdue_first(world: World, store: Store) -> None:
    first, second, third, ended = [task_of(world, store) for _ in range(4)]
    now = _locked(store, first).read_at
    store.save_progress([Progress(third, now - HOUR, False, 0, 0, 0), Progress(second, now + HOUR, False, 0, 0, 0)])
    store.end_searches([ended], RULES)
    assert store.due_tasks(10) == [third, first]
    assert store.due_tasks(1) == [third]
    assert store.due_and_unchanged(10, timedelta()) == [third, first]
    assert store.due_and_unchanged(1, timedelta()) == [third]
    assert store.due_and_unchanged(10, HOUR) == []


def test_standings_of_open_tasks_by_id(world: World, store: Store) -> None:
    first, ended, second = [task_of(world, store) for _ in range(3)]
    ali = world.student(1)
    store.end_searches([ended], RULES)
    ask(store, second, ali)
    assert [item.task_id for item in store.open_standings(UUID(int=0), 10)] == [first, second]
    assert [item.task_id for item in store.open_standings(UUID(int=0), 1)] == [first]
    [standing] = store.open_standings(first, 10)
    assert (standing.student_id, standing.status) == (ali.id, T.PENDING) and standing.deadline is not None
    assert list(standing.seen) == [ali.id]
    by_id = {item.task_id: item for item in store.standings([ended, second, uuid7()])}
    assert by_id.keys() == {ended, second} and by_id[ended].student_id is None


def test_who_sees_a_task(world: World, store: Store) -> None:
    elder, ali, stranger, boss = world.elder(0), world.student(1), world.student(2), world.coordinator()
    task_id = new_task(store, elder, world)
    assert task_id is not None
    ask(store, task_id, ali)
    assert [store.task_view(caller, task_id).id for caller in (elder, ali, boss)] == [task_id] * 3
    assert store.task_view(ali, task_id).location is None and store.task_view(elder, task_id).location is not None
    with pytest.raises(TaskNotFound):
        store.task_view(stranger, task_id)
    offer = store.current_offer(ali, RULES)
    assert offer is not None and offer.task_id == task_id and store.current_offer(stranger, RULES) is None
    assert store.open_task(ali) is None and store.open_task(elder) is not None
    assert [item.student_id for item in store.offer_views(EVERYTHING, task_id)] == [ali.id]
    world.pass_time(601)
    assert store.current_offer(ali, RULES) is None and store.task_view(boss, task_id).current_offer is None


def test_lists_of_tasks_newest_first_page_by_page(world: World, store: Store) -> None:
    boss = world.coordinator()
    ids = [task_of(world, store) for _ in range(3)]
    store.end_searches(ids[:1], RULES)
    page = store.task_views(boss, None, None, 2)
    assert [item.id for item in page.items] == [ids[2], ids[1]]
    rest = store.task_views(boss, None, page.next_cursor, 2)
    assert ([item.id for item in rest.items], rest.next_cursor) == ([ids[0]], None)
    assert store.task_views(boss, None, None, 3).next_cursor is None, "the last page is full, so no page follows"
    assert [item.id for item in store.task_views(boss, T.TIMED_OUT, None, 5).items] == [ids[0]]
