"""The job check_promises on a live copy. `test_checker.py` plants a violation for every question. Here is what the job
reads, what it leaves alone, and that a healthy world in full swing has no violation."""

import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.api.services import Services
from app.bootstrap.build_services import build_services
from app.jobs.checks.ask import QUESTIONS, noticed_since, one_snapshot
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.scripts import check_promises
from app.jobs.scripts.check_promises import CheckPromisesParams
from app.matching.models import offers
from app.settings.settings import Settings
from tests.support.matching import Gate, Neighbourhood, at_once

ONE_LIVE_PER_TASK = next(index for index in offers.indexes if index.name == "offers_one_live_per_task")
QUICK: dict[str, Any] = {"settle_s": 0, "patience_s": 0}


@pytest.fixture
def town(services: Services) -> Iterator[Neighbourhood]:
    built = Neighbourhood(services)
    built.redis.set("clockwork_complete", "1")
    yield built
    built.close()


def context_on(services: Services, **fields: Any) -> ExecutionContext:
    resources = JobResources(services.settings, services.db, services.clockwork)
    return ExecutionContext("t", "io-0", resources=lambda: resources, **fields)


@pytest.fixture
def context(services: Services) -> ExecutionContext:
    return context_on(services)


def check(context: ExecutionContext, **params: Any) -> dict[str, Any]:
    return check_promises.run(CheckPromisesParams(**{**QUICK, **params}), context)


def broken(result: dict[str, Any]) -> dict[str, list[Any]]:
    return {one["name"]: one["examples"] for one in result["questions"] if one["violations"]}


def report(context: ExecutionContext) -> str:
    return context.artifacts["promises.txt"].read_text(encoding="utf-8")


def test_every_question_says_what_a_violation_means_and_what_to_do() -> None:
    names = [question.name for question in QUESTIONS]
    assert len(set(names)) == len(names) > 30
    assert all(question.means.endswith(".") and question.advice.endswith(".") for question in QUESTIONS)


def test_a_world_without_violations_is_ok(town: Neighbourhood, context: ExecutionContext) -> None:
    ali, _ = town.students(10, 20)
    done = town.press(town.elder())
    for deed in (town.matching.accept, town.matching.start, town.matching.complete):
        deed(ali, done)
    town.expire(town.press(town.elder()))
    result = check(context, since="all")
    assert (result["ok"], result["violations"], result["complete"]) == (True, 0, True)
    assert f"{len(result['questions'])} questions: {len(result['questions'])} without a violation" in report(context)


def test_two_live_offers_are_reported_by_ids_and_without_names(town: Neighbourhood, context: ExecutionContext) -> None:
    first, second = town.student(10, "Ahmet Çelik"), town.student(20, "Ceren Güneş")
    task_id = town.press(town.elder("Ayşe Yılmaz"))
    with town.db.transaction() as conn:
        ONE_LIVE_PER_TASK.drop(conn)
    town.run(
        "INSERT INTO offers (task_id, student_id, state, offered_at, deadline)"
        " SELECT task_id, :other, state, offered_at, deadline FROM offers WHERE student_id = :first",
        first=first.id,
        other=second.id,
    )
    try:
        result = check(context)
    finally:
        town.run("DELETE FROM offers WHERE student_id = :id", id=second.id)
        with town.db.transaction() as conn:
            ONE_LIVE_PER_TASK.create(conn)
    assert not result["ok"]
    assert broken(result)["two live offers for one task"] == [{"task_id": str(task_id)}]
    assert "VIOLATED: two live offers for one task: 1" in report(context)
    assert f"task {task_id}" in report(context)
    assert not any(name in f"{result} {report(context)}" for name in ("Ahmet", "Ceren", "Ayşe", "+90555"))


def test_examples_are_bounded_and_all_violations_are_counted(town: Neighbourhood, context: ExecutionContext) -> None:
    for elder in town.elders(3):
        town.press(elder)
    town.run("UPDATE tasks SET skipped = 9")
    name = "counts of asked and skipped that differ from the offers"
    [found] = [one for one in check(context, examples=2)["questions"] if one["name"] == name]
    assert (found["violations"], len(found["examples"])) == (3, 2)
    assert "  and 1 more" in report(context)


