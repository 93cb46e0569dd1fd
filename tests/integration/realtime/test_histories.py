"""Histories: who gets which events of those that are kept, and in how many readings."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from app.realtime import event_log
from app.realtime.contract import EventType, Wanted
from app.realtime.event_history import SHARED_FOR_S, EventHistory
from app.realtime.event_stream import Block, EventStream
from app.realtime.event_visibility import eyes_of, is_wanted
from app.users.models import Caller
from tests.integration.realtime.conftest import written
from tests.support.matching import Neighbourhood

ALL = Wanted()
MANY = 40_000
NOW = datetime(2026, 11, 20, tzinfo=UTC)
SOME_TYPES = Wanted(types=frozenset({EventType.TASK_CREATED, EventType.DUTY_CHANGED}))


async def no_page(_stream: EventStream, _after: int) -> tuple[Sequence[Block], int | None]:
    return [], None


def read(history: EventHistory, caller: Caller, head: int, wanted: Wanted = ALL) -> tuple[list[int], int]:
    """What the caller sees of everything that is kept, and in how many pages."""
    stream = EventStream(caller, "", wanted, 0, read_page=no_page, now=lambda: NOW, on_close=lambda _: None)
    stream.begin_at(head)
    seen: list[int] = []
    after: int | None = 0
    pages = 0
    while after is not None and after < head:
        blocks, reached = history.page(stream, after)
        assert reached is None or reached > after
        seen += [id_ for id_, _ in blocks]
        after, pages = reached, pages + 1
    return seen, pages


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
def test_a_history_holds_what_its_reader_would_have_got_as_it_happened(
    town: Neighbourhood, readers: Sequence[Caller], wanted: Wanted
) -> None:
    lived = [expected(town, reader, wanted) for reader in readers]
    history, head = EventHistory(town.db), len(written(town.db))
    assert [read(history, reader, head, wanted)[0] for reader in readers] == lived
    assert len({tuple(ids) for ids in lived}) >= 4, "they do not see the same"


def test_coordinators_of_an_institution_share_what_was_read_for_a_moment(
    town: Neighbourhood, readers: Sequence[Caller]
) -> None:
    now = [0.0]
    history, head = EventHistory(town.db, lambda: now[0]), len(written(town.db))
    first, colleague = readers[4], town.coordinator(institution_id=1)
    seen, _ = read(history, first, head)
    of_messages = [row.id for row in written(town.db) if row.type is EventType.MESSAGE_ARRIVED]
    town.run("UPDATE events SET type = 'MESSAGE_ARRIVED' WHERE type <> 'MESSAGE_ARRIVED'")
    shared = [id_ for id_ in seen if id_ not in of_messages]
    assert len(shared) < len(seen), "messages are of one person"
    assert read(history, colleague, head - 1)[0] == shared, "although its end is earlier"
    assert read(history, colleague, head, SOME_TYPES)[0] == []
    now[0] = SHARED_FOR_S
    assert read(history, colleague, head)[0] == []


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
    assert last == before + MANY + 1
    history = EventHistory(town.db)
    for reader in (elder, first, third):
        seen, pages = read(history, reader, last)
        assert pages <= 3
        assert (last in seen) == (reader is first)
    fourth, _ = read(history, town.coordinator(institution_id=4), last)
    assert fourth == list(range(before + 1, last, 2))
    seen, _ = read(history, everything, last, SOME_TYPES)
    assert seen[-MANY - 1 :] == list(range(before + 1, last + 1))
    assert read(history, everything, last, Wanted(types=frozenset({EventType.TASK_RESOLVED}))) == ([], 2)
