"""The button: pressed twice, with a key, too often, from elsewhere, for somebody else."""

import pytest

from app.foundation.errors import IdempotencyKeyReused, InvalidValue, TooManyRequests
from app.matching.contract import NewTask
from app.users.models import LatLon
from tests.support.matching import SPOT, Neighbourhood


def test_a_second_press_is_not_a_second_request(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)
    first = town.matching.press(elder, NewTask(elder.id, "Ekmek"), None)
    second = town.matching.press(elder, NewTask(elder.id, "Süt"), None)
    assert (first.created, second.created) == (True, False)
    assert second.task.id == first.task.id
    assert second.task.note == "Ekmek", "unchanged"
    town.matching.accept(ali, first.task.id)
    third = town.matching.press(elder, NewTask(elder.id), None)
    assert (third.created, third.task.id, third.task.status) == (False, first.task.id, "ASSIGNED")
    town.matching.start(ali, first.task.id)
    town.matching.complete(ali, first.task.id)
    assert town.matching.press(elder, NewTask(elder.id), None).created


def test_a_press_answers_pending_with_progress(town: Neighbourhood) -> None:
    elder = town.elder()
    town.students(10, 20, 30)
    task = town.matching.press(elder, NewTask(elder.id, "Ekmek"), None).task
    assert (task.status, task.asked, task.remaining, task.note) == ("PENDING", 1, 2, "Ekmek")
    assert task.current_offer is not None
    assert task.current_offer.deadline == task.next_step_at
    assert task.id.version == 7


def test_a_key_finds_the_task_it_was_used_for_also_after_its_end(town: Neighbourhood) -> None:
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


def test_a_key_belongs_to_its_elder(town: Neighbourhood) -> None:
    one, other = town.elders(2)
    assert town.matching.press(one, NewTask(one.id, "a"), "k").created
    assert town.matching.press(other, NewTask(other.id, "b"), "k").created


def test_a_key_with_a_place_matches_the_same_place(town: Neighbourhood) -> None:
    elder, spot = town.elder(), LatLon(40.98701234567, 29.02809876543)
    first = town.matching.press(elder, NewTask(elder.id, None, spot), "k")
    assert town.matching.press(elder, NewTask(elder.id, None, spot), "k").task.id == first.task.id


def test_the_place_defaults_to_the_elders_home(town: Neighbourhood) -> None:
    elder = town.elder(at=SPOT)
    assert town.matching.press(elder, NewTask(elder.id), None).task.location == SPOT
    elsewhere = town.spot_at(3000)
    assert town.matching.press(elder, NewTask(elder.id, location=elsewhere), None).task.location == elsewhere
    homeless = town.elder("Hatice Demir", at=None)
    with pytest.raises(InvalidValue) as refusal:
        town.matching.press(homeless, NewTask(homeless.id), None)
    assert refusal.value.field == "location"


def test_sixty_new_requests_a_minute_and_repeated_presses_never_count(town: Neighbourhood) -> None:
    elder = town.elder()
    for number in range(60):
        assert town.matching.press(elder, NewTask(elder.id), f"k{number}").created
    for number in range(60):
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


def test_a_coordinator_presses_for_an_elder(town: Neighbourhood) -> None:
    elder, coordinator, ali = town.elder(), town.coordinator(), town.student(10)
    pressed = town.matching.press(coordinator, NewTask(elder.id), None)
    assert (pressed.created, pressed.task.elder.id) == (True, elder.id)
    assert not town.matching.press(elder, NewTask(elder.id), None).created
    for nobody in (ali.id, coordinator.id, 999_999):
        with pytest.raises(InvalidValue) as refusal:
            town.matching.press(coordinator, NewTask(nobody), None)
        assert refusal.value.field == "elderId"
