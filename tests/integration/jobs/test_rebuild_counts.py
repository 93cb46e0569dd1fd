"""The job rebuild_counts finds and repairs kept values that drifted, also while people go on."""

import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.jobs.checks import count_drift
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.scripts import rebuild_counts
from app.jobs.scripts.rebuild_counts import RebuildCountsParams
from app.matching import service as matching
from app.users.models import Caller
from tests.support.matching import Neighbourhood, at_once, town_that_keeps_its_promises

THREADS = 8


@pytest.fixture
def town(services: Services) -> Iterator[Neighbourhood]:
    with town_that_keeps_its_promises(services) as built:
        yield built


@pytest.fixture
def context(services: Services) -> ExecutionContext:
    return ExecutionContext("t", "io-0", resources=lambda: JobResources(services.settings, services.db))


def rebuild(context: ExecutionContext, **params: Any) -> dict[str, Any]:
    return rebuild_counts.run(RebuildCountsParams(**params), context)


def complete(town: Neighbourhood, student: Caller) -> UUID:
    """All searches of these tests find one student, whom everybody else is too far from."""
    task_id = town.press(town.elder())
    for deed in (town.matching.accept, town.matching.start, town.matching.complete):
        deed(student, task_id)
    return task_id


def completed(town: Neighbourhood, student: Caller) -> int:
    return town.one("SELECT completed FROM students WHERE id = :id", id=student.id).completed


def student_of(town: Neighbourhood, student: Caller) -> tuple[int, UUID | None, bool]:
    row = town.one("SELECT completed, open_task_id, active FROM students WHERE id = :id", id=student.id)
    return row.completed, row.open_task_id, row.active


def test_nothing_drifts_while_only_the_service_writes(town: Neighbourhood, context: ExecutionContext) -> None:
    ali, banu = town.students(10, 20)
    complete(town, ali)
    town.expire(town.press())
    found = rebuild(context)
    assert found["ok"] and found["students"]["drifted"] == found["tasks"]["drifted"] == 0
    assert completed(town, banu) == 0


def test_drift_is_reported_and_changed_only_with_fix(town: Neighbourhood, context: ExecutionContext) -> None:
    ali, banu, ceren = town.students(10, 20, 30)
    done, over = complete(town, ali), town.press()
    town.run("UPDATE students SET completed = 7 WHERE id = :id", id=ali.id)
    town.run("UPDATE students SET open_task_id = :task, active = true WHERE id = :id", task=done, id=ceren.id)
    town.run("UPDATE tasks SET asked = 5, skipped = 1 WHERE id = :id", id=over)
    for fix in (False, True):
        found = rebuild(context, fix=fix)
        assert found["ok"] == fix
        assert found["students"]["examples"] == [
            {"student_id": ali.id, "completed": {"kept": 7, "right": 1}},
            {"student_id": ceren.id, "open_task_id": {"kept": str(done), "right": None}},
        ]
        assert found["tasks"]["examples"] == [
            {"task_id": str(over), "asked": {"kept": 5, "right": 1}, "skipped": {"kept": 1, "right": 0}}
        ]
    assert found["students"]["repaired"] == 2 and found["tasks"]["left"] == 0
    assert student_of(town, ali) == (1, None, True) and student_of(town, ceren) == (0, None, True)
    assert rebuild(context)["students"]["drifted"] == 0
    assert completed(town, banu) == 0


def test_a_lost_open_task_and_activity_are_restored(town: Neighbourhood, context: ExecutionContext) -> None:
    [ali] = town.students(10)
    task_id = town.press()
    town.matching.accept(ali, task_id)
    town.run("UPDATE students SET open_task_id = NULL, active = false WHERE id = :id", id=ali.id)
    assert rebuild(context, fix=True)["ok"]
    assert student_of(town, ali) == (0, task_id, True)


def test_examples_are_bounded_and_all_are_counted(town: Neighbourhood, context: ExecutionContext) -> None:
    town.students(*range(10, 310, 100))
    town.run("UPDATE students SET open_task_id = gen_random_uuid()")
    found = rebuild(context, fix=True, examples=1)["students"]
    assert (found["drifted"], found["repaired"], len(found["examples"])) == (3, 3, 1)


