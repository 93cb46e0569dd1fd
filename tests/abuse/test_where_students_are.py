"""Elders who want to find out where a student is, by the counts of many presses."""

from typing import Any

import pytest

from app.foundation.errors import InvalidValue, TooManyRequests
from app.matching.contract import NewTask
from app.matching.rules.map_cells import middle_of_cell, on_the_map
from app.users.models import Caller, LatLon, Role
from tests.support.matching import SPOT, Neighbourhood, at_once

CELL_M = 130.0
SAME_CELL = LatLon(SPOT.lat + 0.0001, SPOT.lon - 0.0005)


def pass_an_hour(town: Neighbourhood) -> None:
    for column in ("created_at", "ended_at", "alarmed_at"):
        town.run(f"UPDATE tasks SET {column} = {column} - interval '61 minutes'")


def counts(town: Neighbourhood, elder: Caller, place: LatLon) -> tuple[Any, ...]:
    """What the elder reads of a press at this place and then cancels."""
    task_id = town.matching.press(elder, NewTask(elder.id, location=place)).task.id
    read = town.matching.task(elder, task_id)
    if read.status == "PENDING":
        town.matching.cancel(elder, task_id)
    pass_an_hour(town)
    return read.status, read.asked, read.remaining, read.current_offer is None


def forty_presses(town: Neighbourhood, student_at: LatLon) -> list[tuple[Any, ...]]:
    student, elder = town.student(0, at=student_at), town.elder()
    places = [town.spot_at(metres, bearing) for metres in (930, 960, 1000, 1040, 1070) for bearing in range(0, 360, 45)]
    read = [counts(town, elder, place) for place in places]
    town.matching.set_active(student.id, False)
    return read


def test_forty_presses_do_not_tell_two_places_in_one_cell_apart(town: Neighbourhood) -> None:
    assert middle_of_cell(on_the_map(SPOT), CELL_M) == middle_of_cell(on_the_map(SAME_CELL), CELL_M)
    here, there = forty_presses(town, SPOT), forty_presses(town, SAME_CELL)
    assert here == there
    assert len(set(here)) == 2, "the student is near some of the places"


def test_area_decides_in_every_statement(town: Neighbourhood) -> None:
    """A student whose cell is near, but who is not, stays a candidate when the turn comes, and while the task waits."""
    elder, away = town.elder(), town.spot_at(5000)
    for metres in range(1000, 1080, 10):
        for bearing in range(0, 360, 30):
            town.student(metres, at=away, bearing=bearing)
    pressed = town.matching.press(elder, NewTask(elder.id, location=away)).task
    listed = town.one("SELECT listed FROM tasks").listed
    assert 0 < listed < 96, "the cells of some are near"
    while (student_id := town.asked(pressed.id)) is not None:
        town.matching.reject(Caller(student_id, Role.STUDENT, "", "tr", None), pressed.id)
    row = town.one("SELECT asked, skipped FROM tasks")
    assert (row.asked, row.skipped) == (listed, 0)


def test_order_of_two_students_in_one_cell_does_not_tell_who_is_nearer(town: Neighbourhood) -> None:
    """An elder with a student of their own at a known place would else measure another one, place by place."""
    own, other = town.student(0, at=SPOT), town.student(0, at=SAME_CELL)
    elder = town.elder()
    for bearing in range(0, 360, 45):
        task_id = town.matching.press(elder, NewTask(elder.id, location=town.spot_at(500, bearing))).task.id
        assert town.asked(task_id) == own.id, "the lower id"
        town.matching.cancel(elder, task_id)
        pass_an_hour(town)
        pass_an_hour(town)
    assert other.id not in {row.student_id for row in town.all("SELECT student_id FROM offers")}


def test_coordinators_see_exact_distances_of_a_search_by_cells(town: Neighbourhood) -> None:
    busy, elder, away = town.student(0), town.elder(), town.spot_at(400)
    town.press(town.elder("Hatice Demir"))
    task_id = town.matching.press(elder, NewTask(elder.id, location=away)).task.id
    coming = town.student(0, at=town.spot_at(123, 45, away), on_duty=False)
    town.matching.set_availability(coming, True)
    assert (town.asked(task_id), town.offers(task_id)[0].distance_m) == (coming.id, pytest.approx(123, abs=0.01))
    assert busy.id != coming.id


def test_home_is_searched_exactly(town: Neighbourhood) -> None:
    elder = town.elder()
    town.student(999.9)
    town.student(1000.1, bearing=120)
    for place in (None, SPOT):
        pressed = town.matching.press(elder, NewTask(elder.id, location=place)).task
        assert (pressed.asked, pressed.remaining) == (1, 0)
        town.matching.cancel(elder, pressed.id)
        pass_an_hour(town)


@pytest.mark.parametrize(("kilometres", "is_taken"), [(24.9, True), (25.1, False)])
def test_place_is_within_25_km_of_home(town: Neighbourhood, kilometres: float, is_taken: bool) -> None:
    elder, place = town.elder(), town.spot_at(kilometres * 1000, bearing=33)
    if is_taken:
        seen = town.matching.press(elder, NewTask(elder.id, location=place)).task
        assert seen.location == place, "the place itself is kept as it was given"
        return
    with pytest.raises(InvalidValue) as refusal:
        town.matching.press(elder, NewTask(elder.id, location=place))
    assert refusal.value.field == "location"
    assert town.all("SELECT id FROM tasks") == []
    assert town.matching.press(town.coordinator(), NewTask(elder.id, location=place)).created


def test_first_place_stands_for_a_home_that_is_not_known(town: Neighbourhood) -> None:
    """Otherwise an account without a home could search the country step by step."""
    elder = town.elder(at=None)
    assert town.matching.press(elder, NewTask(elder.id, location=SPOT)).created
    assert town.matching.press(elder, NewTask(elder.id, location=town.spot_at(20_000))).created
    with pytest.raises(InvalidValue):
        town.matching.press(elder, NewTask(elder.id, location=town.spot_at(40_000)))


def test_six_presses_a_minute_and_twenty_an_hour(town: Neighbourhood) -> None:
    elder = town.elder()

    def press() -> bool:
        return town.matching.press(elder, NewTask(elder.id)).created

    def wait_s() -> int:
        with pytest.raises(TooManyRequests) as refusal:
            press()
        return refusal.value.retry_after_s

    made = 0
    while made < 20:
        for _ in range(min(6, 20 - made)):
            made += press()
        assert made == 20 or 50 < wait_s() <= 60
        town.run("UPDATE tasks SET created_at = created_at - interval '61 s'")
    assert 3200 < wait_s() <= 3600
    town.run("UPDATE tasks SET created_at = created_at - interval '56 minutes'")
    assert press()


def test_presses_at_once_are_one(town: Neighbourhood) -> None:
    elder = town.elder()
    town.student(10)
    pressed = at_once(*[lambda: town.matching.press(elder, NewTask(elder.id)) for _ in range(6)])
    assert sum(one.created for one in pressed) == 1
