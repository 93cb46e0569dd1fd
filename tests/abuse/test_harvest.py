"""A student who accepts, reads phone and address, withdraws, and jumps to the next city."""

import pytest

from app.matching.contract import NewTask, OfferWithdrawn, Suspended
from app.matching.role import Matcher
from app.users.contract import EVERYTHING
from app.users.models import Caller, LatLon
from tests.support.matching import SPOT, Neighbourhood, at_once, eventually


def harvest(town: Neighbourhood, student: Caller, elders: list[Caller]) -> int:
    """Returns how many phones the student has read."""
    phones = 0
    for elder in elders:
        task_id = town.matching.press(elder, NewTask(elder.id)).task.id
        if town.asked(task_id) == student.id:
            phones += town.matching.accept(student, task_id).elder.phone is not None
            town.matching.withdraw(student, task_id)
    return phones


def test_ten_elders_of_one_street(town: Neighbourhood) -> None:
    student, coordinator = town.student(10, "Ahmet Çelik"), town.coordinator()
    assert harvest(town, student, town.elders(10)) == 3
    told = town.told(coordinator, "STUDENT_WITHDREW")
    assert len(told) == 3, "each withdrawal is told"
    assert ["görevde değil" in row.body for row in told] == [False, False, True]
    assert "(24 saatte 3. kez)" in told[-1].body and "Elder2 Yılmaz" in told[-1].body
    with pytest.raises(Suspended):
        town.matching.set_availability(student, True)


def test_ten_cities(town: Neighbourhood) -> None:
    student = town.student(10)
    cities = [LatLon(SPOT.lat + number / 10, SPOT.lon) for number in range(10)]
    phones = 0
    for number, city in enumerate(cities):
        town.matching.set_location(student.id, city)
        phones += harvest(town, student, [town.elder(f"Elder{number} Yılmaz", city)])
    assert phones == 1, "the jump to the second city does not count for ten minutes"


def visit(town: Neighbourhood, student: Caller, elder: Caller, minutes: int = 0) -> None:
    task_id = town.press(elder)
    assert town.matching.accept(student, task_id).elder.phone is not None
    town.age(task_id, 60 * minutes)
    town.matching.start(student, task_id)
    town.matching.complete(student, task_id)


def test_ten_elders_who_are_helped_in_a_second(town: Neighbourhood) -> None:
    """Completing is a way to the next elder that is no withdrawal. It does not keep a student from help, because a
    quick hand is not a crime, but coordinators hear of it and may put the student off duty."""
    student, coordinator = town.student(10, "Ahmet Çelik"), town.coordinator()
    for elder in town.elders(10):
        visit(town, student, elder)
    told = town.told(coordinator, "SHORT_VISITS")
    assert len(told) == 8, "from the third on"
    assert "24 saatte 3 görevi" in told[0].body and "24 saatte 10 görevi" in told[-1].body
    assert "Ahmet Çelik" in told[0].body and "Elder2 Yılmaz, telefon: +905550000001" in told[0].body


def test_long_visits_and_those_of_the_day_before_are_not_told(town: Neighbourhood) -> None:
    student, coordinator = town.student(10), town.coordinator()
    elders = town.elders(7)
    for elder in elders[:2]:
        visit(town, student, elder)
    town.run("UPDATE tasks SET assigned_at = assigned_at - interval '1 day', ended_at = ended_at - interval '1 day'")
    for elder in elders[2:4]:
        visit(town, student, elder)
    for elder in elders[4:]:
        visit(town, student, elder, minutes=5)
    assert town.told(coordinator, "SHORT_VISITS") == []
    visit(town, student, town.elder("Hatice Demir"), minutes=4)
    assert len(town.told(coordinator, "SHORT_VISITS")) == 1


def test_suspended_student_comes_back_through_a_coordinator(town: Neighbourhood) -> None:
    student, elders = town.student(10), town.elders(5)
    harvest(town, student, elders[:3])
    for _ in range(2):
        town.matching.set_availability(student, False)
        with pytest.raises(Suspended):
            town.matching.set_availability(student, True)
    town.matching.set_duty_of(EVERYTHING, student.id, True)
    assert harvest(town, student, elders[3:]) == 2, "the count begins anew"
    town.matching.set_duty_of(EVERYTHING, student.id, False)
    with pytest.raises(Suspended):
        town.matching.set_availability(student, True)


