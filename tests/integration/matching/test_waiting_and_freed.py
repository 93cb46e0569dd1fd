"""Many tasks and few students: tasks wait, and a freed student is asked for the oldest of them."""

import itertools
import random
from datetime import timedelta

import pytest

from app.users.models import Caller
from tests.support.depth import size
from tests.support.matching import SPOT, Neighbourhood


def test_student_with_a_live_offer_is_passed_over_but_stays_listed(town: Neighbourhood) -> None:
    ali, banu = town.students(10, 20)
    first = town.press(town.elder("Hatice Demir"))
    elder = town.elder()
    task_id = town.press(elder)
    assert (town.asked(first), town.asked(task_id)) == (ali.id, banu.id)
    view = town.matching.task(elder, task_id)
    assert (view.asked, view.remaining) == (1, 1)
    town.matching.reject(ali, first)
    town.matching.reject(banu, task_id)
    assert town.asked(task_id) == ali.id
    assert town.asked(first) == banu.id


def test_task_without_a_free_student_waits_for_the_earliest_deadline(town: Neighbourhood) -> None:
    town.students(10, 20)
    elders = town.elders(3)
    tasks = [town.press(elder) for elder in elders]
    deadlines = [town.task(task_id).next_step_at for task_id in tasks]
    waiting = town.task(tasks[2])
    assert (waiting.status, waiting.waiting, town.asked(tasks[2])) == ("PENDING", True, None)
    assert waiting.next_step_at == min(deadlines[:2])
    view = town.matching.task(elders[2], tasks[2])
    assert (view.asked, view.remaining, view.next_step_at) == (0, 2, deadlines[0])


def test_wait_ends_at_the_search_limit(town: Neighbourhood) -> None:
    town.student(10)
    elders = town.elders(2)
    first, waiting = (town.press(elder) for elder in elders)
    town.run("UPDATE tasks SET search_until = clock_timestamp() + interval '1 minute' WHERE id = :id", id=waiting)
    town.advance(waiting)
    left = town.one("SELECT next_step_at - clock_timestamp() AS left FROM tasks WHERE id = :id", id=waiting).left
    assert left < timedelta(minutes=1)
    town.age(waiting, 61)
    town.advance(waiting)
    assert town.status(waiting) == "TIMED_OUT"
    assert town.told(elders[1], "NOBODY_FOUND") != []
    assert town.status(first) == "PENDING"


def test_freed_student_is_asked_for_the_oldest_waiting_task(town: Neighbourhood) -> None:
    ali = town.student(10)
    asking, *waiting = (town.press(elder) for elder in town.elders(4))
    town.matching.reject(ali, asking)
    assert [town.asked(task_id) for task_id in waiting] == [ali.id, None, None]
    assert [town.task(task_id).waiting for task_id in waiting] == [False, True, True]


def test_freed_student_is_asked_for_a_task_within_the_radius(town: Neighbourhood) -> None:
    near_both = town.student(0, at=SPOT)
    far_spot = town.spot_at(1800)
    town.student(900)
    asking = town.press(town.elder("Elder Bir"))
    other = town.press(town.elder("Elder İki"))
    out_of_reach = town.press(town.elder("Elder Üç", far_spot))
    waiting = town.press(town.elder("Elder Dört"))
    assert town.asked(asking) == near_both.id
    town.matching.reject(near_both, asking)
    assert town.asked(waiting) == near_both.id
    assert town.asked(out_of_reach) is None
    assert town.asked(other) is not None


@pytest.mark.parametrize("how", ["reject", "expiry", "cancel", "move on"])
def test_student_whose_offer_ended_is_asked_for_the_waiting_task(town: Neighbourhood, how: str) -> None:
    coordinator, elder, ali = town.coordinator(), town.elder("Hatice Demir"), town.student(10)
    first, waiting = town.press(elder), town.press()
    assert town.task(waiting).waiting
    match how:
        case "reject":
            town.matching.reject(ali, first)
        case "expiry":
            town.expire(first)
        case "cancel":
            town.matching.cancel(elder, first)
        case _:
            town.matching.move_on(coordinator, first)
    assert town.asked(waiting) == ali.id


@pytest.mark.parametrize("how", ["complete", "cancel", "withdraw", "release", "elder leaves"])
def test_student_whose_task_ended_is_asked_for_the_waiting_task(town: Neighbourhood, how: str) -> None:
    coordinator, elder, ali = town.coordinator(), town.elder("Hatice Demir"), town.student(10)
    first = town.press(elder)
    town.matching.accept(ali, first)
    banu = town.student(20)
    assert town.asked(town.press(town.elder("Emine Kurt"))) == banu.id
    waiting = town.press()
    assert town.task(waiting).waiting
    match how:
        case "complete":
            town.matching.start(ali, first)
            town.matching.complete(ali, first)
        case "cancel":
            town.matching.cancel(elder, first)
        case "withdraw":
            town.matching.withdraw(ali, first)
        case "release":
            town.matching.release(coordinator, first)
        case _:
            town.matching.set_active(elder.id, False)
    assert town.asked(waiting) == ali.id