def test_older_tasks_are_looked_at_only_when_asked_for(town: Neighbourhood, context: ExecutionContext) -> None:
    town.press()
    # An id of January 2020.
    old = UUID("016f5e66-e800-7000-8000-000000000000")
    with town.db.transaction() as conn:
        conn.execute(text("SET LOCAL session_replication_role = replica"))
        conn.execute(text("DELETE FROM actions"))
        conn.execute(text("UPDATE tasks SET id = :old, skipped = 9"), {"old": old})
    name = "counts of asked and skipped that differ from the offers"
    assert name not in broken(check(context))
    assert name not in broken(check(context, since="2020-02-01"))
    assert name in broken(check(context, since="2020-01-01T00:00:00"))
    assert name in broken(check(context, since="0001-01-01"))
    assert name in broken(check(context, since="all"))
    assert "the whole history" in report(context)


@pytest.mark.parametrize("since", ["yesterday", "", "all of it"])
def test_a_period_that_is_no_time_is_refused(since: str) -> None:
    with pytest.raises(ValueError, match="since"):
        CheckPromisesParams.model_validate({"since": since})


def test_what_retention_has_forgotten_is_no_violation(town: Neighbourhood, context: ExecutionContext) -> None:
    town.students(10, 20)
    forgotten, kept = town.press(town.elder()), town.press(town.elder())
    town.run(
        "UPDATE tasks SET created_at = created_at - interval '1 year', updated_at = updated_at - interval '1 year'"
        " WHERE id = :id",
        id=forgotten,
    )
    town.run("DELETE FROM dead_letters")
    town.run("DELETE FROM notifications WHERE task_id = :id", id=forgotten)
    town.run("DELETE FROM actions WHERE task_id = :id", id=forgotten)
    name = "an offer of which its student was not told"
    assert name not in broken(check(context, since="all"))
    assert noticed_since(town.db, UUID(int=0)) > forgotten
    town.run("DELETE FROM notifications WHERE task_id = :id", id=kept)
    town.run("DELETE FROM actions WHERE task_id = :id", id=kept)
    assert name in broken(check(context, since="all")), "no action at all is no retention"


@pytest.mark.parametrize(
    ("given_up", "is_violation"),
    [("error_code = 'HTTP_500'", True), ("error_code = 'NO_DEVICE'", False), ("subject = '', body = ''", False)],
)
def test_a_notification_that_nobody_can_mend_needs_no_dead_letter(
    town: Neighbourhood, context: ExecutionContext, given_up: str, is_violation: bool
) -> None:
    town.students(10)
    town.press()
    town.run(f"UPDATE notifications SET status = 'DEAD', due_at = NULL, finished_at = now(), {given_up}")
    assert ("a notification that was given up without a dead letter" in broken(check(context))) == is_violation


def test_a_question_that_takes_too_long_is_left_unanswered(town: Neighbourhood, context: ExecutionContext) -> None:
    with town.db.transaction() as conn:
        conn.execute(text("LOCK TABLE notification_attempts IN ACCESS EXCLUSIVE MODE"))
        result = check(context, timeout_s=0.2)
    assert not result["ok"] and result["violations"] == 0
    [one] = [one for one in result["questions"] if one["unanswered"]]
    assert one["name"] == "a message sent twice to one address within a lease" and one["violations"] is None
    assert "NOT ANSWERED: a message sent twice" in report(context)


def test_questions_are_asked_where_nothing_can_be_written(town: Neighbourhood) -> None:
    with pytest.raises(DBAPIError, match="read-only"), one_snapshot(town.db, 1) as conn:
        conn.execute(text("UPDATE students SET completed = 1"))


def test_a_cancelled_check_stops_between_two_questions(town: Neighbourhood, services: Services) -> None:
    asked: list[str] = []

    def note(done: int, _total: int | None, name: str) -> None:
        asked.append(name)
        if done == 2:
            context.cancel.set()

    context = context_on(services, report_progress=note)
    result = check(context)
    assert (len(asked), result["ok"], result["complete"], len(result["questions"])) == (3, False, False, 3)


# ---- a healthy world ----


