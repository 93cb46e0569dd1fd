"""Students who want to find out where an elder lives, before they accept or without it."""

from typing import Any

import pytest

from app.api.services import Services
from app.bootstrap.api import create_app
from app.matching.contract import NewTask
from app.matching.rules.map_cells import middle_of_cell, on_the_map
from app.users.models import LatLon
from tests.support.matching import NO_LIMITS, SPOT, Neighbourhood
from tests.support.world import authorization, settle_world

CELL_M = 130.0
SAME_CELL = LatLon(SPOT.lat + 0.0001, SPOT.lon - 0.0005)
CLAIMS = [(metres, bearing) for metres in (40, 333, 870, 1210) for bearing in range(0, 360, 45)]


@pytest.fixture
def environ() -> dict[str, Any]:
    return dict(NO_LIMITS)


def cell_of(spot: LatLon) -> Any:
    return middle_of_cell(on_the_map(spot), CELL_M)


def distances(town: Neighbourhood, home: LatLon) -> list[float]:
    """What a student reads who is asked by the elder at `home`, and reports one place after the other."""
    elder, student = town.elder(at=home), town.student(100, at=SPOT)
    task_id = town.matching.press(elder, NewTask(elder.id)).task.id
    read: list[float] = []
    for metres, bearing in CLAIMS:
        town.matching.set_location(student.id, town.spot_at(metres, bearing))
        offer = town.matching.current_offer(student)
        assert offer is not None
        read.append(offer.distance_m)
    town.matching.cancel(elder, task_id)
    town.matching.set_active(student.id, False)
    return read


def rim(town: Neighbourhood, home: LatLon) -> int:
    """How far north a student may walk in steps of 5 m, until the offer is withdrawn."""
    elder, student = town.elder(at=home), town.student(100, at=SPOT)
    task_id = town.matching.press(elder, NewTask(elder.id)).task.id
    metres = next(
        metres for metres in range(1380, 1700, 5) if not stays_asked(town, student.id, task_id, town.spot_at(metres))
    )
    town.matching.set_active(student.id, False)
    return metres


def first_step_inside(town: Neighbourhood, home: LatLon) -> int:
    """How near a student comes in steps of 10 m, until a search that waits for somebody else asks them."""
    busy = town.student(0, at=SPOT)
    town.press(town.elder("Hatice Demir", at=SPOT))
    task_id, walker = town.press(town.elder(at=home)), town.student(2000, at=SPOT)
    assert town.task(task_id).waiting
    metres = next(
        metres for metres in range(1500, 700, -10) if stays_asked(town, walker.id, task_id, town.spot_at(metres, 60))
    )
    for student in (busy, walker):
        town.matching.set_active(student.id, False)
    return metres


def stays_asked(town: Neighbourhood, student_id: int, task_id: Any, spot: LatLon) -> bool:
    town.matching.set_location(student_id, spot)
    return town.asked(task_id) == student_id


def test_trilateration_does_not_tell_two_homes_in_one_cell_apart(town: Neighbourhood) -> None:
    assert cell_of(SPOT) == cell_of(SAME_CELL)
    here, there = distances(town, SPOT), distances(town, SAME_CELL)
    assert here == there
    assert len(set(here)) > 5 and all(metres % 100 == 0 and metres >= 100 for metres in here)


def test_walk_until_the_offer_is_withdrawn_finds_the_rim_of_the_cell_only(town: Neighbourhood) -> None:
    assert rim(town, SPOT) == rim(town, SAME_CELL)


def test_walk_into_a_search_that_waits_finds_the_rim_of_the_cell_only(town: Neighbourhood) -> None:
    """One report after the other asks whether the student is near, so an exact circle would tell three rims to three
    students."""
    assert first_step_inside(town, SPOT) == first_step_inside(town, SAME_CELL)


def test_search_that_waits_misses_nobody_within_the_radius(town: Neighbourhood) -> None:
    town.student(0)
    town.press(town.elder("Hatice Demir"))
    for bearing in range(0, 360, 20):
        task_id, walker = town.press(town.elder(f"Elder{bearing}")), town.student(2000)
        town.matching.set_location(walker.id, town.spot_at(1000, bearing))
        assert town.asked(task_id) == walker.id
        town.matching.accept(walker, task_id)


def test_coordinator_sees_the_exact_distance(town: Neighbourhood) -> None:
    town.student(123)
    task_id = town.press()
    assert town.offers(task_id)[0].distance_m == pytest.approx(123, abs=0.01)


def test_no_answer_to_a_student_who_is_asked_holds_a_position(services: Services) -> None:
    """Whatever a student may call before the accept, and what is pushed to them."""
    world = settle_world(services)
    client = create_app(services).test_client()
    headers = authorization(world, services, "student")
    paths = ("/me", "/me/offer", "/tasks", f"/tasks/{world.task_id}", "/me/messages")
    read = [client.get(path, headers=headers).get_data(as_text=True) for path in paths]
    with services.db.reading() as conn:
        pushed = conn.exec_driver_sql(
            "SELECT concat_ws(' ', subject, body, metadata) FROM notifications WHERE recipient_user_id = %(id)s",
            {"id": world.ids["student"]},
        )
        read += pushed.scalars().all()
    assert len(read) > len(paths)
    everything = " ".join(read)
    assert '"distanceM":100.0,' in everything.replace(" ", ""), "111 m; the cells are 98 m apart"
    for secret in ("40.98", "29.02", "+9055501000", "Yılmaz", '"lat"', "111."):
        assert secret not in everything
