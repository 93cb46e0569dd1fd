"""Locked rows, tasks that cannot be settled, students who are freed together: no other task is delayed."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from app.foundation.ids import uuid7
from app.matching.due import DueTasks
from app.matching.follow_up import FollowUp
from app.matching.metrics import MatcherMetrics
from app.matching.store.records import Pick
from app.matching.store.stores import Store
from tests.support.matching import Neighbourhood, eventually


@contextmanager
def locked(town: Neighbourhood, student_id: int) -> Iterator[None]:
    """Locks the row of this student in another transaction."""
    with town.db.engine.begin() as conn:
        conn.execute(text("SELECT id FROM students WHERE id = :id FOR UPDATE"), {"id": student_id})
        yield


@pytest.fixture
def due(town: Neighbourhood) -> Iterator[DueTasks]:
    tasks = DueTasks(town.matching.runner, MatcherMetrics(), batch=100)
    thread = threading.Thread(target=tasks.run)
    thread.start()
    yield tasks
    tasks.stop()
    thread.join()


def test_locked_student_does_not_delay_other_tasks(town: Neighbourhood) -> None:
    elders = town.elders(3)
    town.students(10, 20, 30)
    later = town.student(400)
    tasks = [town.press(elder) for elder in elders]
    free = [town.student(500 + number) for number in range(2)]
    with locked(town, later.id):
        town.make_overdue(*tasks)
        settled = town.matching.runner.advance(tasks, skip_locked=True)
        assert settled.figures.offered >= 2, "a task whose candidate is not locked made no offer"
        assert len(settled.figures.late_s) == 3, "an overdue offer is still live"
    town.advance(*tasks)
    asked = {town.asked(task) for task in tasks}
    assert None not in asked and len(asked) == 3
    assert {later.id, *(student.id for student in free)} & asked


def test_task_whose_student_is_locked_is_due_again_soon(town: Neighbourhood) -> None:
    town.student(10)
    task_id, later = town.press(), town.student(20)
    town.make_overdue(task_id)
    with locked(town, later.id):
        town.matching.runner.advance([task_id], skip_locked=True)
    soon = "SELECT next_step_at < clock_timestamp() + interval '5 seconds' AS soon FROM tasks WHERE id = :id"
    assert (town.asked(task_id), town.one(soon, id=task_id).soon) == (None, True)


def test_locked_task_does_not_delay_other_tasks(town: Neighbourhood) -> None:
    town.students(10, 20)
    held, free = [town.press(elder) for elder in town.elders(2)]
    later = town.student(400)
    town.make_overdue(held, free)
    with town.db.engine.begin() as conn:
        conn.execute(text("SELECT FROM tasks WHERE id = :id FOR UPDATE"), {"id": held})
        town.matching.runner.advance([held, free], skip_locked=True)
        assert town.asked(free) == later.id
        expired = town.all("SELECT task_id FROM offers WHERE state = 'EXPIRED'")
        assert [row.task_id for row in expired] == [free], "the offer of a task that another transaction has locked"


def test_task_whose_offer_expired_without_the_rest_goes_on_when_it_is_settled_again(town: Neighbourhood) -> None:
    """Another transaction gave its lock back between the statements that lock the tasks and that expire offers."""
    town.students(10, 20)
    task_id = town.press()
    town.make_overdue(task_id)
    with town.matching.stores.transaction() as store:
        expired, _ = store.expire_offers([task_id])()
        assert len(expired) == 1
    town.matching.runner.advance([task_id], skip_locked=True)
    assert len(town.asked_in_order(task_id)) == 2


def test_task_that_cannot_be_settled_does_not_stop_the_others(town: Neighbourhood, due: DueTasks) -> None:
    """A trigger raises an error here, as a violated constraint would."""
    elders = town.elders(6)
    town.students(*range(10, 130, 10))
    tasks = [town.press(elder) for elder in elders]
    town.run(f"""
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.task_id = '{tasks[2]}' AND NEW.state = 'EXPIRED' THEN RAISE EXCEPTION 'no'; END IF;
        RETURN NEW;
    END $$""")
    town.run("CREATE TRIGGER refuse BEFORE UPDATE ON offers FOR EACH ROW EXECUTE FUNCTION refuse()")
    try:
        town.make_overdue(*tasks)
        due.add(tasks)
        done = threading.Event()
        for _ in range(500):
            if town.one("SELECT count(*) AS n FROM offers WHERE state = 'EXPIRED'").n == 5:
                done.set()
                break
            done.wait(0.02)
        assert done.is_set(), "the other five tasks did not go on"
    finally:
        town.run("DROP TRIGGER refuse ON offers")
        town.run("DROP FUNCTION refuse")
    town.advance(*tasks)


def end_without_follow_up(town: Neighbourhood, *tasks: UUID) -> None:
    """Cancels the tasks and closes their offers, as a transaction whose follow-up has not run yet."""
    for task_id in tasks:
        town.run("UPDATE offers SET state = 'REJECTED', closed_at = now() WHERE task_id = :id", id=task_id)
        town.run(
            "UPDATE tasks SET status = 'CANCELLED', next_step_at = NULL, ended_at = now() WHERE id = :id", id=task_id
        )


def test_task_that_began_to_wait_finds_a_student_freed_meanwhile(town: Neighbourhood) -> None:
    """The follow-up of the freed student did not see the task waiting."""
    first, second = town.elders(2)
    ali = town.student(10)
    busy, waiting = town.press(first), town.press(second)
    assert town.asked(waiting) is None
    end_without_follow_up(town, busy)
    town.matching.runner.follow_up(FollowUp(began_to_wait=frozenset({waiting})))
    assert town.asked(waiting) == ali.id


def test_two_students_freed_together_get_two_waiting_tasks(town: Neighbourhood) -> None:
    """A single query for the oldest waiting task would find the same task for both."""
    first, second, third, fourth = town.elders(4)
    ali, banu = town.students(10, 20)
    busy = [town.press(first), town.press(second)]
    waiting = [town.press(third), town.press(fourth)]
    assert [town.asked(task) for task in waiting] == [None, None]
    end_without_follow_up(town, *busy)
    town.matching.runner.follow_up(FollowUp(freed=frozenset({ali.id, banu.id})))
    assert {town.asked(task) for task in waiting} == {ali.id, banu.id}


def test_press_succeeds_while_the_first_student_is_locked(town: Neighbourhood) -> None:
    ali = town.student(10)
    elder = town.elder()
    with locked(town, ali.id):
        task_id = town.press(elder)
        assert town.status(task_id) == "PENDING"
    town.advance(task_id)
    assert town.asked(task_id) == ali.id


def ask(store: Store, ids: Sequence[int]) -> object:
    """Without the versions of the students, so that they are only locked."""
    return store.ask([Pick(uuid7(), student_id, 1, 0, 0.0) for student_id in reversed(ids)], timedelta(minutes=1))


@pytest.mark.parametrize(
    ("table", "act"), [("tasks", Store.lock_tasks), ("students", Store.lock_students), ("students", ask)]
)
def test_rows_are_locked_in_the_order_of_their_ids(
    town: Neighbourhood, table: str, act: Callable[[Store, list[Any]], object]
) -> None:
    """Otherwise two transactions that lock the same rows could deadlock."""
    ids: list[Any] = [student.id for student in town.students(10, 20)]
    if table == "tasks":
        ids = sorted(town.press(elder) for elder in town.elders(2))
    first, second = ids
    # Moves the first row behind the second one, so that a scan of the table finds it last.
    town.run(f"UPDATE {table} SET id = id WHERE id = :id", id=first)

    def lock() -> None:
        with town.matching.stores.transaction() as store:
            for statement in ("SET LOCAL enable_indexscan = off", "SET LOCAL enable_bitmapscan = off", "DISCARD PLANS"):
                store.conn.execute(text(statement))
            act(store, ids)

    locking = threading.Thread(target=lock)
    with town.db.engine.begin() as conn:
        conn.execute(text(f"SELECT FROM {table} WHERE id = :id FOR NO KEY UPDATE"), {"id": first})
        locking.start()
        waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        eventually(lambda: town.all(waits), "the call waits for the first row", within_s=3)
        town.run(f"SELECT FROM {table} WHERE id = :id FOR NO KEY UPDATE NOWAIT", id=second)
    locking.join()