def test_student_who_becomes_available_is_asked_for_the_waiting_task(town: Neighbourhood) -> None:
    town.student(10)
    town.press(town.elder("Hatice Demir"))
    for number, (student, come) in enumerate(
        [
            (town.student(20, on_duty=False), lambda s: town.matching.set_availability(s, True)),
            (town.student(5000), lambda s: town.matching.set_location(s.id, town.spot_at(30))),
            (town.student(40, located=False), lambda s: town.matching.set_location(s.id, town.spot_at(40))),
            (town.student(50, active=False), lambda s: town.matching.set_active(s.id, True)),
        ]
    ):
        waiting = town.press(town.elder(f"Elder{number}"))
        assert town.task(waiting).waiting
        come(student)
        assert town.asked(waiting) == student.id


def test_task_does_not_wait_for_a_student_it_asked_before(town: Neighbourhood) -> None:
    ali = town.student(10)
    first = town.press(town.elder("Hatice Demir"))
    town.matching.reject(ali, first)
    second = town.press()
    assert town.asked(second) == ali.id
    assert town.status(first) == "TIMED_OUT"


def test_task_stops_waiting_for_a_student_who_accepts_another_task(town: Neighbourhood) -> None:
    ali, elder = town.student(10), town.elder()
    first = town.press(town.elder("Hatice Demir"))
    waiting = town.press(elder)
    town.matching.accept(ali, first)
    assert town.status(waiting) == "TIMED_OUT"
    assert len(town.told(elder, "NOBODY_FOUND")) == 1


@pytest.mark.parametrize("how", ["assign", "off duty", "deactivate"])
def test_task_stops_waiting_for_a_student_who_becomes_unavailable(town: Neighbourhood, how: str) -> None:
    ali = town.student(10)
    first = town.press(town.elder("Hatice Demir"))
    waiting = town.press()
    match how:
        case "assign":
            town.matching.assign(town.coordinator(), first, ali.id)
        case "off duty":
            town.matching.set_availability(ali, False)
        case _:
            town.matching.set_active(ali.id, False)
    assert town.status(waiting) == "TIMED_OUT"


@pytest.mark.parametrize("answer", ["reject", "expire", "mixed", "batch"])
def test_many_tasks_share_three_students(town: Neighbourhood, answer: str) -> None:
    """Each task asks all three, one after the other, and no student has two live offers."""
    rng = random.Random(answer)
    students = {student.id: student for student in town.students(10, 20, 30)}
    elders = town.elders(size(suite=6, deep=10))
    tasks = {town.press(elder): elder for elder in elders}
    for _ in range(40):
        live = town.all("SELECT task_id, student_id FROM offers WHERE state = 'PENDING' ORDER BY task_id")
        assert len({row.student_id for row in live}) == len(live) == len({row.task_id for row in live})
        if not live:
            break
        if answer == "batch":
            town.expire(*(row.task_id for row in live))
            continue
        chosen = rng.choice(live)
        if answer == "reject" or (answer == "mixed" and rng.random() < 0.5):
            town.matching.reject(students[chosen.student_id], chosen.task_id)
        else:
            town.expire(chosen.task_id)
    assert town.all("SELECT 1 FROM offers WHERE state = 'PENDING'") == []
    for task_id, elder in tasks.items():
        assert sorted(town.asked_in_order(task_id)) == sorted(students), "not all three were asked"
        assert town.status(task_id) == "TIMED_OUT"
        view = town.matching.task(elder, task_id)
        assert (view.asked, view.remaining) == (3, 0)
        assert len(town.told(elder, "NOBODY_FOUND")) == 1
        assert town.keys(task_id).nothing
    spans = town.all(
        "SELECT student_id, offered_at, closed_at FROM offers WHERE offered_at IS NOT NULL"
        " ORDER BY student_id, offered_at"
    )
    for before, after in itertools.pairwise(spans):
        assert before.student_id != after.student_id or before.closed_at <= after.offered_at


def test_students_are_always_asked_while_tasks_wait(town: Neighbourhood) -> None:
    students: list[Caller] = town.students(10, 20, 30)
    for elder in town.elders(10):
        town.press(elder)
    for number in range(12):
        live = town.all("SELECT task_id, student_id FROM offers WHERE state = 'PENDING'")
        assert len(live) == 3, f"after {number} rejections"
        chosen = live[number % 3]
        town.matching.reject(next(s for s in students if s.id == chosen.student_id), chosen.task_id)
