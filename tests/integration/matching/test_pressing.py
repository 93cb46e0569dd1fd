"""Presses: repeated, with an idempotency key, above the limit, from another location, for another person."""

from dataclasses import replace
from typing import Any

import pytest

from app.foundation.errors import IdempotencyKeyReused, InvalidValue, TooManyRequests
from app.matching.contract import NewTask
from app.users.models import LatLon
from tests.support.matching import SPOT, Neighbourhood


@pytest.fixture
def environ() -> dict[str, Any]:
    return {}


def test_second_press_makes_no_second_task(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)
    first = town.matching.press(elder, NewTask(elder.id, "Ekmek"), None)
    second = town.matching.press(elder, NewTask(elder.id, "Süt"), None)
    assert (first.created, second.created) == (True, False)
    assert second.task.id == first.task.id
    assert second.task.note == "Ekmek", "the second press changed the task"
    town.matching.accept(ali, first.task.id)
    third = town.matching.press(elder, NewTask(elder.id), None)
    assert (third.created, third.task.id, third.task.status) == (False, first.task.id, "ASSIGNED")
    town.matching.start(ali, first.task.id)
    town.matching.complete(ali, first.task.id)
    assert town.matching.press(elder, NewTask(elder.id), None).created


def test_press_returns_a_pending_task_with_progress(town: Neighbourhood) -> None:
    elder = town.elder()
    town.students(10, 20, 30)
    task = town.matching.press(elder, NewTask(elder.id, "Ekmek"), None).task
    assert (task.status, task.asked, task.remaining, task.note) == ("PENDING", 1, 2, "Ekmek")
    assert task.current_offer is not None
    assert task.current_offer.deadline == task.next_step_at
    assert task.id.version == 7


def test_idempotency_key_finds_its_task_even_after_its_end(town: Neighbourhood) -> None:
    elder = town.elder()
    first = town.matching.press(elder, NewTask(elder.id, "Ekmek"), "k1")
    assert town.status(first.task.id) == "TIMED_OUT"
    again = town.matching.press(elder, NewTask(elder.id, "Ekmek"), "k1")
    assert (again.created, again.task.id, again.task.status) == (False, first.task.id, "TIMED_OUT")
    other = town.matching.press(elder, NewTask(elder.id, "Ekmek"), "k2")
    assert other.created
    with pytest.raises(IdempotencyKeyReused):
        town.matching.press(elder, NewTask(elder.id, "Süt"), "k1")
    with pytest.raises(IdempotencyKeyReused):
        town.matching.press(elder, NewTask(elder.id, "Ekmek", LatLon(41, 29)), "k1")


def test_idempotency_key_belongs_to_one_elder(town: Neighbourhood) -> None:
    one, other = town.elders(2)
    assert town.matching.press(one, NewTask(one.id, "a"), "k").created
    assert town.matching.press(other, NewTask(other.id, "b"), "k").created


def test_idempotency_key_covers_the_location(town: Neighbourhood) -> None:
    elder, spot = town.elder(), LatLon(40.98701234567, 29.02809876543)
    first = town.matching.press(elder, NewTask(elder.id, None, spot), "k")
    assert town.matching.press(elder, NewTask(elder.id, None, spot), "k").task.id == first.task.id


def test_location_defaults_to_the_elders_home(town: Neighbourhood) -> None:
    elder = town.elder(at=SPOT)
    assert town.matching.press(elder, NewTask(elder.id), None).task.location == SPOT
    elsewhere = town.spot_at(3000)
    assert town.matching.press(elder, NewTask(elder.id, location=elsewhere), None).task.location == elsewhere
    homeless = town.elder("Hatice Demir", at=None)
    with pytest.raises(InvalidValue) as refusal:
        town.matching.press(homeless, NewTask(homeless.id), None)
    assert refusal.value.field == "location"


def test_whoever_moved_since_the_request_came_is_helped_at_the_new_home(town: Neighbourhood) -> None:
    elder, ali = town.elder(at=SPOT), town.student(10)
    before_the_move = replace(elder, home=town.spot_at(5000))
    town.student(10, at=town.spot_at(5000))
    task = town.matching.press(before_the_move, NewTask(elder.id), None).task
    assert task.location == SPOT
    assert [offer.student_id for offer in town.offers(task.id)] == [ali.id]


def test_only_new_tasks_count_for_the_limit_of_six_a_minute(town: Neighbourhood) -> None:
    elder = town.elder()
    for number in range(6):
        assert town.matching.press(elder, NewTask(elder.id), f"k{number}").created
    for number in range(6):
        assert not town.matching.press(elder, NewTask(elder.id), f"k{number}").created
    with pytest.raises(TooManyRequests) as refusal:
        town.matching.press(elder, NewTask(elder.id), None)
    assert 0 < refusal.value.retry_after_s <= 60
    other = town.elder("Hatice Demir")
    assert town.matching.press(other, NewTask(other.id), None).created
    town.run("UPDATE tasks SET created_at = created_at - interval '61 s'")
    town.student(10)
    assert town.matching.press(elder, NewTask(elder.id), None).created
    for _ in range(70):
        assert not town.matching.press(elder, NewTask(elder.id), None).created


def test_coordinator_presses_for_an_elder(town: Neighbourhood) -> None:
    elder, coordinator, ali = town.elder(), town.coordinator(), town.student(10)
    pressed = town.matching.press(coordinator, NewTask(elder.id), None)
    assert (pressed.created, pressed.task.elder.id) == (True, elder.id)
    assert not town.matching.press(elder, NewTask(elder.id), None).created
    for nobody in (ali.id, coordinator.id, 999_999):
        with pytest.raises(InvalidValue) as refusal:
            town.matching.press(coordinator, NewTask(nobody), None)
        assert refusal.value.field == "elderId"
