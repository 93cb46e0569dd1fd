"""Who is asked next, as a table of facts."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.matching.choice import Search, by_age, walk, walk_ranking
from app.matching.eligibility import Obstacle
from app.matching.states import TaskStatus
from app.matching.store.records import Candidate, Fact, Ranking, Task
from app.redis_store.contract import ListChange, TaskKeys
from app.users.models import LatLon

NOON = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)
TTL_END = NOON + timedelta(minutes=10)
SOON, LATER = NOON + timedelta(minutes=2), NOON + timedelta(minutes=5)
ID = UUID(int=1)


def task(number: int = 1, *, asked: int = 0, skipped: int = 0, created_at: datetime = NOON) -> Task:
    return Task(
        id=UUID(int=number),
        status=TaskStatus.PENDING,
        elder_id=1,
        student_id=None,
        note=None,
        spot=LatLon(41, 29),
        created_at=created_at,
        search_until=NOON + timedelta(hours=1),
        next_step_at=NOON,
        waiting=False,
        listed=9,
        asked=asked,
        skipped=skipped,
        assigned_at=None,
        idempotency_key=None,
        updated_at=NOON,
        read_at=NOON,
    )


def fact(student_id: int, kind: str) -> Fact:
    return Fact(
        ID,
        student_id,
        obstacle=Obstacle.OFF_DUTY if kind.startswith("off duty") else None,
        seen_before=kind == "seen",
        busy_until={"busy soon": SOON, "busy later": LATER, "off duty and busy": SOON}.get(kind),
        completed=1,
        distance_m=student_id * 10.0,
    )


@pytest.mark.parametrize(
    ("kinds", "pick", "rank", "skips", "dealt_with", "wait_until"),
    [
        ([], None, None, [], [], None),
        (["free"], 1, 1, [], [], None),
        (["free", "free"], 1, 1, [], [], None),
        (["seen", "free"], 2, 1, [], [1], None),
        (["unknown", "free"], 2, 1, [], [1], None),
        (["off duty", "free"], 2, 2, [1], [1], None),
        (["off duty and busy", "free"], 2, 2, [1], [1], None),
        (["busy soon", "free"], 2, 1, [], [], SOON),
        (["busy later", "busy soon"], None, None, [], [], SOON),
        (["taken", "busy later"], None, None, [], [], LATER),
        (["taken"], None, None, [], [], TTL_END),
        (["off duty", "seen", "busy later", "off duty"], None, None, [1, 4], [1, 2, 4], LATER),
        (["off duty"], None, None, [1], [1], None),
        (["busy soon", "off duty", "free", "off duty"], 3, 2, [2], [2], SOON),
    ],
)
def test_going_down_a_list(kinds, pick, rank, skips, dealt_with, wait_until) -> None:
    ids = list(range(1, len(kinds) + 1))
    facts = {(ID, id_): fact(id_, kind) for id_, kind in zip(ids, kinds, strict=True) if kind != "unknown"}
    taken = {id_ for id_, kind in zip(ids, kinds, strict=True) if kind == "taken"}
    search = Search(task(), ids)
    walk(search, ids, facts, taken, TTL_END)
    assert (search.pick and search.pick.student_id) == pick
    assert (search.pick and search.pick.rank) == rank
    assert [(skip.student_id, skip.reason) for skip in search.skips] == [(id_, "OFF_DUTY") for id_ in skips]
    assert search.dealt_with == dealt_with
    assert search.wait_until == wait_until
    if pick:
        assert pick in taken, "nobody else of this batch may pick the same student"


def test_the_rank_counts_those_asked_and_skipped_before() -> None:
    search = Search(task(asked=3, skipped=2), [7])
    walk(search, [7], {(ID, 7): fact(7, "free")}, set(), TTL_END)
    assert search.pick is not None
    assert (search.pick.rank, search.pick.completed, search.pick.distance_m) == (6, 1, 70.0)


def test_a_second_part_of_the_list_is_not_looked_at_once_somebody_was_found() -> None:
    search = Search(task(), [1, 2])
    facts = {(ID, 1): fact(1, "free"), (ID, 2): fact(2, "off duty")}
    walk(search, [1], facts, set(), TTL_END)
    walk(search, [2], facts, set(), TTL_END)
    assert search.skips == []


def candidate(student_id: int, busy_until: datetime | None = None) -> Candidate:
    return Candidate(student_id, 0, student_id * 10.0, busy_until)


def test_a_new_list_is_kept_up_to_its_cap_and_says_how_many_there_are() -> None:
    search = Search(task(asked=2, skipped=1), [])
    walk_ranking(search, Ranking([candidate(n) for n in range(1, 6)], 40), set(), TTL_END, cap=3)
    assert (search.renewed, search.listed) == ([1, 2, 3], 43)
    assert search.pick is not None and search.pick.student_id == 1


def test_in_a_new_list_the_busy_and_the_taken_are_passed_over() -> None:
    search = Search(task(), [], wait_until=NOON)
    walk_ranking(search, Ranking([candidate(1, LATER), candidate(2), candidate(3)], 3), {2}, TTL_END, cap=3)
    assert search.pick is not None and search.pick.student_id == 3
    waiting = Search(task(), [], wait_until=NOON)
    walk_ranking(waiting, Ranking([candidate(1, LATER), candidate(2, SOON)], 2), set(), TTL_END, cap=3)
    assert (waiting.pick, waiting.wait_until) == (None, SOON)


def test_what_redis_is_told_of_a_kept_list() -> None:
    search = Search(task(), [1, 2, 3], dealt_with=[1])
    assert search.keys(2, TTL_END, TTL_END) == TaskKeys(ID, 2, TTL_END, TTL_END, ListChange.KEEP, [1, 2])
    assert search.keys(None, None, SOON) == TaskKeys(ID, None, None, SOON, ListChange.KEEP, [1])


def test_a_list_that_redis_does_not_hold_yet_is_written_whole() -> None:
    search = Search(task(), [1, 2, 3], given_is_new=True, dealt_with=[1])
    assert search.keys(2, TTL_END, TTL_END) == TaskKeys(ID, 2, TTL_END, TTL_END, ListChange.REPLACE, [3])
    assert search.keys(None, None, SOON) == TaskKeys(ID, None, None, SOON, ListChange.REPLACE, [2, 3])


def test_what_redis_is_told_of_a_new_list() -> None:
    search = Search(task(), [1], dealt_with=[1], renewed=[4, 5, 6])
    assert search.keys(5, TTL_END, TTL_END) == TaskKeys(ID, 5, TTL_END, TTL_END, ListChange.REPLACE, [4, 6])


def test_the_oldest_task_chooses_first() -> None:
    young, old = task(1, created_at=LATER), task(2, created_at=SOON)
    twin = task(3, created_at=SOON)
    assert by_age([young, twin, old]) == [old, twin, young]
