"""The questions that the torture asks of the rows of events, planted and not."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from app.users.models import Caller, LatLon, Role
from tests.integration.realtime.conftest import written
from tests.support.matching import Neighbourhood
from tests.torture.checker import ask
from tests.torture.event_checks import TOLD, expected
from tests.torture.event_readers import EventReader
from tests.torture.people import Person

PLANTS = {
    "a position that is missing": "DELETE FROM events WHERE id = 2",
    "an event that never got a position": "INSERT INTO new_events (type) VALUES ('DUTY_CHANGED')",
    "a task that was not told exactly once": "UPDATE events SET type = 'STUDENT_SKIPPED' WHERE type = 'TASK_CREATED'",
    "a task whose last event is not its status": "DELETE FROM events WHERE type = 'TASK_CANCELLED'",
    "an offer whose end was not told exactly once": "DELETE FROM events WHERE type = 'OFFER_REJECTED'",
    "an event that comes before the one that it follows": "UPDATE events SET id = 99 WHERE type = 'TASK_CREATED'",
}


@pytest.fixture
def conn(town: Neighbourhood) -> Iterator["psycopg.Connection[Any]"]:
    url = town.services.settings.database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    with psycopg.connect(url) as connected:
        yield connected
        connected.rollback()


def test_each_wrong_row_is_found_and_nothing_if_all_is_well(
    town: Neighbourhood, conn: "psycopg.Connection[Any]"
) -> None:
    first, _ = town.students(10, 20)
    elder = town.elder(institution_id=1)
    task = town.press(elder)
    town.matching.reject(first, task)
    town.matching.cancel(elder, task)
    written(town.db)
    assert ask(conn, TOLD) == []
    for promise, plant in PLANTS.items():
        conn.execute(plant.encode())
        assert promise in {one.promise for one in ask(conn, TOLD)}, promise
        conn.rollback()


def test_who_must_have_seen_what(town: Neighbourhood, conn: "psycopg.Connection[Any]") -> None:
    student = town.student(10)
    elder, other = town.elder(institution_id=1), town.elder(institution_id=2)
    town.matching.cancel(elder, town.press(elder))
    town.matching.cancel(other, town.press(other))
    town.matching.set_availability(student, on_duty=False)
    types = {row.id: row.type.value for row in written(town.db)}

    def must_and_may(person: Caller, institution_id: int | None = None) -> tuple[int, int]:
        known = Person(person.id, "", LatLon(0, 0))
        reader = EventReader(known, Role(person.role), [1], random.Random(0), institution_id)
        found = expected(conn, reader)
        assert all(types[id_] == type_ for id_, (type_, _) in found.must.items())
        return len(found.must), len(found.may)

    assert must_and_may(town.coordinator()) == (9, 0)
    assert must_and_may(town.coordinator(institution_id=1), 1) == (4, 1)
    assert must_and_may(town.coordinator(institution_id=3), 3) == (0, 0)
    assert must_and_may(elder) == (4, 0)
    assert must_and_may(student) == (5, 0)
