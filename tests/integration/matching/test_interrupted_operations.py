"""A process is killed, or stopped for longer than a deadline, between any two statements of an operation.

A passage of `sql.statement` is the moment before a statement, of `sql.commit` the one before a commit, and so on. Each
test tries later and later passages until the operation ends before the passage, so it covers statements that are added
later. The suite tries the first passages and then every fourth one, a deep run tries all.
"""

import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from app.foundation.clock import Clock
from app.foundation.errors import AppError
from app.matching import deeds
from app.matching.redis_sync import CHECK_AFTER, RedisSync
from app.users.models import Caller
from tests.support import mishaps
from tests.support.depth import passages
from tests.support.matching import Neighbourhood, broken_promises, eventually

PLACES = ("sql.statement", "sql.commit", "sql.committed", "redis.untold", "redis.told", "follow_up.shown")
OPERATIONS = ("create", "accept", "reject", "expire", "withdraw")
MOST = 60


class ShiftedClock:
    """So far ahead that recent changes are compared with Redis at once instead of two seconds later."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self):
        return self._clock.now() + CHECK_AFTER + timedelta(milliseconds=1)


@dataclass
class Scene:
    """An elder with three students, too far from all other scenes to share a student with them."""

    town: Neighbourhood
    operation: str
    elder: Caller
    students: list[Caller]
    task_id: UUID | None

    @property
    def arguments(self) -> tuple[str, Caller, UUID | None, str]:
        caller = self.elder if self.operation == "create" else self.students[0]
        return self.operation, caller, self.task_id, f"key of {self.elder.id}"

    def task(self) -> UUID | None:
        rows = self.town.all("SELECT id FROM tasks WHERE elder_id = :id", id=self.elder.id)
        assert len(rows) <= 1, "one press made two tasks"
        return rows[0].id if rows else None


def stage(town: Neighbourhood, operation: str, number: int) -> Scene:
    spot = town.spot_at(20_000 * (number + 1), 90)
    elder = town.elder(at=spot)
    students = town.students(100, 200, 300, at=spot)
    scene = Scene(town, operation, elder, students, None if operation == "create" else town.press(elder))
    if operation == "withdraw":
        assert scene.task_id is not None
        town.matching.accept(students[0], scene.task_id)
    if operation == "expire":
        assert scene.task_id is not None
        town.make_overdue(scene.task_id)
    return scene


def recover(town: Neighbourhood) -> None:
    """Does the work of another matcher: the sweep, and the comparison with Redis."""
    # PostgreSQL notices a killed client a moment late, so this waits for its locks. A matcher would sweep again.
    sweep(town, skip_locked=False)
    stores = town.matching.stores
    RedisSync(stores, town.services.clockwork, ShiftedClock(town.services.clock), town.matching.rules).refresh()


def try_again(town: Neighbourhood, scene: Scene) -> None:
    """Repeats the operation, as a phone without an answer does. A completed operation has no second effect."""
    operation, caller, task_id, key = scene.arguments
    try:
        mishaps.do(town.services, operation, caller, task_id, key)
    except AppError as error:
        raise AssertionError(f"the repeated operation is refused: {error.code}") from error


def assert_all_is_well(town: Neighbourhood, scene: Scene) -> None:
    with town.db.transaction() as conn:
        assert broken_promises(conn) == {}
    task_id = scene.task()
    if task_id is None:
        return
    task, keys = town.task(task_id), town.keys(task_id)
    asked = town.asked_in_order(task_id)
    assert asked == [student.id for student in scene.students[: len(asked)]], (
        "the students were not asked nearest first and once each"
    )
    live = town.asked(task_id)
    assert (keys.asked, keys.score_ms is not None) == (live, task.next_step_at is not None)
    assert not set(keys.candidates) & set(asked)
    assert task.status != "PENDING" or live == asked[-1]


def expected(operation: str) -> tuple[str, list[str]]:
    """The states of the task and of its offers after the operation."""
    return {
        "create": ("PENDING", ["PENDING"]),
        "accept": ("ASSIGNED", ["ACCEPTED"]),
        "reject": ("PENDING", ["REJECTED", "PENDING"]),
        "expire": ("PENDING", ["EXPIRED", "PENDING"]),
        "withdraw": ("PENDING", ["RELEASED", "PENDING"]),
    }[operation]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_operation_loses_nothing_and_repeats_nothing(town: Neighbourhood, operation: str, place: str) -> None:
    for passage in passages(MOST):
        scene = stage(town, operation, passage)
        died = mishaps.Step(town.services.settings, f"{place}=kill@{passage}", *scene.arguments).end().died
        recover(town)
        assert_all_is_well(town, scene)
        try_again(town, scene)
        assert_all_is_well(town, scene)
        task_id = scene.task()
        assert task_id is not None
        task, offers = town.task(task_id), town.offers(task_id)
        assert (task.status, [offer.state for offer in offers]) == expected(operation)
        assert len(town.told(kind="OFFER", task_id=task_id)) == len(offers)
        if not died:
            assert passage > 1, f"{operation} never passes {place}"
            return
    raise AssertionError(f"{MOST} passages did not reach the end of the operation")


def test_search_that_begins_again_is_due_without_its_hint(town: Neighbourhood) -> None:
    ali, task_id = town.student(10), town.press()
    town.matching.accept(ali, task_id)
    with town.matching.stores.transaction() as store:
        deeds.withdraw(store, ali, task_id, town.matching.rules)
    with town.matching.stores.reading() as store:
        assert store.due_tasks(10) == [task_id]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("operation", ["create", "reject", "expire"])
def test_write_of_operation_stopped_past_its_deadline_is_refused(
    town: Neighbourhood, operation: str, place: str
) -> None:
    for passage in passages(MOST):
        scene = stage(town, operation, passage)
        process = mishaps.Step(town.services.settings, f"{place}=stop@{passage}", *scene.arguments)
        with process.standing_still() as stopped:
            overtaken = overtake(town, scene) if stopped else None
        outcome = process.end()
        if overtaken is None:
            assert outcome.refused is None
        else:
            task_id = scene.task()
            assert task_id is not None
            assert town.states(task_id) == overtaken, "the late write changed the offers"
            assert town.keys(task_id).asked == town.asked(task_id), "the late write changed Redis"
            # Only a student gets a refusal; a matcher finds nothing to do.
            assert outcome.refused in ({None, "offer_expired"} if operation == "reject" else {None})
        recover(town)
        assert_all_is_well(town, scene)
        if not stopped:
            return
    raise AssertionError(f"{MOST} passages did not reach the end of the operation")


def test_stopped_matcher_holds_its_locks_for_seconds_only(town: Neighbourhood) -> None:
    scene = stage(town, "expire", 1)
    task_id = scene.task()
    assert task_id is not None
    process = mishaps.Step(town.services.settings, "sql.commit=stop@1", *scene.arguments)
    with process.standing_still() as stopped:
        assert stopped and town.asked(task_id) == scene.students[0].id
        began = time.monotonic()
        eventually(
            lambda: sweep(town) or town.asked(task_id) == scene.students[1].id, "another matcher expires the offer", 10
        )
        assert time.monotonic() - began < 7
        overtaken = town.states(task_id)
    assert process.end().refused == "database_unavailable"
    recover(town)
    assert town.states(task_id) == overtaken
    assert_all_is_well(town, scene)


def sweep(town: Neighbourhood, *, skip_locked: bool = True) -> None:
    with town.matching.stores.reading() as store:
        due = store.due_tasks(100)
    town.matching.runner.advance(due, skip_locked=skip_locked)


def overtake(town: Neighbourhood, scene: Scene) -> list[tuple[int, str, str | None]] | None:
    """Expires the offers of the task and asks the next student, unless the stopped process has locked the row."""
    task_id = scene.task()
    if task_id is None:
        return None
    with town.db.transaction() as conn:
        free = conn.execute(text("SELECT id FROM tasks WHERE id = :id FOR UPDATE SKIP LOCKED"), {"id": task_id}).first()
    if free is None:
        return None
    town.expire(task_id)
    return town.states(task_id)
