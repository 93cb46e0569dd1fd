"""Locked rows, tasks that cannot be settled, students who are freed together: no other task is delayed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from app.matching.due import DueTasks
from app.matching.follow_up import FollowUp
from app.matching.metrics import MatcherMetrics
from tests.support.matching import Neighbourhood


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


def test_two_students_freed_together_get_two_waiting_tasks(town: Neighbourhood) -> None:
    """A single query for the oldest waiting task would find the same task for both."""
    first, second, third, fourth = town.elders(4)
    ali, banu = town.students(10, 20)
    busy = [town.press(first), town.press(second)]
    waiting = [town.press(third), town.press(fourth)]
    assert [town.asked(task) for task in waiting] == [None, None]
    with town.db.transaction() as conn:
        for task in busy:
            conn.execute(
                text("UPDATE offers SET state = 'REJECTED', closed_at = now() WHERE task_id = :t"), {"t": task}
            )
            conn.execute(
                text("UPDATE tasks SET status = 'CANCELLED', next_step_at = NULL, ended_at = now() WHERE id = :t"),
                {"t": task},
            )
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