def test_a_student_who_is_freed_is_asked_for_the_task_that_waits(
    town: Neighbourhood, context: ExecutionContext
) -> None:
    near, far = town.students(10, 20)
    asking = town.press(town.elder())
    waiting = town.press(town.elder())
    town.run("UPDATE students SET open_task_id = :other WHERE id = :id", other=asking, id=far.id)
    third = town.press(town.elder())
    town.run("UPDATE offers SET state = 'WITHDRAWN', closed_at = clock_timestamp() WHERE student_id = :id", id=far.id)
    town.advance(waiting)
    assert town.task(third).waiting and town.asked(asking) == near.id
    assert rebuild(context, fix=True)["students"]["repaired"] == 1
    due = town.all("SELECT id FROM tasks WHERE next_step_at <= clock_timestamp()")
    assert len(due) == 1
    town.advance(due[0].id)
    assert town.asked(due[0].id) == far.id


# ---- months ----

MONTH_BEGINS = "date_trunc('month', clock_timestamp() AT TIME ZONE 'Europe/Istanbul') AT TIME ZONE 'Europe/Istanbul'"


@pytest.mark.parametrize(
    ("moment", "counts"),
    [
        (f"{MONTH_BEGINS} - interval '1 microsecond'", 0),
        (MONTH_BEGINS, 1),
        # Still the month before in UTC, which is three hours behind.
        (f"{MONTH_BEGINS} + interval '1 hour'", 1),
        ("date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '4 hours'", 0),
    ],
)
def test_a_task_counts_in_the_month_of_the_service_time_zone(
    town: Neighbourhood, context: ExecutionContext, moment: str, counts: int
) -> None:
    [ali] = town.students(10)
    task_id = complete(town, ali)
    town.run(f"UPDATE tasks SET ended_at = {moment} WHERE id = :id", id=task_id)
    rebuild(context, fix=True)
    assert completed(town, ali) == counts
    assert rebuild(context)["students"]["drifted"] == 0


def test_the_count_of_an_older_month_is_no_drift(town: Neighbourhood, context: ExecutionContext) -> None:
    town.student(10, completed=9, months_ago=1)
    assert rebuild(context)["students"]["drifted"] == 0


def test_a_count_that_lost_its_month_gets_it_again(town: Neighbourhood, context: ExecutionContext) -> None:
    [ali] = town.students(10)
    complete(town, ali)
    town.run("UPDATE students SET month = month - interval '1 month' WHERE id = :id", id=ali.id)
    assert rebuild(context, fix=True)["students"]["examples"] == [
        {"student_id": ali.id, "completed": {"kept": 0, "right": 1}}
    ]
    month = town.one(f"SELECT month = ({MONTH_BEGINS} AT TIME ZONE 'Europe/Istanbul')::date AS same FROM students")
    assert month.same and completed(town, ali) == 1


def test_the_month_is_that_in_which_the_task_ended(town: Neighbourhood, context: ExecutionContext) -> None:
    """A complete at midnight writes the task before it counts. The count is of the month that the task names."""
    [ali] = town.students(10)
    task_id = town.press()
    town.matching.accept(ali, task_id)
    town.matching.start(ali, task_id)
    with town.matching.stores.transaction() as store:
        store.lock_tasks([task_id])
        store.lock_students([ali.id])
        a_moment_ago = f"{MONTH_BEGINS} - interval '1 s'"
        store.conn.execute(
            text(f"UPDATE tasks SET status = 'COMPLETED', next_step_at = NULL, ended_at = {a_moment_ago}")
        )
        store.count_completed(ali.id, "Europe/Istanbul")
    assert town.one(f"SELECT month < {MONTH_BEGINS} AS before FROM students").before
    assert rebuild(context)["students"]["drifted"] == 0


# ---- races ----


def test_a_complete_between_the_count_and_the_repair_is_kept(town: Neighbourhood, services: Services) -> None:
    """The repair finds the row changed, leaves it alone, and the next count is right."""
    [ali] = town.students(10)
    complete(town, ali)
    town.run("UPDATE students SET completed = 5 WHERE id = :id", id=ali.id)
    stale = count_drift.find_students(services.db, "Europe/Istanbul")
    complete(town, ali)
    with services.db.transaction() as conn:
        assert matching.repair_students(conn, stale, "Europe/Istanbul") == set()
    assert completed(town, ali) == 6
    assert count_drift.repair_students(services.db, stale, services.settings) == {ali.id}
    assert completed(town, ali) == 2