def test_withdrawals_of_the_day_before_do_not_count(town: Neighbourhood) -> None:
    student, elders = town.student(10), town.elders(4)
    harvest(town, student, elders[:2])
    town.run("UPDATE students SET withdrew_at = ARRAY(SELECT at - interval '1 day' FROM unnest(withdrew_at) at)")
    assert harvest(town, student, elders[2:]) == 2
    town.matching.set_availability(student, True)


def test_withdrawals_at_once_with_accepts_are_all_counted(town: Neighbourhood) -> None:
    student, elder = town.student(10), town.elder()
    task_id = town.press(elder)
    town.matching.accept(student, task_id)
    at_once(
        lambda: town.matching.withdraw(student, task_id),
        lambda: town.matching.accept(student, task_id),
        lambda: town.matching.withdraw(student, task_id),
    )
    assert town.status(task_id) == "TIMED_OUT"
    assert len(town.one("SELECT withdrew_at FROM students").withdrew_at) == 1


@pytest.mark.parametrize(("metres", "counts"), [(1_400, True), (1_600, False), (50_000, False)])
def test_jump_of_a_student_whose_place_is_new(town: Neighbourhood, metres: float, counts: bool) -> None:
    student = town.student(0)
    town.matching.set_location(student.id, SPOT)
    there = town.spot_at(metres)
    town.matching.set_location(student.id, there)
    task_id = town.press(town.elder(at=there))
    assert (town.asked(task_id) == student.id) is counts


def test_many_short_jumps_are_a_long_one(town: Neighbourhood) -> None:
    student = town.student(0)
    for metres in range(0, 10_000, 500):
        town.matching.set_location(student.id, town.spot_at(metres))
    assert town.asked(town.press(town.elder(at=town.spot_at(9_500)))) is None


def test_train_is_not_a_jump(town: Neighbourhood) -> None:
    student = town.student(0)
    for metres in range(0, 40_000, 5_000):
        town.matching.set_location(student.id, town.spot_at(metres))
        town.run("UPDATE students SET location_at = location_at - interval '100 s'")
    assert town.asked(town.press(town.elder(at=town.spot_at(35_000)))) == student.id


def test_offer_is_withdrawn_from_a_student_who_jumps(town: Neighbourhood) -> None:
    student = town.student(0)
    town.matching.set_location(student.id, SPOT)
    task_id = town.press()
    town.matching.set_location(student.id, town.spot_at(20_000))
    with pytest.raises(OfferWithdrawn):
        town.matching.accept(student, task_id)


def test_place_counts_after_ten_minutes_and_wakes_a_waiting_search(town: Neighbourhood, matcher: Matcher) -> None:
    """Nobody has to report the place again."""
    there = town.spot_at(30_000)
    student, busy = town.student(0), town.student(0, at=there)
    town.matching.set_location(student.id, SPOT)
    town.matching.set_location(student.id, there)
    assert town.asked(town.press(town.elder("Hatice Demir", there))) == busy.id
    waiting = town.press(town.elder(at=there))
    matcher.reconciler.sweep()
    assert town.asked(waiting) is None
    town.run("UPDATE students SET next_location_from = clock_timestamp() WHERE next_location IS NOT NULL")
    matcher.start()
    eventually(lambda: town.asked(waiting) == student.id, "the waiting task asks the student who has arrived")
    matcher.stop()


def test_place_that_an_admin_enters_counts_at_once(town: Neighbourhood) -> None:
    student, there = town.student(0), town.spot_at(30_000)
    town.matching.set_location(student.id, SPOT)
    town.matching.set_location(student.id, there)
    town.matching.set_location(student.id, there, is_reported=False)
    assert town.asked(town.press(town.elder(at=there))) == student.id


@pytest.mark.parametrize("by_hand", [False, True])
def test_each_first_look_is_in_the_audit_trail(town: Neighbourhood, by_hand: bool) -> None:
    elder, student, coordinator = town.elder(), town.student(10), town.coordinator()
    task_id = town.press(elder)
    if by_hand:
        town.matching.assign(coordinator, task_id, student.id)
    else:
        town.matching.accept(student, task_id)
    town.matching.task(student, task_id)
    [row] = town.all("SELECT * FROM notifications WHERE notification_type = 'AUDIT'")
    assert (row.recipient, row.subject) == (f"task:{task_id}", "matching.details_shown")
    assert row.metadata == {"taskId": str(task_id), "studentId": student.id, "elderId": elder.id}
    assert elder.name not in row.body, "ids only"
