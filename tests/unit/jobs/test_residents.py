from itertools import islice

from app.jobs.city.residents import residents
from app.jobs.city.town_plan import QUARTERS, is_on_land
from app.users.models import LatLon, Role


def test_the_same_seed_makes_the_same_people_and_more_people_only_add() -> None:
    few, many = list(residents(7, Role.STUDENT, 50)), list(residents(7, Role.STUDENT, 200))
    assert many[:50] == few
    assert list(residents(8, Role.STUDENT, 50)) != few


def test_institutions_do_not_change_the_people() -> None:
    plain, placed = (list(residents(7, Role.ELDER, 50, among)) for among in ((), (3, 4)))
    assert [(one.name, one.home) for one in plain] == [(one.name, one.home) for one in placed]
    assert {one.institution_id for one in placed} == {3, 4}


def test_nobody_lives_in_the_sea() -> None:
    assert all(is_on_land(quarter.middle) for quarter in QUARTERS)
    assert not is_on_land(LatLon(40.9750, 29.0150))  # South-west of Moda.
    assert not is_on_land(LatLon(40.9500, 29.0600))  # South of Caddebostan.
    assert all(is_on_land(one.home) for one in residents(1, Role.ELDER, 2_000))


def test_phones_are_of_no_country_plan_and_all_different() -> None:
    people = [*residents(1, Role.ELDER, 300), *residents(1, Role.STUDENT, 300)]
    assert all(one.phone.startswith("+90000") and len(one.phone) == 14 for one in people)
    assert len({one.phone for one in people}) == len(people)


def test_names_have_turkish_letters() -> None:
    assert any(letter in one.name for one in islice(residents(1, Role.ELDER, 100), 100) for letter in "şğıİçöü")
