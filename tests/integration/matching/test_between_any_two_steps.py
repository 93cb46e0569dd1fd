"""Whoever carries out a step is killed, or stopped for longer than a deadline, between any two of its statements.

A passage of `sql.statement` is the moment before a statement, of `sql.commit` the one before a commit, and so on. The
test goes on until the step is no longer cut short, so a statement added later is tried as well; in the suite it goes
through the first places and then every third one, in a deep run through all of them.
"""

import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from app.foundation.clock import Clock
from app.foundation.errors import AppError
from app.matching.redis_sync import CHECK_AFTER, RedisSync
from app.users.models import Caller
from tests.support import mishaps
from tests.support.depth import passages
from tests.support.matching import Neighbourhood, broken_promises, eventually

PLACES = ("sql.statement", "sql.commit", "sql.committed", "redis.untold", "redis.told", "follow_up.shown")
WORDS = ("create", "accept", "reject", "expire", "withdraw")
MOST = 60


class Later:
    """Redis is compared with what changed two seconds ago; here that is at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self):
        return self._clock.now() + CHECK_AFTER + timedelta(milliseconds=1)


@dataclass
class Scene:
    """An elder with three students of their own, so far from everybody else that no two scenes meet."""

    town: Neighbourhood
    word: str
    elder: Caller
    students: list[Caller]
    task_id: UUID | None

    @property
    def what(self) -> tuple[str, Caller, UUID | None, str]:
        caller = self.elder if self.word == "create" else self.students[0]
        return self.word, caller, self.task_id, f"key of {self.elder.id}"

    def task(self) -> UUID | None:
        rows = self.town.all("SELECT id FROM tasks WHERE elder_id = :id", id=self.elder.id)
        assert len(rows) <= 1, "one press is one request"
        return rows[0].id if rows else None


def stage(town: Neighbourhood, word: str, number: int) -> Scene:
    spot = town.spot_at(20_000 * (number + 1), 90)
    elder = town.elder(at=spot)
    students = town.students(100, 200, 300, at=spot)
    scene = Scene(town, word, elder, students, None if word == "create" else town.press(elder))
    if word == "withdraw":
        assert scene.task_id is not None
        town.matching.accept(students[0], scene.task_id)
    if word == "expire":
        assert scene.task_id is not None
        town.make_overdue(scene.task_id)
    return scene


def recover(town: Neighbourhood) -> None:
    """What another matcher does: the sweep, and the comparison with Redis."""
    # A backend hears a moment late that its client is dead, so this waits for its locks, where a matcher comes back.
    sweep(town, skip_locked=False)
    stores = town.matching.stores
    RedisSync(stores, town.services.clockwork, Later(town.services.clock), town.matching.rules).refresh()


def try_again(town: Neighbourhood, scene: Scene) -> None:
    """The phone got no answer. What was done before it died is not done a second time."""
    word, caller, task_id, key = scene.what
    try:
        mishaps.do(town.services, word, caller, task_id, key)
    except AppError as error:
        raise AssertionError(f"a step that is repeated is refused: {error.code}") from error


def assert_all_is_well(town: Neighbourhood, scene: Scene) -> None:
    with town.db.transaction() as conn:
        assert broken_promises(conn) == {}
    task_id = scene.task()
    if task_id is None:
        return
    task, keys = town.task(task_id), town.keys(task_id)
    asked = town.asked_in_order(task_id)
    assert asked == [student.id for student in scene.students[: len(asked)]], "nearest first, each once"
    live = town.asked(task_id)
    assert (keys.asked, keys.score_ms is not None) == (live, task.next_step_at is not None)
    assert not set(keys.candidates) & set(asked)
    assert task.status != "PENDING" or live == asked[-1]


def expected(word: str) -> tuple[str, list[str]]:
    """The task and its offers once the step has been done, once."""
    return {
        "create": ("PENDING", ["PENDING"]),
        "accept": ("ASSIGNED", ["ACCEPTED"]),
        "reject": ("PENDING", ["REJECTED", "PENDING"]),
        "expire": ("PENDING", ["EXPIRED", "PENDING"]),
        "withdraw": ("PENDING", ["RELEASED", "PENDING"]),
    }[word]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", WORDS)
def test_a_death_between_any_two_steps_loses_nothing_and_repeats_nothing(
    town: Neighbourhood, word: str, place: str
) -> None:
    for passage in passages(MOST):
        scene = stage(town, word, passage)
        died = mishaps.Step(town.services.settings, f"{place}=kill@{passage}", *scene.what).end().died
        recover(town)
        assert_all_is_well(town, scene)
        try_again(town, scene)
        assert_all_is_well(town, scene)
        task_id = scene.task()
        assert task_id is not None
        task, offers = town.task(task_id), town.offers(task_id)
        assert (task.status, [offer.state for offer in offers]) == expected(word)
        assert len(town.told(kind="OFFER", task_id=task_id)) == len(offers)
        if not died:
            assert passage > 1, f"{word} never passes {place}"
            return
    raise AssertionError("a step has fewer statements than that")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", ["create", "reject", "expire"])
def test_the_late_write_of_whoever_was_stopped_past_a_deadline_is_refused(
    town: Neighbourhood, word: str, place: str
) -> None:
    for passage in passages(MOST):
        scene = stage(town, word, passage)
        step = mishaps.Step(town.services.settings, f"{place}=stop@{passage}", *scene.what)
        with step.standing_still() as stopped:
            overtaken = overtake(town, scene) if stopped else None
        outcome = step.end()
        if overtaken is None:
            assert outcome.refused is None
        else:
            task_id = scene.task()
            assert task_id is not None
            assert town.states(task_id) == overtaken, "what was done meanwhile stands"
            assert town.keys(task_id).asked == town.asked(task_id), "Redis does not believe the late word either"
            # A matcher has nobody to refuse it.
            assert outcome.refused in ({None, "offer_expired"} if word == "reject" else {None})
        recover(town)
        assert_all_is_well(town, scene)
        if not stopped:
            return
    raise AssertionError("a step has fewer statements than that")


def test_a_matcher_that_stands_still_in_the_middle_of_its_writing_holds_nobody_up_for_long(town: Neighbourhood) -> None:
    scene = stage(town, "expire", 1)
    task_id = scene.task()
    assert task_id is not None
    step = mishaps.Step(town.services.settings, "sql.commit=stop@1", *scene.what)
    with step.standing_still() as stopped:
        assert stopped and town.asked(task_id) == scene.students[0].id
        began = time.monotonic()
        eventually(lambda: sweep(town) or town.asked(task_id) == scene.students[1].id, "somebody else is faster", 10)
        assert time.monotonic() - began < 7
        overtaken = town.states(task_id)
    assert step.end().refused == "database_unavailable"
    recover(town)
    assert town.states(task_id) == overtaken
    assert_all_is_well(town, scene)


def sweep(town: Neighbourhood, *, skip_locked: bool = True) -> None:
    with town.matching.stores.reading() as store:
        due = store.due_tasks(100)
    town.matching.runner.advance(due, skip_locked=skip_locked)


def overtake(town: Neighbourhood, scene: Scene) -> list[tuple[int, str, str | None]] | None:
    """Others let every offer of the task run out and ask the next, unless the one who stands still holds the row."""
    task_id = scene.task()
    if task_id is None:
        return None
    with town.db.transaction() as conn:
        free = conn.execute(text("SELECT id FROM tasks WHERE id = :id FOR UPDATE SKIP LOCKED"), {"id": task_id}).first()
    if free is None:
        return None
    town.expire(task_id)
    return town.states(task_id)
