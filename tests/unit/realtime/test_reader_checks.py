"""The checker of the torture finds whatever is wrong in what a reader of events saw, and nothing if all is well."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from app.users.models import LatLon, Role
from tests.torture.event_checks import Expected, check_reader, figures
from tests.torture.event_readers import EventReader, SeenEvent
from tests.torture.fault_windows import Window
from tests.torture.people import Person

CAME_AT, CONNECTED_AT = 1_000_010.0, 1_000_000.0
WRITTEN = datetime.fromtimestamp(CAME_AT - 0.25, UTC).isoformat()
KNOWN = Expected({4: ("TASK_CREATED", "t"), 7: ("TASK_OFFERED", "t"), 9: ("TASK_ASSIGNED", "t")}, frozenset({8}))


def seen(id_: int, type_: str, **more: Any) -> SeenEvent:
    fields = {"id": id_, "type": type_, "taskId": "t", "at": WRITTEN, **more}
    return SeenEvent(id_, fields, CAME_AT, CONNECTED_AT)


@pytest.fixture
def reader() -> EventReader:
    one = EventReader(Person(3, "", LatLon(0, 0)), Role.ELDER, [1], random.Random(0))
    one.seen = [seen(4, "TASK_CREATED"), seen(7, "TASK_OFFERED", studentName="Ahmet"), seen(9, "TASK_ASSIGNED")]
    return one


def test_nothing_is_found_if_all_is_well(reader: EventReader) -> None:
    assert check_reader(KNOWN, reader) == []
    reader.seen.insert(2, seen(8, "DUTY_CHANGED"))
    assert check_reader(KNOWN, reader) == []


PLANTS: dict[str, Callable[[EventReader], object]] = {
    "an event that a reader missed": lambda reader: reader.seen.pop(1),
    "an event that a reader must not see": lambda reader: reader.seen.append(seen(11, "TASK_CREATED")),
    "an event that came twice or out of order": lambda reader: reader.seen.insert(1, reader.seen[0]),
    "an event that differs from its row": lambda reader: reader.seen.__setitem__(1, seen(7, "TASK_REOFFERED")),
    "a field that a reader must not see": lambda reader: reader.seen.__setitem__(0, seen(4, "TASK_CREATED", elderId=3)),
    "an answer that a reader must not get": lambda reader: reader.wrong.append("410"),
}


@pytest.mark.parametrize("promise", PLANTS)
def test_what_is_wrong_is_found(reader: EventReader, promise: str) -> None:
    PLANTS[promise](reader)
    assert [one.promise for one in check_reader(KNOWN, reader)] == [promise]


@pytest.mark.parametrize("shown", [{"studentId": 5}, {"studentName": "Ahmet Yılmaz"}, {"studentName": "+905550000001"}])
def test_an_elder_learns_of_a_student_who_is_asked_only_the_first_name(
    reader: EventReader, shown: dict[str, Any]
) -> None:
    reader.seen[1] = seen(7, "TASK_OFFERED", **shown)
    assert [one.promise for one in check_reader(KNOWN, reader)] == ["a field that a reader must not see"]


def test_lateness_is_that_of_open_streams_outside_faults(reader: EventReader) -> None:
    assert figures([reader], []).late_most_s == pytest.approx(0.25)
    assert figures([reader], [Window("x", CAME_AT - 1, CAME_AT)]).late_most_s == 0
    reader.seen = [SeenEvent(one.id, one.fields, one.came_at, CAME_AT) for one in reader.seen]
    assert figures([reader], []).late_most_s == 0, "what came after a break was waited for"
