"""Who is asked next, as a table of candidates."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.matching.choice import Search, Walked, by_age, walk, walk_new_list
from app.matching.rules.eligibility import Candidate, Obstacle
from app.matching.rules.states import TaskStatus
from app.matching.store.records import HelpTask, Ranking
from app.redis_store.contract import ListChange, TaskKeys
from app.users.models import LatLon

NOON = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)
TTL_END = NOON + timedelta(minutes=10)
SOON, LATER = NOON + timedelta(minutes=2), NOON + timedelta(minutes=5)
ID = UUID(int=1)


def task(number: int = 1, *, asked: int = 0, skipped: int = 0, created_at: datetime = NOON) -> HelpTask:
    return HelpTask(
        id=UUID(int=number),
        status=TaskStatus.PENDING,
        elder_id=1,
        student_id=None,
        note=None,
        spot=LatLon(41, 29),
        area=None,
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


def read(student_id: int, kind: str) -> Candidate:
    return Candidate(
        student_id,
        obstacle=Obstacle.OFF_DUTY if kind.startswith("off duty") else None,
        seen_before=kind == "seen",
        busy_until={"busy soon": SOON, "busy later": LATER, "off duty and busy": SOON}.get(kind),
        completed=1,
        distance_m=student_id * 10.0,
    )


@pytest.mark.parametrize(
    ("kinds", "pick", "rank", "skips", "gone", "wait_until"),
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
def test_going_down_a_list(kinds, pick, rank, skips, gone, wait_until) -> None:
    ids = list(range(1, len(kinds) + 1))
    candidates = {(ID, id_): read(id_, kind) for id_, kind in zip(ids, kinds, strict=True) if kind != "unknown"}
    taken = {id_ for id_, kind in zip(ids, kinds, strict=True) if kind == "taken"}
    walked = walk(task(), ids, candidates, taken, TTL_END)
    assert (walked.pick and walked.pick.student_id) == pick
    assert (walked.pick and walked.pick.rank) == rank
    assert [(skip.student_id, skip.reason) for skip in walked.skips] == [(id_, "OFF_DUTY") for id_ in skips]
    assert walked.gone == gone
    assert walked.wait_until == wait_until


def test_the_rank_counts_those_asked_and_skipped_before() -> None:
    walked = walk(task(asked=3, skipped=2), [7], {(ID, 7): read(7, "free")}, set(), TTL_END)
    assert walked.pick is not None
    assert (walked.pick.rank, walked.pick.completed, walked.pick.distance_m) == (6, 1, 70.0)


def test_a_second_part_of_the_list_is_not_looked_at_once_somebody_was_found() -> None:
    candidates = {(ID, 1): read(1, "free"), (ID, 2): read(2, "off duty")}
    head = walk(task(), [1], candidates, set(), TTL_END)
    assert walk(task(), [2], candidates, set(), TTL_END, head) == head
    assert head.skips == []


def test_a_second_part_of_the_list_adds_to_what_the_first_has_found() -> None:
    candidates = {(ID, 1): read(1, "off duty"), (ID, 2): read(2, "busy later"), (ID, 3): read(3, "free")}
    head = walk(task(), [1, 2], candidates, set(), TTL_END)
    walked = walk(task(), [3], candidates, set(), TTL_END, head)
    assert walked.pick is not None and (walked.pick.student_id, walked.pick.rank) == (3, 2)
    assert (walked.skips, walked.gone, walked.wait_until) == (head.skips, [1], LATER)


def candidate(student_id: int, busy_until: datetime | None = None) -> Candidate:
    return Candidate(student_id, 0, student_id * 10.0, busy_until)


def search(*listed: int, walked: Walked, is_new: bool = False, of: HelpTask | None = None) -> Search:
    return Search(of or task(), listed, is_new, 9, walked)


def test_a_new_list_is_kept_up_to_its_cap_and_says_how_many_there_are() -> None:
    before = search(walked=Walked(), of=task(asked=2, skipped=1))
    found = walk_new_list(before, Ranking([candidate(n) for n in range(1, 6)], 40), set(), TTL_END, cap=3)
    assert (found.listed, found.is_new, found.eligible) == ([1, 2, 3], True, 43)
    assert found.pick is not None and found.pick.student_id == 1


def test_in_a_new_list_the_busy_and_the_taken_are_passed_over() -> None:
    before = search(walked=Walked(wait_until=NOON))
    ranking = Ranking([candidate(1, LATER), candidate(2), candidate(3)], 3)
    found = walk_new_list(before, ranking, {2}, TTL_END, cap=3)
    assert found.pick is not None and found.pick.student_id == 3
    waiting = walk_new_list(before, Ranking([candidate(1, LATER), candidate(2, SOON)], 2), set(), TTL_END, cap=3)
    assert (waiting.pick, waiting.walked.wait_until) == (None, SOON)


def test_what_redis_is_told_of_a_kept_list() -> None:
    kept = search(1, 2, 3, walked=Walked(gone=[1]))
    assert kept.keys(2, TTL_END, TTL_END) == TaskKeys(ID, 2, TTL_END, TTL_END, ListChange.KEEP, [1, 2])
    assert kept.keys(None, None, SOON) == TaskKeys(ID, None, None, SOON, ListChange.KEEP, [1])


def test_a_list_that_redis_does_not_hold_yet_is_written_whole() -> None:
    new = search(1, 2, 3, walked=Walked(gone=[1]), is_new=True)
    assert new.keys(2, TTL_END, TTL_END) == TaskKeys(ID, 2, TTL_END, TTL_END, ListChange.REPLACE, [3])
    assert new.keys(None, None, SOON) == TaskKeys(ID, None, None, SOON, ListChange.REPLACE, [2, 3])


def test_what_redis_is_told_of_a_new_list() -> None:
    old = search(1, walked=Walked(gone=[1]))
    new = walk_new_list(old, Ranking([candidate(n) for n in (4, 5, 6)], 3), {4}, TTL_END, cap=3)
    assert new.keys(5, TTL_END, TTL_END) == TaskKeys(ID, 5, TTL_END, TTL_END, ListChange.REPLACE, [4, 6])


def test_the_oldest_task_chooses_first() -> None:
    young, old = task(1, created_at=LATER), task(2, created_at=SOON)
    twin = task(3, created_at=SOON)
    assert by_age([young, twin, old]) == [old, twin, young]