def test_rows_that_somebody_has_locked_are_left_and_reported(
    town: Neighbourhood, context: ExecutionContext, services: Services
) -> None:
    [ali] = town.students(10)
    task_id = complete(town, ali)
    town.run("UPDATE students SET completed = 5")
    town.run("UPDATE tasks SET asked = 5")
    with town.matching.stores.transaction() as store:
        store.lock_task(task_id)
        store.lock_students([ali.id])
        found = rebuild(context, fix=True)
    assert not found["ok"] and found["students"]["left"] == found["tasks"]["left"] == 1
    assert rebuild(context, fix=True)["ok"]


def test_counts_stay_right_while_eight_students_complete_and_the_counts_are_rebuilt(
    town: Neighbourhood, context: ExecutionContext
) -> None:
    """The counts begin wrong, so that every rebuild writes. Each student is alone in a place of their own."""
    places = [town.spot_at(20_000.0 * number) for number in range(THREADS)]
    students = [town.student(10, at=place) for place in places]
    elders = [town.elder(f"Elder{number}", at=place) for number, place in enumerate(places)]
    town.run("UPDATE students SET completed = 40 + id")
    ended = threading.Event()
    results: list[dict[str, Any]] = []

    def live(number: int) -> None:
        for _ in range(6):
            task_id = town.press(elders[number])
            for deed in (town.matching.accept, town.matching.start, town.matching.complete):
                deed(students[number], task_id)

    def keep_rebuilding() -> None:
        while not ended.is_set():
            results.append(rebuild(context, fix=True))
            # Wrong again, in the middle of everything.
            town.run("UPDATE students SET completed = completed + 3 WHERE id % 2 = 0")

    rebuilding = threading.Thread(target=keep_rebuilding)
    rebuilding.start()
    try:
        at_once(*[lambda number=number: live(number) for number in range(THREADS)])
    finally:
        ended.set()
        rebuilding.join()
    assert rebuild(context, fix=True)["ok"]
    assert [completed(town, student) for student in students] == [6] * THREADS
    assert sum(result["students"]["repaired"] for result in results) >= THREADS


def test_counts_of_tasks_stay_right_while_searches_go_on(town: Neighbourhood, context: ExecutionContext) -> None:
    town.students(*range(10, 130, 10))
    tasks = [town.press(elder) for elder in town.elders(4)]

    def search(task_id: UUID) -> None:
        for _ in range(5):
            town.expire(task_id)

    def spoil_and_rebuild() -> None:
        for _ in range(5):
            town.run("UPDATE tasks SET asked = asked + 2 WHERE status <> 'PENDING'")
            rebuild(context, fix=True)

    at_once(spoil_and_rebuild, *[lambda task_id=task_id: search(task_id) for task_id in tasks])
    assert rebuild(context, fix=True)["ok"]


# ---- progress ----


def test_tasks_are_read_in_portions_and_a_cancelled_job_stops_between_them(
    town: Neighbourhood, services: Services
) -> None:
    town.students(10)
    tasks = [town.press(elder) for elder in town.elders(5)]
    town.run("UPDATE tasks SET skipped = skipped + 1")
    told: list[tuple[int, str]] = []
    context = ExecutionContext(
        "t",
        "io-0",
        report_progress=lambda done, _total, note: told.append((done, note)),
        resources=lambda: JobResources(services.settings, services.db),
    )
    assert rebuild(context, portion=2)["tasks"]["drifted"] == len(tasks)
    assert [note for _, note in told] == ["students", "tasks", "tasks", "tasks"]
    context.cancel.set()
    found = rebuild(context, fix=True, portion=2)
    assert not found["complete"] and not found["ok"] and found["tasks"]["repaired"] == 2
    context.cancel.clear()
    assert rebuild(context, fix=True)["ok"]


def test_the_result_names_no_person(town: Neighbourhood, context: ExecutionContext) -> None:
    town.student(10, "Ahmet Çelik")
    town.run("UPDATE students SET completed = 3, month = date_trunc('month', clock_timestamp())")
    assert "Ahmet" not in str(rebuild(context, fix=True))
