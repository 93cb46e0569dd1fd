"""Which side wins, for each field: the list, or what the person and the coordinators have entered."""

from dataclasses import replace
from typing import Any

import pytest

from app.roster.lists.field_values import turkish_lower
from app.roster.people.which_side_wins import (
    Follows,
    KnownUser,
    PersonValues,
    QueuedPerson,
    WhatFollows,
    decide_all,
    listed_values,
)
from app.users.models import LatLon

HOME, NEW_HOME, OWN_HOME = LatLon(40.98, 29.02), LatLon(40.99, 29.03), LatLon(41.0, 29.04)
GIVEN = PersonValues("Ayşe Yılmaz", "+905550000001", "tr", 34, HOME)


def known(values: PersonValues, id_: int = 7, *, active: bool = True) -> KnownUser:
    return KnownUser(id_, 1, active, values)


def queued(
    row: PersonValues | None,
    given: PersonValues | None = GIVEN,
    user: KnownUser | None = None,
    *,
    in_service: bool = True,
    same_phone: tuple[KnownUser, ...] = (),
    identifier: str = "10000000146",
) -> QueuedPerson:
    return QueuedPerson(identifier, 1, row, given, in_service, user, same_phone)


def decide(person: QueuedPerson) -> WhatFollows:
    (decided,) = decide_all([person])
    return decided


def brought(user: dict[str, Any], row: dict[str, Any]) -> WhatFollows:
    """The user has changed some values since the list gave them, and now the list changes some."""
    return decide(queued(replace(GIVEN, **row), GIVEN, known(replace(GIVEN, **user))))


@pytest.mark.parametrize(
    ("field", "own", "listed", "wins"),
    [
        ("name", "Ayşe Yılmaz", "Ayşe Kaya", "Ayşe Kaya"),
        ("name", "Ayşe Hanım", "Ayşe Kaya", "Ayşe Kaya"),
        ("name", "Ayşe Hanım", "Ayşe Yılmaz", "Ayşe Yılmaz"),
        ("institution_id", 34, 35, 35),
        ("institution_id", 6, 35, 35),
        ("institution_id", 6, 34, 34),
        ("institution_id", 6, None, 6),
        ("phone", "+905550000001", "+905550000002", "+905550000002"),
        ("phone", "+905550000001", None, None),
        ("phone", "+905559999999", "+905550000002", "+905559999999"),
        ("phone", None, "+905550000002", None),
        ("phone", "+905559999999", "+905550000001", "+905559999999"),
        ("locale", "tr", "en", "en"),
        ("locale", "en", "tr", "en"),
        ("home", HOME, NEW_HOME, NEW_HOME),
        ("home", HOME, None, HOME),
        ("home", OWN_HOME, NEW_HOME, OWN_HOME),
        ("home", OWN_HOME, None, OWN_HOME),
        ("home", None, NEW_HOME, None),
    ],
)
def test_which_side_wins(field: str, own: Any, listed: Any, wins: Any):
    decided = brought({field: own}, {field: listed})
    assert decided.follows is Follows.UPDATED
    assert decided.values == replace(GIVEN, **{field: wins})


def test_a_change_that_gave_way_is_counted_once():
    decided = brought({"phone": "+905559999999", "home": OWN_HOME}, {"phone": "+905550000002"})
    assert decided.kept == 1
    assert decided.given.phone == "+905550000002"
    again = decide(queued(decided.person.row, decided.given, known(decided.values)))
    assert (again.kept, again.is_changed) == (0, False)


def test_a_home_moves_also_after_a_row_that_had_no_place():
    without = brought({}, {"home": None})
    assert without.given.home == HOME
    with_place = decide(queued(replace(GIVEN, home=NEW_HOME), without.given, known(without.values)))
    assert with_place.values.home == NEW_HOME


def test_somebody_whom_an_admin_deactivated_stays_so_while_the_list_names_them():
    inactive = known(GIVEN, active=False)
    changed = replace(GIVEN, name="Ayşe Kaya")
    assert decide(queued(changed, GIVEN, inactive)).active is False
    returned = decide(queued(changed, GIVEN, inactive, in_service=False))
    assert (returned.follows, returned.active, returned.is_changed) == (Follows.RETURNED, True, True)


def test_who_is_not_on_the_list_leaves_once():
    assert decide(queued(None, GIVEN, known(GIVEN))).follows is Follows.LEFT
    assert decide(queued(None, GIVEN, known(GIVEN), in_service=False)).follows is Follows.GONE
    assert decide(queued(None, None, None, in_service=False)).follows is Follows.GONE


# ---- people who were entered by hand ----

BY_HAND = PersonValues("ışıl IRMAK", GIVEN.phone, "en", None, OWN_HOME)


def test_a_user_with_this_name_and_phone_is_bound_and_keeps_what_is_theirs():
    row = replace(GIVEN, name="Işıl Irmak")
    decided = decide(queued(row, None, None, in_service=False, same_phone=(known(BY_HAND),)))
    assert (decided.follows, decided.user) == (Follows.BOUND, known(BY_HAND))
    assert decided.values == PersonValues("Işıl Irmak", GIVEN.phone, "en", 34, OWN_HOME)
    assert decided.is_changed


@pytest.mark.parametrize(
    "same_phone",
    [
        (),
        (known(replace(BY_HAND, name="Işıl Irmakoğlu")),),
        (known(replace(BY_HAND, name="İşil Irmak")),),
        (known(BY_HAND, 7), known(BY_HAND, 8)),
    ],
    ids=["nobody", "another name", "another letter", "two people"],
)
def test_nobody_is_bound_in_doubt(same_phone: tuple[KnownUser, ...]):
    row = replace(GIVEN, name="Işıl Irmak")
    assert decide(queued(row, None, None, in_service=False, same_phone=same_phone)).follows is Follows.CREATED


def test_father_and_son_of_one_name_and_phone_are_two_people():
    row = replace(GIVEN, name="Işıl Irmak")
    people = [queued(row, None, None, same_phone=(known(BY_HAND),), identifier=one) for one in ("1", "2")]
    assert [one.follows for one in decide_all(people)] == [Follows.BOUND, Follows.CREATED]


# ---- rows ----


def test_the_smallest_number_is_the_institution():
    aliases = [{"alias": one, "type": "ENROLMENT"} for one in ("1000", "34", "gündüz", "99999999999999999999")]
    assert listed_values({"name": "Ayşe"}, aliases).institution_id == 34
    assert listed_values({"name": "Ayşe"}, []).institution_id is None


def test_a_row_without_a_locale_is_turkish():
    assert listed_values({"name": "Ayşe", "locale": None, "phone": None, "home": None}, []) == PersonValues("Ayşe")


@pytest.mark.parametrize(("name", "lower"), [("İIiı", "iıiı"), ("ÇĞÖŞÜ", "çğöşü"), ("IŞIK", "ışık")])
def test_lower_case_is_turkish(name: str, lower: str):
    assert turkish_lower(name) == lower
