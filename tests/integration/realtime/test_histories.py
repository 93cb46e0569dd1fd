"""Histories: who gets which events of those that are kept, in how many readings."""

from collections.abc import Sequence

import pytest

from app.realtime import event_log
from app.realtime.contract import EventType, Wanted
from app.realtime.event_visibility import eyes_of, is_wanted
from app.users.models import Caller
from tests.integration.realtime.conftest import written
from tests.support.matching import Neighbourhood

ALL = Wanted()
MOST = 500
MANY = 40_000
SOME_TYPES = Wanted(types=frozenset({EventType.TASK_CREATED, EventType.DUTY_CHANGED}))


def history(town: Neighbourhood, caller: Caller, wanted: Wanted = ALL, most: int = MOST) -> tuple[list[int], int]:
    """What the caller sees of everything that is kept, and how often the database was read for it."""
    with town.db.reading() as conn:
        head = event_log.bounds(conn).head
    seen, after, readings = list[int](), 0, 0
    while True:
        with town.db.transaction() as conn:
            page = event_log.read_history(conn, caller, wanted, after, head, most)
        readings += 1
        seen += [row.id for row in page.rows if is_wanted(wanted, row) and eyes_of(caller, row) is not None]
        if page.is_last or page.until is None:
            return seen, readings
        assert page.until > after
        after = page.until


def expected(town: Neighbourhood, caller: Caller, wanted: Wanted) -> list[int]:
    return [row.id for row in written(town.db) if is_wanted(wanted, row) and eyes_of(caller, row) is not None]


@pytest.fixture
def readers(town: Neighbourhood) -> Sequence[Caller]:
    """Two institutions with a task each, of which one has asked a student of the other; duty changes, and messages."""
    near, far = town.students(10, 500)
    town.run("UPDATE users SET institution_id = 2 WHERE id = :id", id=near.id)
    elders = town.elder(institution_id=1), town.elder(institution_id=2)
    staff = [town.coordinator(institution_id=institution) for institution in (1, 2, 3, None)]
    for elder in elders:
        town.matching.cancel(elder, town.press(elder))
    for person in (near, far):
        town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=person.id)
    for person in (near, *elders, *staff):
        statement = "INSERT INTO new_events (type, person_id, message_id) VALUES ('MESSAGE_ARRIVED', :id, 1)"
        town.run(statement, id=person.id)
    return near, far, *elders, *staff


@pytest.mark.parametrize("wanted", [ALL, SOME_TYPES])
@pytest.mark.parametrize("most", [1, 3, MOST])
def test_a_history_holds_what_its_reader_would_have_got_as_it_happened(
    town: Neighbourhood, readers: Sequence[Caller], wanted: Wanted, most: int
) -> None:
    lived = [expected(town, reader, wanted) for reader in readers]
    assert [history(town, reader, wanted, most)[0] for reader in readers] == lived
    assert len({tuple(ids) for ids in lived}) >= 4, "they do not see the same"


def test_a_reader_behind_many_events_of_others_reaches_the_present_in_few_readings(
    town: Neighbourhood, readers: Sequence[Caller]
) -> None:
    """500 events in each reading would be 80, which took 50 s for a million."""
    *_, elder, first, _, third, everything = readers
    before = len(written(town.db))
    town.run(
        "INSERT INTO events (id, day, type, at, person_id, elder_id)"
        " SELECT :before + n, (now() AT TIME ZONE 'UTC')::date, CASE n % 2 WHEN 0 THEN 'DUTY_CHANGED' ELSE"
        " 'TASK_CREATED' END, now(), CASE n % 2 WHEN 0 THEN CAST(:student AS bigint) END, CASE n % 2 WHEN 1 THEN"
        " CAST(:elder AS bigint) END FROM generate_series(1, :many) n",
        before=before,
        student=town.student(5000).id,
        elder=town.elder(institution_id=4).id,
        many=MANY,
    )
    town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=readers[0].id)
    with town.db.autocommit() as conn:
        last = event_log.sequence(conn, 10).head
    for reader in (first, third, everything):
        seen, readings = history(town, reader, SOME_TYPES if reader is everything else ALL)
        assert len(seen) > MANY if reader is everything else readings <= 4, readings
        assert (last in seen) == (reader is not third)
    assert history(town, everything, Wanted(types=frozenset({EventType.TASK_RESOLVED}))) == ([], 2)
    assert history(town, elder)[1] == 1
