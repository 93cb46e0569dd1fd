from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from app.foundation.copies import changed


@dataclass(frozen=True)
class Place:
    name: str
    about: dict[str, Any] = field(default_factory=dict[str, Any])


def test_copy_differs_in_the_given_fields_only() -> None:
    place = Place("Fatih", {"metres": 5})
    copy = changed(place, name="Kadıköy")
    assert copy == replace(place, name="Kadıköy")
    assert place == Place("Fatih", {"metres": 5})


def test_copy_is_as_frozen_as_its_original() -> None:
    with pytest.raises(FrozenInstanceError):
        changed(Place("Fatih")).name = "Kadıköy"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
