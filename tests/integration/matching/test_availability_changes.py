"""Students go off duty, move and are deactivated; elders are deactivated. Their offers and tasks go on."""

import pytest

from app.delivery import service as delivery
from app.delivery.contract import NewAction
from app.foundation.errors import InvalidValue, NotFound
from app.matching.contract import NewTask
from app.matching.rules.errors import OfferWithdrawn
from tests.support.matching import Neighbourhood


def test_offer_of_student_who_goes_off_duty_goes_to_the_next(town: Neighbourhood) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    town.matching.set_availability(ali, False)
    assert town.states(task_id) == [(ali.id, "WITHDRAWN", "OFF_DUTY"), (banu.id, "PENDING", None)]
    assert [(row.kind, row.status) for row in town.told(ali)] == [
        ("OFFER", "CANCELLED"),
        ("OFFER_WITHDRAWN", "ACCEPTED"),
    ]
    with pytest.raises(OfferWithdrawn):
        town.matching.accept(ali, task_id)
    town.matching.set_availability(ali, True)
    town.matching.reject(banu, task_id)
    assert town.status(task_id) == "TIMED_OUT", "a student was asked twice for the task"


def test_going_off_duty_without_an_offer_changes_only_the_student(town: Neighbourhood) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    for _ in range(2):
        town.matching.set_availability(banu, False)
    assert town.asked(task_id) == ali.id
    assert len(town.told()) == 1


def test_student_who_goes_off_duty_keeps_the_assigned_task(town: Neighbourhood) -> None:
    ali = town.student(10)
    task_id = town.press()
    town.matching.accept(ali, task_id)
    town.matching.set_availability(ali, False)
    town.matching.start(ali, task_id)
    town.matching.complete(ali, task_id)


@pytest.mark.parametrize(("metres", "asked_still"), [(0, True), (1000.5, True), (1425, True), (1575, False)])
def test_offer_of_student_beyond_one_and_a_half_radii_is_withdrawn(
    town: Neighbourhood, metres: float, asked_still: bool
) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    town.matching.set_location(ali.id, town.spot_at(metres, bearing=77))
    assert town.asked(task_id) == (ali.id if asked_still else banu.id)
    if not asked_still:
        assert town.states(task_id)[0] == (ali.id, "WITHDRAWN", "TOO_FAR")
        assert town.told(ali)[-1].kind == "OFFER_WITHDRAWN"


def test_assigned_student_may_be_at_any_distance(town: Neighbourhood) -> None:
    ali = town.student(10)
    task_id = town.press()
    town.matching.accept(ali, task_id)
    town.matching.set_location(ali.id, town.spot_at(20_000))
    assert town.status(task_id) == "ASSIGNED"


def test_location_of_an_unknown_student_is_refused(town: Neighbourhood) -> None:
    with pytest.raises(NotFound):
        town.matching.set_location(town.elder().id, town.spot_at(10))
    with pytest.raises(NotFound):
        town.matching.set_active(999_999, False)


def test_offer_of_deactivated_student_goes_to_the_next(town: Neighbourhood) -> None:
    ali, banu = town.students(10, 20)
    task_id = town.press()
    town.matching.set_active(ali.id, False)
    assert town.states(task_id) == [(ali.id, "WITHDRAWN", "INACTIVE"), (banu.id, "PENDING", None)]
    town.matching.set_active(ali.id, True)
    town.matching.set_active(ali.id, True)
    assert town.asked(task_id) == banu.id


def test_task_of_deactivated_student_searches_again(town: Neighbourhood) -> None:
    elder, ali, banu = town.elder(), town.student(10, "Ahmet Çelik"), town.student(20)
    task_id = town.press(elder)
    town.matching.accept(ali, task_id)
    town.matching.start(ali, task_id)
    town.matching.set_active(ali.id, False)
    assert town.states(task_id) == [(ali.id, "RELEASED", None), (banu.id, "PENDING", None)]
    assert town.bodies(elder)[-1] == "Ahmet gelemiyor. Size başka bir öğrenci arıyoruz."


@pytest.mark.parametrize("accepted", [False, True])
def test_deactivated_elder_has_no_open_task(town: Neighbourhood, accepted: bool) -> None:
    elder, ali = town.elder(), town.student(10)
    task_id = town.press(elder)
    if accepted:
        town.matching.accept(ali, task_id)
    town.matching.set_active(elder.id, False)
    assert town.status(task_id) == "CANCELLED"
    assert town.keys(task_id).nothing
    assert [row.kind for row in town.told(ali)][-1] == ("CANCELLED" if accepted else "OFFER_WITHDRAWN")
    assert [row.kind for row in town.told(elder)] == (["ON_THE_WAY"] if accepted else [])
    with pytest.raises(InvalidValue):
        town.matching.press(elder, NewTask(elder.id), None)


def test_deactivated_coordinator_changes_no_task(town: Neighbourhood) -> None:
    coordinator, ali = town.coordinator(), town.student(10)
    task_id = town.press()
    town.matching.set_active(coordinator.id, False)
    assert town.asked(task_id) == ali.id


def test_deactivated_person_loses_the_devices_and_gets_no_more_messages(town: Neighbourhood) -> None:
    elder, ali = town.elder(), town.student(10)
    town.register_phone(elder)
    town.register_phone(ali)
    town.matching.set_active(elder.id, False)
    assert [row.user_id for row in town.all("SELECT user_id FROM devices")] == [ali.id]
    with town.db.transaction() as conn:
        delivery.request_actions(conn, [NewAction("matching.started", elder.id, variables={"student": "Ahmet"})])
    assert town.told(elder) == []
    assert [row.status for row in town.all("SELECT status FROM actions")] == ["DONE"]
    town.matching.set_active(elder.id, True)
    assert town.all("SELECT FROM devices WHERE user_id = :id", id=elder.id) == [], "the app registers its phone again"
