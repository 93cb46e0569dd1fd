"""Positions: in the order of commits, without gaps and without repeats, whoever gives them."""

import threading
from collections.abc import Callable

from sqlalchemy import Connection, text

from app.api.services import Services
from app.db.days import add_days, drop_days
from app.db.months import partition_names
from app.realtime import event_log
from app.realtime.event_days import EventDays
from app.realtime.models import DAILY
from tests.integration.realtime.conftest import types, written
from tests.support.matching import Neighbourhood

STEP = 1000
"""Of the migration."""


def test_a_transaction_that_commits_late_gets_a_later_position(town: Neighbourhood) -> None:
    first, second = town.students(10, 20)
    with town.db.transaction() as conn:
        conn.execute(text("UPDATE students SET on_duty = false WHERE id = :id"), {"id": first.id})
        town.run("UPDATE students SET on_duty = false WHERE id = :id", id=second.id)
        assert [(row.id, row.person_id) for row in written(town.db)] == [(1, second.id)]
    assert [(row.id, row.person_id) for row in written(town.db)] == [(1, second.id), (2, first.id)]


def test_two_that_give_positions_at_once_give_each_position_once_and_in_order(town: Neighbourhood) -> None:
    """Each writer changes one student again and again, so that the order of its events is known."""
    students = town.students(10, 20, 30)
    stop, errors = threading.Event(), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            errors.append(error)

    def sequence() -> None:
        with town.db.autocommit() as conn:
            event_log.sequence(conn, 3)

    def toggle(id_: int) -> Callable[[], None]:
        return lambda: town.run("UPDATE students SET on_duty = NOT on_duty WHERE id = :id", id=id_)

    works = [sequence, sequence, sequence, *(toggle(student.id) for student in students)]
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    while town.one("SELECT count(*) AS n FROM events").n < 300 and not errors:
        continue
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    rows = written(town.db)
    assert [row.id for row in rows] == list(range(1, len(rows) + 1))
    for student in students:
        duty = [row.on_duty for row in rows if row.person_id == student.id]
        assert duty == [number % 2 == 1 for number in range(len(duty))], "the events of one row are in their order"
        assert len(duty) > 10


def test_events_of_one_task_stay_in_order_when_their_transactions_are_apart(town: Neighbourhood) -> None:
    town.student(10)
    task = town.press()
    with town.db.autocommit() as conn:
        while event_log.sequence(conn, 1).moved:
            continue
    town.matching.cancel(town.coordinator(), task)
    assert types(written(town.db)) == ["TASK_CREATED", "TASK_OFFERED", "OFFER_WITHDRAWN", "TASK_CANCELLED"]


def write(conn: Connection, person_id: int, drafts: int) -> None:
    statement = "INSERT INTO new_events (type, person_id) SELECT 'DUTY_CHANGED', :id FROM generate_series(1, :drafts)"
    conn.execute(text(statement), {"id": person_id, "drafts": drafts})


def test_drafts_that_were_moved_are_not_passed_again_while_a_transaction_is_open(town: Neighbourhood) -> None:
    """They cannot be removed before it ends. Without this, each look passes all of them."""
    with town.db.transaction() as reader:
        reader.execute(text("SELECT count(*) FROM users"))
        with town.db.transaction() as writer:
            write(writer, 1, 1)
            for _ in range(3):
                with town.db.autocommit() as conn:
                    write(conn, 2, STEP)
                    event_log.sequence(conn, STEP)
            assert town.one("SELECT settled FROM event_positions").settled == 0, "the first draft is to come"
        for _ in range(3):
            with town.db.autocommit() as conn:
                write(conn, 2, STEP)
                event_log.sequence(conn, 10 * STEP)
        row = town.one("SELECT settled, (SELECT count(*) FROM new_events) AS left FROM event_positions")
        assert (row.settled, row.left) == (6 * STEP + 1, 0)
    rows = written(town.db)
    assert [row.id for row in rows] == list(range(1, 6 * STEP + 2))
    assert [row.id for row in rows if row.person_id == 1] == [3 * STEP + 1]


def test_days_are_added_and_dropped(services: Services, town: Neighbourhood) -> None:
    town.run("INSERT INTO events (id, day, type, at) SELECT 1, DATE '2020-03-01', 'DUTY_CHANGED', now()")
    with services.db.reading() as conn:
        conn.execute(text("SELECT add_partition('events', '2020_03_02', ARRAY['2020-03-02', '2020-03-03'], '')"))
    assert drop_days(services.db, DAILY, 7) == ["events_2020_03_02"]
    assert town.one("SELECT count(*) AS n FROM events").n == 0
    with services.db.reading() as conn:
        last = max(partition_names(conn, "events"))
        conn.execute(text(f"SELECT drop_partition('{sorted(partition_names(conn, 'events'))[-2]}')"))
    assert last == "events_default"
    added = add_days(services.db, DAILY)
    assert len(added) == 1
    assert add_days(services.db, DAILY) == []


def test_positions_are_never_given_twice_even_if_all_events_were_deleted(
    services: Services, town: Neighbourhood
) -> None:
    town.press()
    last = written(town.db)[-1].id
    EventDays(services.db, 7).turn()
    town.run("DELETE FROM events")
    town.press()
    assert next(row.id for row in written(town.db)) == last + 1
