"""The board of the coordinators, and what they say of tasks that nobody took."""

from uuid import UUID

import pytest

from app.foundation.ids import uuid7
from app.matching.contract import IllegalTaskTransition, TaskNotFound, TaskOutcome, TaskView
from app.users.models import Caller
from tests.support.matching import Neighbourhood


@pytest.fixture
def coordinator(town: Neighbourhood) -> Caller:
    return town.coordinator()


def board(town: Neighbourhood, caller: Caller) -> list[TaskView]:
    return town.matching.board(caller, cursor=None, limit=10).items


def nobody_found(town: Neighbourhood, elder: Caller | None = None) -> UUID:
    task_id = town.press(elder)
    assert town.status(task_id) == "TIMED_OUT"
    return task_id


def test_board_shows_open_tasks_and_those_that_nobody_took_until_somebody_says_what_became_of_them(
    town: Neighbourhood, coordinator: Caller
) -> None:
    missed = nobody_found(town)
    ahmet, banu = town.student(10, "Ahmet Çelik"), town.student(20, "Banu Ak")
    asking, held, over = (town.press(town.elder(name)) for name in ("Fatma Su", "Hatice Demir", "Emine Taş"))
    town.matching.accept(banu, held)
    town.matching.cancel(coordinator, over)
    shown = board(town, coordinator)
    assert [task.id for task in shown] == [held, asking, missed]
    assert shown[0].student and (shown[0].student.name, shown[0].assigned_at is not None) == ("Banu Ak", True)
    assert (shown[0].search_ends_at, shown[0].current_offer) == (None, None)
    offer = shown[1].current_offer
    assert offer and (offer.student_id, offer.student_name) == (ahmet.id, "Ahmet Çelik")
    assert shown[1].search_ends_at == town.task(asking).search_until
    assert (shown[2].status, shown[2].ended_at) == ("TIMED_OUT", town.task(missed).ended_at)
    said = town.matching.say_outcome(coordinator, missed, TaskOutcome.HELPED_BY_PHONE, "Eczane getirdi")
    assert said.outcome and (said.outcome.outcome, said.outcome.said_by) == ("HELPED_BY_PHONE", coordinator.id)
    assert [task.id for task in board(town, coordinator)] == [held, asking]


def test_board_has_pages(town: Neighbourhood, coordinator: Caller) -> None:
    missed = nobody_found(town)
    tasks = [town.press(elder) for elder in town.elders(3, town.spot_at(50_000))]
    first = town.matching.board(coordinator, cursor=None, limit=3)
    assert [task.id for task in first.items] == tasks[::-1]
    second = town.matching.board(coordinator, cursor=first.next_cursor, limit=3)
    assert ([task.id for task in second.items], second.next_cursor) == ([missed], None)


def test_board_of_an_institution_holds_its_elders_only(town: Neighbourhood) -> None:
    mine = nobody_found(town, town.elder(institution_id=1))
    town.press(town.elder("Fatma Su", institution_id=2))
    town.press(town.elder("Hatice Demir"))
    assert [task.id for task in board(town, town.coordinator(institution_id=1))] == [mine]
    assert len(board(town, town.coordinator())) == 3


def test_the_same_outcome_twice_changes_nothing_and_another_one_replaces_it(
    town: Neighbourhood, coordinator: Caller
) -> None:
    task_id, other = nobody_found(town), town.coordinator("Derya Ak")
    first = town.matching.say_outcome(coordinator, task_id, TaskOutcome.NOT_REACHED, None).outcome
    assert town.matching.say_outcome(other, task_id, TaskOutcome.NOT_REACHED, None).outcome == first
    second = town.matching.say_outcome(other, task_id, TaskOutcome.OTHER, "Kızı aradı").outcome
    assert first and second and second.said_at > first.said_at
    assert (second.outcome, second.note, second.said_by) == ("OTHER", "Kızı aradı", other.id)


def test_outcome_is_refused_for_other_tasks_and_seen_by_coordinators_only(
    town: Neighbourhood, coordinator: Caller
) -> None:
    elder = town.elder()
    task_id = nobody_found(town, elder)
    town.student(10)
    is_open = town.press(elder)
    with pytest.raises(IllegalTaskTransition):
        town.matching.say_outcome(coordinator, is_open, TaskOutcome.OTHER, None)
    for caller, unknown in ((coordinator, uuid7()), (town.coordinator(institution_id=2), task_id)):
        with pytest.raises(TaskNotFound):
            town.matching.say_outcome(caller, unknown, TaskOutcome.OTHER, None)
    town.matching.say_outcome(coordinator, task_id, TaskOutcome.OTHER, None)
    assert town.matching.task(elder, task_id).outcome is None
    assert town.matching.task(coordinator, task_id).outcome is not None


def test_task_from_before_outcomes_is_not_on_the_board_and_may_get_one(
    town: Neighbourhood, coordinator: Caller
) -> None:
    task_id = nobody_found(town)
    town.run("DELETE FROM task_outcomes")
    assert board(town, coordinator) == []
    assert town.matching.say_outcome(coordinator, task_id, TaskOutcome.NOT_NEEDED, None).outcome is not None
