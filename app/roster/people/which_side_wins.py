"""Decides what follows for one person: pure, from the row of the list and from the user as they are now.

The list always has the last word about the name and the institution. It changes any other value only if the user still
has the one that the list gave last, so what the person or a coordinator has changed stays.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from app.roster.lists.field_values import turkish_lower
from app.users.models import LatLon

Value = TypeVar("Value")

LONGEST_NUMBER = 18
"""Digits of an institution's number that fit into a bigint."""


@dataclass(frozen=True)
class PersonValues:
    """What a list and a user both have. A kind with a role has columns of these names."""

    name: str
    phone: str | None = None
    locale: str = "tr"
    institution_id: int | None = None
    home: LatLon | None = None


NOTHING_GIVEN = PersonValues("")
"""By a list that has not named the person before."""


@dataclass(frozen=True)
class KnownUser:
    id: int
    version: int
    """Of the row, so that a change that comes in between is noticed."""
    active: bool
    values: PersonValues


@dataclass(frozen=True)
class QueuedPerson:
    identifier: str
    run_id: int
    """Of the run that changed the row last."""
    row: PersonValues | None
    """None if the list does not have the person any more."""
    given: PersonValues | None
    """What the list gave last; None for a person who was never bound to a user."""
    in_service: bool
    user: KnownUser | None
    """The user to whom the person is bound."""
    same_phone: Sequence[KnownUser] = ()
    """Users of the same role and phone who are bound to nobody."""


class Follows(StrEnum):
    CREATED = "CREATED"
    BOUND = "BOUND"
    """To a user who was entered by hand."""
    UPDATED = "UPDATED"
    RETURNED = "RETURNED"
    LEFT = "LEFT"
    """Is deactivated; tasks and offers come next."""
    GONE = "GONE"
    """Has left before, or was never seen; only tasks and offers may be left."""


@dataclass(frozen=True)
class WhatFollows:
    person: QueuedPerson
    follows: Follows
    user: KnownUser | None = None
    values: PersonValues = NOTHING_GIVEN
    """That the user gets."""
    given: PersonValues = NOTHING_GIVEN
    """That is kept for the next time."""
    kept: int = 0
    """Changes of the list that gave way to what the user has."""

    @property
    def active(self) -> bool:
        stays = self.user is not None and self.user.active and self.follows is not Follows.LEFT
        return stays or self.follows is Follows.RETURNED

    @property
    def is_changed(self) -> bool:
        # A user who is bound is written also if nothing differs, so that nobody else binds them at the same time.
        if self.user is None or self.follows is Follows.BOUND:
            return True
        return (self.values, self.active) != (self.user.values, self.user.active)


def decide_all(people: Sequence[QueuedPerson]) -> list[WhatFollows]:
    taken: set[int] = set()
    decided: list[WhatFollows] = []
    for person in people:
        decided.append(_decide(person, taken))
        if (user := decided[-1].user) is not None:
            taken.add(user.id)
    return decided


def _decide(person: QueuedPerson, taken: Collection[int]) -> WhatFollows:
    if person.row is None:
        return WhatFollows(person, Follows.LEFT if person.in_service else Follows.GONE, person.user)
    if person.user is not None:
        given = person.given or NOTHING_GIVEN
        return _merge(
            person, Follows.UPDATED if person.in_service else Follows.RETURNED, person.user, person.row, given
        )
    by_hand = _entered_by_hand(person.row, person.same_phone, taken)
    if by_hand is not None:
        return _merge(person, Follows.BOUND, by_hand, person.row, NOTHING_GIVEN)
    return WhatFollows(person, Follows.CREATED, values=person.row, given=person.row)


def _entered_by_hand(row: PersonValues, same_phone: Sequence[KnownUser], taken: Collection[int]) -> KnownUser | None:
    """Two users of this name and phone may be father and son, so neither is chosen."""
    name = turkish_lower(row.name)
    same = [user for user in same_phone if user.id not in taken and turkish_lower(user.values.name) == name]
    return same[0] if len(same) == 1 else None


def _merge(
    person: QueuedPerson, follows: Follows, user: KnownUser, row: PersonValues, given: PersonValues
) -> WhatFollows:
    own = user.values
    # A row without a place, or without an institution, leaves what there is.
    row = replace(row, home=row.home or given.home)
    institution_id = own.institution_id if row.institution_id is None else row.institution_id
    phone, kept_phone = _pick(own.phone, row.phone, given.phone)
    locale, kept_locale = _pick(own.locale, row.locale, given.locale)
    home, kept_home = _pick(own.home, row.home, given.home)
    values = PersonValues(row.name, phone, locale, institution_id, home)
    return WhatFollows(person, follows, user, values, row, kept_phone + kept_locale + kept_home)


def _pick(own: Value, row: Value, given: Value) -> tuple[Value, bool]:
    """The value that the user gets, and whether a change of the list gave way to it."""
    return (row, False) if own in (given, row) else (own, row != given)


def listed_values(fields: Mapping[str, Any], aliases: Sequence[Mapping[str, Any]]) -> PersonValues:
    return PersonValues(
        fields["name"],
        fields.get("phone"),
        fields.get("locale") or "tr",
        _smallest_institution(aliases),
        place(fields.get("home")),
    )


def _smallest_institution(aliases: Sequence[Mapping[str, Any]]) -> int | None:
    numbers = [one["alias"] for one in aliases]
    return min((int(one) for one in numbers if one.isdecimal() and len(one) <= LONGEST_NUMBER), default=None)


def place(found: Mapping[str, float] | None) -> LatLon | None:
    return None if found is None else LatLon(found["lat"], found["lon"])
