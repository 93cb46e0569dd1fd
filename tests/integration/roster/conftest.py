"""Tests of people on lists end with a check of the promises of matching, and that nothing deadlocked."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.api.services import Services
from tests.support.listed_people import ELDERS, STUDENTS, ListedPeople
from tests.support.matching import NO_LIMITS, Neighbourhood, town_that_keeps_its_promises


@pytest.fixture
def environ() -> dict[str, Any]:
    return dict(NO_LIMITS)


@pytest.fixture
def town(services: Services) -> Iterator[Neighbourhood]:
    with town_that_keeps_its_promises(services) as built:
        yield built


@pytest.fixture
def elders(services: Services) -> ListedPeople:
    return ListedPeople(services, ELDERS)


@pytest.fixture
def students(services: Services) -> ListedPeople:
    return ListedPeople(services, STUDENTS)
