"""Races of real threads on real connections. Each race has several rounds, because its outcome depends on timing."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.matching.contract import NewTask, TaskView
from app.matching.rules.errors import OfferExpired, TaskNotFound
from app.matching.rules.states import TaskStatus
from app.matching.store.records import Pick
from app.users.models import Caller
from tests.support.depth import size
from tests.support.matching import Neighbourhood, at_once, broken_promises, eventually
from tests.support.press_alone import press_alone


def assert_promises(town: Neighbourhood) -> None:
    with town.db.transaction() as conn:
        assert broken_promises(conn) == {}


def end_all(town: Neighbourhood) -> None:
    """Ends all tasks between two rounds, in SQL: to cancel them one by one would take longer than most races, because
    each cancelled task frees a student for the next one."""
    town.run(
        """
        WITH ended AS (
            UPDATE tasks SET status = 'CANCELLED', ended_at = clock_timestamp(), next_step_at = NULL, waiting = false
            WHERE status IN ('PENDING', 'ASSIGNED', 'STARTED')
        ), closed AS (
            UPDATE offers SET state = 'WITHDRAWN', closed_at = clock_timestamp() WHERE state = 'PENDING'
        ), released AS (
            UPDATE offers SET state = 'RELEASED' WHERE state = 'ACCEPTED'
        )
        UPDATE students SET open_task_id = NULL WHERE open_task_id IS NOT NULL"""
    )


def refused(outcomes: list[Any]) -> list[str]:
    return sorted(type(outcome).__name__ for outcome in outcomes if isinstance(outcome, Exception))


def test_only_the_asked_student_can_accept_when_many_try_at_once(town: Neighbourhood) -> None:
    attempts = size(suite=12, deep=50)
    ali, *others = town.students(*range(10, 10 + 10 * attempts, 10))
    elder = town.elder()
    task_id = town.press(elder)
    calls = [lambda: town.matching.accept(ali, task_id)] * attempts
    calls += [lambda other=other: town.matching.accept(other, task_id) for other in others]
    random.Random(1).shuffle(calls)
    outcomes = at_once(*calls)
    views = [outcome for outcome in outcomes if isinstance(outcome, TaskView)]
    assert len(views) == attempts
    assert {view.status for view in views} == {"ASSIGNED"}
    assert refused(outcomes) == ["TaskNotFound"] * (attempts - 1)
    assert town.states(task_id) == [(ali.id, "ACCEPTED", None)]
    assert len(town.told(elder)) == 1
    assert town.keys(task_id).asked is None


def test_accept_at_the_moment_of_expiry_has_one_outcome(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10, "Ahmet Çelik")
    rounds = size(suite=15, deep=60)
    for number in range(rounds):
        task_id = town.press(elder)
        row = town.one(
            """
            WITH soon AS MATERIALIZED (SELECT clock_timestamp() + make_interval(secs => :ahead) AS moment),
                 live AS (UPDATE offers SET deadline = moment FROM soon WHERE task_id = :id RETURNING deadline)
            UPDATE tasks SET next_step_at = moment FROM soon WHERE id = :id RETURNING next_step_at""",
            id=task_id,
            ahead=0.002 + 0.006 * number / rounds,
        )

        def advance_when_due(deadline=row.next_step_at, task_id=task_id) -> None:
            while town.status(task_id) == "PENDING" and town.db.now() < deadline:
                pass
            town.advance(task_id)

        accepted, *_ = at_once(lambda: town.matching.accept(ali, task_id), advance_when_due, advance_when_due)  # noqa: B023
        town.advance(task_id)
        [(_, state, _)] = town.states(task_id)
        if isinstance(accepted, TaskView):
            assert (accepted.status, state, town.status(task_id)) == ("ASSIGNED", "ACCEPTED", "ASSIGNED")
            assert [row.kind for row in town.told(elder, task_id=task_id)] == ["ON_THE_WAY"]
            town.matching.cancel(elder, task_id)
        else:
            assert isinstance(accepted, OfferExpired)
            assert (state, town.status(task_id)) == ("EXPIRED", "TIMED_OUT")
            assert [row.kind for row in town.told(elder, task_id=task_id)] == ["NOBODY_FOUND"]
    assert_promises(town)


def test_both_outcomes_of_accept_beside_expiry_occur(town: Neighbourhood) -> None:
    """The test locks the task until both calls wait for it, once before and once after the deadline."""
    elder, ali = town.elder(), town.student(10)
    for overdue in (False, True):
        task_id = town.press(elder)
        with town.db.transaction() as conn:
            conn.execute(text("SELECT 1 FROM tasks WHERE id = :id FOR NO KEY UPDATE"), {"id": task_id})
            outcomes: list[Any] = []
            racers = threading.Thread(
                target=lambda task_id=task_id, outcomes=outcomes: outcomes.extend(
                    at_once(lambda: town.matching.accept(ali, task_id), lambda: town.advance(task_id))
                )
            )
            racers.start()
            eventually(lambda: waiting_for_locks(town) == 2, "both calls wait for the task")
            if overdue:
                conn.execute(
                    text("UPDATE offers SET deadline = clock_timestamp() WHERE task_id = :id"), {"id": task_id}
                )
        racers.join(timeout=10)
        assert refused(outcomes) == (["OfferExpired"] if overdue else [])
        town.advance(task_id)
        assert town.status(task_id) == ("TIMED_OUT" if overdue else "ASSIGNED")
        end_all(town)


def waiting_for_locks(town: Neighbourhood) -> int:
    return town.one(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ).count


def test_student_who_is_first_for_many_tasks_gets_one_live_offer(town: Neighbourhood) -> None:
    ali = town.student(10)
    elders = town.elders(size(suite=8, deep=20))
    for _ in range(size(suite=3, deep=5)):
        tasks = at_once(*(lambda elder=elder: town.press(elder) for elder in elders))
        assert len(set(tasks)) == len(elders)
        assert [row.student_id for row in town.all("SELECT student_id FROM offers WHERE state = 'PENDING'")] == [ali.id]
        assert len(town.told(ali, "OFFER")) == town.one("SELECT count(*) FROM offers WHERE state <> 'SKIPPED'").count
        waiting = town.all("SELECT waiting, next_step_at FROM tasks WHERE status = 'PENDING'")
        assert sum(row.waiting for row in waiting) == len(elders) - 1
        assert len({row.next_step_at for row in waiting}) == 1
        assert_promises(town)
        end_all(town)


def test_many_tasks_pressed_at_once_share_five_students(town: Neighbourhood) -> None:
    students = town.students(10, 20, 30, 40, 50)
    elders = town.elders(size(suite=9, deep=20))
    for _ in range(size(suite=3, deep=5)):
        at_once(*(lambda elder=elder: town.press(elder) for elder in elders))
        live = town.all("SELECT student_id FROM offers WHERE state = 'PENDING'")
        assert sorted(row.student_id for row in live) == [student.id for student in students]
        assert_promises(town)
        end_all(town)


def test_elder_who_presses_ten_times_at_once_makes_one_task(town: Neighbourhood) -> None:
    town.student(10)
    for number in range(size(suite=4, deep=10)):
        elder = town.elder(f"Elder{number}")
        key = f"key-{number}" if number % 2 else None
        outcomes = at_once(*([lambda e=elder, k=key: town.matching.press(e, NewTask(e.id, "Ekmek"), k)] * 10))
        assert sum(pressed.created for pressed in outcomes) == 1
        assert len({pressed.task.id for pressed in outcomes}) == 1
        assert town.one("SELECT count(*) FROM tasks WHERE elder_id = :id", id=elder.id).count == 1
    assert_promises(town)


def test_student_who_goes_off_duty_beside_an_offer_keeps_no_live_offer(town: Neighbourhood) -> None:
    """The student goes off duty later in each round, because a press takes longer until its offer is committed."""
    elder, ali = town.elder(), town.student(10)
    rounds = size(suite=15, deep=30)
    for number in range(rounds):
        town.matching.set_availability(ali, True)

        def go_off_duty(delay_s: float = 0.03 * number / rounds) -> None:
            time.sleep(delay_s)
            town.matching.set_availability(ali, False)

        task_id, _ = at_once(lambda: town.press(elder), go_off_duty)
        town.advance(task_id)
        assert town.asked(task_id) is None
        assert town.status(task_id) == "TIMED_OUT"
        assert town.matching.current_offer(ali) is None
    assert_promises(town)


def test_students_come_and_go_while_offers_expire(town: Neighbourhood) -> None:
    """Students go off duty, move away and are deactivated while a matcher expires offers."""
    students = town.students(10, 20, 30, 40)
    elders = town.elders(6)
    for number in range(size(suite=3, deep=8)):
        tasks = [town.press(elder) for elder in elders]
        at_once(
            *(lambda s=s: town.matching.set_availability(s, False) for s in students[:2]),
            *(lambda s=s: town.matching.set_location(s.id, town.spot_at(5000)) for s in students[2:3]),
            *(lambda t=t: town.expire(t) for t in tasks[:3]),
            lambda: town.matching.set_active(students[3].id, False),
        )
        assert_promises(town)
        for s in students:
            town.matching.set_availability(s, True)
            town.matching.set_location(s.id, town.spot_at(10 + number))
            town.matching.set_active(s.id, True)
        assert_promises(town)
        end_all(town)


def race(town: Neighbourhood, rounds: int, calls: Callable[[], list[Callable[[], Any]]]) -> Iterator[list[Any]]:
    """Yields the outcomes of each round before the tasks are ended. `calls` prepares a round and returns its calls."""
    for _ in range(rounds):
        yield at_once(*calls())
        assert_promises(town)
        end_all(town)


def test_reject_beside_cancel(town: Neighbourhood) -> None:
    elder, (ali, _) = town.elder(), town.students(10, 20)

    def calls() -> list[Callable[[], Any]]:
        task_id = town.press(elder)
        return [lambda: town.matching.reject(ali, task_id), lambda: town.matching.cancel(elder, task_id)]

    for rejected, cancelled in race(town, size(suite=6, deep=15), calls):
        assert cancelled.status == "CANCELLED"
        assert isinstance(rejected, TaskView) or rejected.code == "offer_withdrawn"
        assert town.keys(cancelled.id).nothing


def test_accept_beside_cancel(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)

    def calls() -> list[Callable[[], Any]]:
        task_id = town.press(elder)
        return [lambda: town.matching.accept(ali, task_id), lambda: town.matching.cancel(elder, task_id)]

    for accepted, cancelled in race(town, size(suite=8, deep=20), calls):
        assert cancelled.status == "CANCELLED"
        if isinstance(accepted, TaskView):
            assert town.told(ali, "CANCELLED", cancelled.id) != []
        else:
            assert accepted.code == "offer_withdrawn"
        assert town.keys(cancelled.id).nothing
        assert town.matching.open_task(ali) is None


def test_withdraw_beside_assign(town: Neighbourhood) -> None:
    elder, coordinator = town.elder(), town.coordinator()
    ali, banu, _ = town.students(10, 20, 30)

    def calls() -> list[Callable[[], Any]]:
        task_id = town.press(elder)
        asked = ali if town.asked(task_id) == ali.id else banu
        other = banu if asked is ali else ali
        town.matching.accept(asked, task_id)
        return [
            lambda: town.matching.withdraw(asked, task_id),
            lambda: town.matching.assign(coordinator, task_id, other.id),
        ]

    for withdrawn, assigned in race(town, size(suite=6, deep=15), calls):
        assert isinstance(withdrawn, TaskView)
        assert isinstance(assigned, TaskView) or assigned.code == "illegal_step"


def test_two_coordinators_assign_at_once(town: Neighbourhood) -> None:
    elder, coordinator = town.elder(), town.coordinator()
    students = town.students(10, 20, 30, 40)

    def calls() -> list[Callable[[], Any]]:
        task_id = town.press(elder)
        return [lambda s=s: town.matching.assign(coordinator, task_id, s.id) for s in students]

    for outcomes in race(town, size(suite=6, deep=15), calls):
        assert refused(outcomes) == ["IllegalTaskTransition"] * 3


def test_two_coordinators_want_the_same_student(town: Neighbourhood) -> None:
    coordinator = town.coordinator()
    elders = town.elders(4)
    ali, *_ = town.students(10, 20, 30, 40)

    def calls() -> list[Callable[[], Any]]:
        tasks = [town.press(elder) for elder in elders]
        return [lambda t=t: town.matching.assign(coordinator, t, ali.id) for t in tasks]

    for outcomes in race(town, size(suite=6, deep=15), calls):
        assert refused(outcomes) == ["StudentUnavailable"] * 3


def test_assign_takes_back_the_offers_of_two_tasks_without_a_deadlock(town: Neighbourhood) -> None:
    """A recorder wakes the actions of both offers, the older one first."""
    ali = town.student(10)
    older = town.press(town.elder("Ayşe", town.spot_at(5)))
    beren = town.student(20)
    newer = town.press(town.elder("Hatice", town.spot_at(15)))
    assert (town.asked(older), town.asked(newer)) == (ali.id, beren.id)
    hold = text("SELECT FROM actions WHERE task_id = :id AND data ->> 'type' = 'OFFER' FOR NO KEY UPDATE")
    coordinator = town.coordinator()
    assigning = threading.Thread(target=lambda: town.matching.assign(coordinator, newer, ali.id))
    with town.db.transaction() as recorder:
        recorder.execute(hold, {"id": older})
        assigning.start()
        eventually(lambda: waiting_for_locks(town) == 1, "the assignment waits for the recorder")
        recorder.execute(hold, {"id": newer})
    assigning.join()
    assert town.status(newer) == "ASSIGNED"
    assert town.states(newer) == [(beren.id, "WITHDRAWN", "ASSIGNED_BY_HAND"), (ali.id, "ACCEPTED", "ASSIGNED_BY_HAND")]


def test_assign_takes_back_an_offer_made_while_it_waited(town: Neighbourhood) -> None:
    town.student(20)
    task_id, ali = town.press(), town.student(10)
    coordinator = town.coordinator()
    assigning = threading.Thread(target=lambda: town.matching.assign(coordinator, task_id, ali.id))
    with town.db.transaction() as other:
        other.execute(text("SELECT FROM tasks WHERE id = :id FOR NO KEY UPDATE"), {"id": task_id})
        assigning.start()
        eventually(lambda: waiting_for_locks(town) == 1, "the assignment waits for its task")
        elsewhere = town.press(town.elder("Hatice"))
        assert town.asked(elsewhere) == ali.id
    assigning.join()
    assert town.status(task_id) == "ASSIGNED"
    assert town.states(elsewhere)[0] == (ali.id, "WITHDRAWN", "ASSIGNED_BY_HAND")
    assert_promises(town)


def test_assign_beside_accept_of_another_task(town: Neighbourhood) -> None:
    coordinator = town.coordinator()
    one, two = town.elders(2)
    ali = town.student(10)

    def calls() -> list[Callable[[], Any]]:
        first, second = town.press(one), town.press(two)
        return [
            lambda: town.matching.accept(ali, first),
            lambda: town.matching.assign(coordinator, second, ali.id),
        ]

    for outcomes in race(town, size(suite=6, deep=15), calls):
        assert len(refused(outcomes)) == 1


def test_deactivation_beside_accept(town: Neighbourhood) -> None:
    elder, ali, banu = town.elder(), town.student(10), town.student(500)

    def calls() -> list[Callable[[], Any]]:
        town.matching.set_active(ali.id, True)
        task_id = town.press(elder)
        return [
            lambda: town.matching.accept(ali, task_id),
            lambda: town.matching.set_active(ali.id, False),
            lambda: task_id,
        ]

    for accepted, _, task_id in race(town, size(suite=8, deep=20), calls):
        assert isinstance(accepted, TaskView) or accepted.code == "offer_withdrawn"
        assert town.asked(task_id) == banu.id, "the search did not go on"
        assert town.matching.open_task(ali) is None


def test_elder_who_is_deactivated_while_pressing_has_no_open_task(town: Neighbourhood) -> None:
    town.student(10)
    for number in range(size(suite=8, deep=20)):
        elder = town.elder(f"Elder{number}")
        at_once(lambda e=elder: town.press(e), lambda e=elder: town.matching.set_active(e.id, False))
        left = town.all("SELECT id FROM tasks WHERE elder_id = :id AND status = 'PENDING'", id=elder.id)
        assert left == [], "the task of a deactivated elder is still searching"


def test_random_deeds_of_all_kinds_at_once(town: Neighbourhood) -> None:
    """No combination of deeds deadlocks, hangs or breaks a promise."""
    rng, matching = random.Random(3), town.matching
    coordinator = town.coordinator()
    students = town.students(*range(10, 90, 10))
    elders = town.elders(8)
    for _ in range(size(suite=4, deep=60)):
        tasks = [town.press(elder) for elder in elders]
        calls: list[Callable[[], Any]] = []
        for _ in range(size(suite=16, deep=24)):
            t, s, elder = rng.choice(tasks), rng.choice(students), rng.choice(elders)
            calls.append(
                rng.choice(
                    [
                        lambda t=t, s=s: matching.accept(s, t),
                        lambda t=t, s=s: matching.reject(s, t),
                        lambda t=t: town.expire(t),
                        lambda t=t, s=s: matching.assign(coordinator, t, s.id),
                        lambda t=t: matching.move_on(coordinator, t),
                        lambda t=t: matching.release(coordinator, t),
                        lambda t=t: matching.cancel(coordinator, t),
                        lambda s=s: matching.set_availability(s, rng.random() < 0.5),
                        lambda s=s: matching.set_location(s.id, town.spot_at(rng.choice([10, 800, 3000]))),
                        lambda s=s: matching.set_active(s.id, True),
                        lambda s=s: matching.set_active(s.id, False),
                        lambda e=elder: town.press(e),
                        lambda: town.advance(*tasks),  # noqa: B023
                    ]
                )
            )
        at_once(*calls)
        assert_promises(town)
        end_all(town)
        for student in students:
            town.matching.set_active(student.id, True)
            town.matching.set_availability(student, True)
            town.matching.set_location(student.id, town.spot_at(50))


def test_batches_in_different_order_do_not_deadlock(town: Neighbourhood) -> None:
    """Four overlapping batches of tasks on two sides of a street: the student who is nearest to one side is farthest
    from the other."""
    west, east = town.spot_at(300, 270), town.spot_at(300, 90)
    for number in range(12):
        town.student(number * 50, bearing=90, at=west)
    elders = town.elders(10, west) + [town.elder(f"Doğu{number}", east) for number in range(10)]
    for number in range(size(suite=2, deep=8)):
        tasks = [town.press(elder) for elder in elders]
        shuffled = random.Random(number).sample(tasks, len(tasks))
        town.make_overdue(*tasks)
        at_once(
            lambda: town.advance(*tasks),  # noqa: B023
            lambda: town.advance(*reversed(tasks)),  # noqa: B023
            lambda: town.advance(*shuffled[:12]),  # noqa: B023
            lambda: town.matching.runner.advance(shuffled[5:], skip_locked=True),  # noqa: B023
        )
        town.advance(*tasks)
        assert_promises(town)
        live = town.one("SELECT count(*) FROM offers WHERE state = 'PENDING'").count
        assert live > 0
        end_all(town)


def test_batches_that_rank_the_same_students_in_opposite_order_do_not_deadlock(town: Neighbourhood) -> None:
    """The test locks a student in the middle of the list until both batches wait, each with some students locked."""
    west, east = town.spot_at(300, 270), town.spot_at(300, 90)
    students = [town.student(number * 50, bearing=90, at=west) for number in range(12)]
    sides = [town.elders(10, spot) for spot in (west, east)]
    for _ in range(6):
        batches = [[press_without_asking(town, elder) for elder in elders] for elders in sides]
        calls = [lambda batch=batch: town.advance(*batch) for batch in batches]
        both = threading.Thread(target=at_once, args=calls)
        with town.db.transaction() as conn:
            conn.execute(text("SELECT FROM students WHERE id = :id FOR NO KEY UPDATE"), {"id": students[6].id})
            both.start()
            eventually(lambda: waiting_for_locks(town) == 2, "both batches wait")
        both.join(timeout=10)
        assert_promises(town)
        town.advance(*batches[0], *batches[1])
        assert town.one("SELECT count(*) FROM offers WHERE state = 'PENDING'").count == 12, (
            "not every student was asked"
        )
        end_all(town)


def test_accept_does_not_deadlock_with_another_offer_to_the_student(town: Neighbourhood) -> None:
    """Another task has locked the student and is about to make an offer while the student accepts the first one."""
    student = town.student(10)
    first, other = town.press(town.elder()), press_without_asking(town, town.elder())
    with ThreadPoolExecutor(1) as pool:
        with town.matching.stores.transaction() as store:
            store.lock_tasks([other])
            store.lock_students([student.id])
            accepted = pool.submit(town.matching.accept, student, first)
            eventually(lambda: waiting_for_locks(town) == 1, "the accept waits for the student")
            assert store.insert_offers([Pick(other, student.id, 1, 0, 1.0)], town.matching.rules.offer_ttl) == {}
        assert accepted.result(10).status is TaskStatus.ASSIGNED
    assert_promises(town)


def press_without_asking(town: Neighbourhood, elder: Caller) -> UUID:
    with town.matching.stores.transaction() as store:
        return press_alone(store, elder, town.matching.rules)[0]


def test_parallel_matchers_ask_no_student_twice_for_a_task(town: Neighbourhood) -> None:
    many = size(suite=6, deep=10)
    students = town.students(*range(10, 10 + 10 * many, 10))
    tasks = [town.press(elder) for elder in town.elders(many)]
    for _ in range(len(students)):
        town.make_overdue(*tasks)
        at_once(*([lambda: town.advance(*tasks)] * 4))
    for task_id in tasks:
        asked = town.asked_in_order(task_id)
        assert len(asked) == len(set(asked))


def test_student_who_was_never_asked_learns_nothing_of_the_task(town: Neighbourhood) -> None:
    town.student(10)
    stranger = town.student(5000)
    task_id = town.press()
    outcomes = at_once(*([lambda: town.matching.accept(stranger, task_id)] * 10))
    assert all(isinstance(outcome, TaskNotFound) for outcome in outcomes)