def test_a_healthy_world_in_full_swing_has_no_violation(town: Neighbourhood, context: ExecutionContext) -> None:
    """Presses, accepts, expiries, completes and withdrawals go on in threads while the check runs again and again."""
    places = [town.spot_at(20_000.0 * number) for number in range(4)]
    students = [[town.student(metres, at=place) for metres in (10, 20, 30)] for place in places]
    elders = [town.elders(2, at=place) for place in places]
    ended = threading.Event()
    results: list[dict[str, Any]] = []

    def live(number: int) -> None:
        for turn in range(5):
            task_ids = [town.press(elder) for elder in elders[number]]
            town.expire(*task_ids)
            for task_id in task_ids:
                asked = [s for s in students[number] if s.id == town.asked(task_id)]
                for student in asked:
                    town.matching.accept(student, task_id)
                    (town.matching.withdraw if turn % 2 else town.matching.start)(student, task_id)
            for elder, task_id in zip(elders[number], task_ids, strict=True):
                if town.task(task_id).status in ("PENDING", "ASSIGNED", "STARTED"):
                    town.matching.cancel(elder, task_id)

    def keep_checking() -> None:
        while not ended.is_set():
            results.append(check(context, since="all", settle_s=1, patience_s=5))

    checking = threading.Thread(target=keep_checking)
    checking.start()
    try:
        at_once(*[lambda number=number: live(number) for number in range(4)])
    finally:
        ended.set()
        checking.join()
    assert [broken(result) for result in results] == [{}] * len(results)
    assert len(results) > 2 and all(result["ok"] for result in results)


# ---- Redis ----

REDIS_PLANTS = {
    "Redis is not marked as complete": ("SET", "clockwork_complete", "rebuild 1"),
    "Redis and PostgreSQL disagree about an open task": ("DEL", "pending_assignment:{task}"),
    "a candidate list with a student who was asked already": ("RPUSH", "task_candidates:{task}", "{asked}"),
    "a Redis key of a task that has ended": ("ZADD", "offer_deadlines", "1", "{ended}"),
}


@pytest.mark.parametrize("name", REDIS_PLANTS)
def test_a_wrong_key_is_reported_if_it_lasts(town: Neighbourhood, context: ExecutionContext, name: str) -> None:
    ali, _ = town.students(10, 20)
    elder = town.elder()
    ended = town.press(elder)
    town.matching.cancel(elder, ended)
    task_id = town.press(elder)
    assert broken(check(context)) == {}
    names = {"task": task_id, "ended": ended, "asked": ali.id}
    town.redis.execute_command(*[word.format(**names) for word in REDIS_PLANTS[name]])
    assert set(broken(check(context))) == {name}
    assert broken(check(context, redis=False)) == {}


def test_a_wrong_key_that_is_put_right_meanwhile_is_no_violation(
    town: Neighbourhood, context: ExecutionContext
) -> None:
    [ali] = town.students(10)
    key = f"pending_assignment:{town.press()}"
    town.redis.delete(key)
    timer = threading.Timer(0.3, lambda: town.redis.set(key, ali.id))
    timer.start()
    assert check(context, patience_s=8)["ok"]
    timer.join()


def test_a_change_that_is_younger_than_the_limit_need_not_be_in_redis(
    town: Neighbourhood, context: ExecutionContext
) -> None:
    town.students(10)
    town.redis.delete(f"pending_assignment:{town.press()}")
    assert check(context, settle_s=60)["ok"]


def test_keys_of_others_are_left_alone(town: Neighbourhood, context: ExecutionContext) -> None:
    town.redis.set("pending_assignment:somebody-else", "1")
    town.redis.zadd("offer_deadlines", {"not a task": 1})
    town.redis.rpush(f"task_candidates:{uuid4()}", "1")
    assert check(context)["ok"]
    assert town.redis.zcard("offer_deadlines") == 1


def test_without_redis_its_questions_stay_unanswered(settings: Settings, town: Neighbourhood) -> None:
    gate = Gate(settings.redis_url)
    services = build_services(settings.model_copy(update={"redis_url": gate.url}), pool_size=2)
    gate.close()
    try:
        result = check(context_on(services))
    finally:
        services.close()
    assert not result["ok"] and result["violations"] == 0
    assert len([one for one in result["questions"] if one["unanswered"]]) == len(REDIS_PLANTS)
    resources = JobResources(settings, town.db)
    result = check(ExecutionContext("t", "io-0", resources=lambda: resources))
    assert "without Redis" in result["questions"][-1]["unanswered"]
