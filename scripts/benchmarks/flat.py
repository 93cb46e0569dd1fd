"""The same work in a database with ten thousand finished tasks and in one with five million."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection as AppConnection

from app.delivery.messages import claims
from app.delivery.messages.values import NotificationType
from app.delivery.role import FOLLOWERS
from app.foundation.ids import uuid7
from app.matching import cascade
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.stores import Store
from app.users.contract import EVERYTHING
from app.users.models import LatLon
from benchmarks import city, history
from benchmarks.attempts import keeping
from benchmarks.bench import TIME_ZONE, Bench, fetch, run, say
from benchmarks.figures import in_turns, spread
from benchmarks.report import Row, Section

BATCH = 200
GOAL = 1.5
TITLE = (
    "flat: ms, p50 / p99, in a database with {many:,} finished tasks; floor: the same with {few:,}. Each in a"
    " transaction that is rolled back"
)


@dataclass(frozen=True)
class Filled:
    """A database with its history, and the tasks that are due in it."""

    conn: AppConnection
    due: Sequence[UUID]
    lists: cascade.Lists
    busiest_elder: int
    students: Sequence[int]

    @property
    def store(self) -> Store:
        return Store(self.conn)


def measure(bench: Bench) -> Section:
    size = bench.size(1_000_000, 10_000)
    few, many = bench.size(10_000, 100), bench.size(5_000_000, 20_000)
    template = f"city_{size}"
    built = city.find_or_build(bench, template, size)
    with bench.connect(template) as conn:
        spots = city.spots(conn, built, bench.size(40, 5))
        due = _make_due(conn, bench.size(BATCH, 20))
    for database, finished in (("flat_few", few), ("flat_many", many)):
        bench.copy(template, database)
        history.add_finished_tasks(bench, database, built, finished)
    title = TITLE.format(few=few, many=many)
    notes = ["Each finished task has 1.5 offers on average and two notifications."]
    rows: list[Row] = []
    with (
        keeping(lambda: Section("flat", title, rows, notes)),
        bench.database("flat_few") as few_db,
        bench.database("flat_many") as many_db,
        few_db.engine.connect() as few_conn,
        many_db.engine.connect() as many_conn,
    ):
        databases = {"few": _filled(few_conn, due), "many": _filled(many_conn, due)}
        for name, act, items, passes in _measurements(spots, bench.size(25, 1)):
            rows.append(_row(bench, name, act, databases, items, passes))
    bench.drop("flat_few", "flat_many")
    return Section("flat", title, rows, notes)


Act = Callable[[Filled, Any], Any]


def _measurements(spots: Sequence[LatLon], passes: int) -> list[tuple[str, Act, Sequence[Any], int]]:
    once = [None]
    return [
        ("candidates: the first 50", _candidates, spots, passes),
        ("deadlines: 200 due offers settled", _settle, once, 2 * passes),
        ("deadlines: the sweep for due tasks", _sweep, once, 20 * passes),
        ("counts: a student's month", _count_month, range(20), 2 * passes),
        ("counts: an elder's newest tasks", _count_newest, once, 40 * passes),
        ("delivery: the next 200 notifications", _claim, once, 10 * passes),
    ]


def _row(bench: Bench, name: str, act: Act, databases: dict[str, Filled], items: Sequence[Any], passes: int) -> Row:
    say(f"flat: {name}")

    def on(filled: Filled) -> Callable[[Any], None]:
        def once(item: Any) -> None:
            act(filled, item)
            filled.conn.rollback()

        return once

    samples = in_turns({key: on(filled) for key, filled in databases.items()}, items, passes)
    few, many = spread(samples["few"]), spread(samples["many"])
    met = None if bench.quick else many.p50 <= GOAL * few.p50
    return Row(name, many, few, goal=f"at most {GOAL:.1f}x", met=met)


def _candidates(filled: Filled, spot: LatLon) -> None:
    filled.store.rank(uuid7(), spot, RULES)


def _settle(filled: Filled, _item: None) -> None:
    settled = cascade.settle(filled.store, filled.due, filled.lists, RULES, skip_locked=True)
    offered = settled.follow_up().figures.offered
    assert offered == len(filled.due), f"{offered} offers for {len(filled.due)} due tasks"


def _sweep(filled: Filled, _item: None) -> None:
    assert len(filled.store.due_tasks(1_000)) == len(filled.due)


def _count_month(filled: Filled, turn: int) -> None:
    filled.store.count_completed(filled.students[turn], TIME_ZONE)


def _count_newest(filled: Filled, _item: None) -> None:
    filled.store.lock_elder_later(filled.busiest_elder, EVERYTHING, None, 20)()


def _claim(filled: Filled, _item: None) -> None:
    assert len(claims.claim(filled.conn, NotificationType.PUSH, 200, 30.0, followers=FOLLOWERS).taken) == 200


RULES = MatchingRules(radius_m=city.RADIUS_M)

DUE = """
SELECT t.id, ST_Y(t.location::geometry), ST_X(t.location::geometry) FROM tasks t
WHERE t.status = 'PENDING' ORDER BY md5(t.id::text) LIMIT %s
"""
MAKE_DUE = """
WITH over AS (UPDATE offers SET deadline = clock_timestamp() WHERE task_id = ANY(%(ids)s) AND state = 'PENDING')
UPDATE tasks SET next_step_at = clock_timestamp() WHERE id = ANY(%(ids)s)
"""
NOTIFY = """
INSERT INTO notifications (id, notification_type, recipient, recipient_user_id, subject, body)
SELECT gen_random_uuid(), 'PUSH', 'user:' || id, id, '', '' FROM students WHERE id <= 400
"""
BUSIEST = "SELECT elder_id FROM tasks GROUP BY elder_id ORDER BY count(*) DESC LIMIT 1"


def _make_due(conn: Any, how_many: int) -> list[tuple[UUID, LatLon]]:
    found = fetch(conn, DUE, [how_many])
    run(conn, MAKE_DUE, {"ids": [row[0] for row in found]})
    run(conn, NOTIFY)
    time.sleep(0.01)
    return [(row[0], LatLon(row[1], row[2])) for row in found]


def _filled(conn: AppConnection, due: Sequence[tuple[UUID, LatLon]]) -> Filled:
    lists = {
        task_id: [item.student_id for item in Store(conn).rank(task_id, spot, RULES).candidates]
        for task_id, spot in due
    }
    busiest: Any = conn.exec_driver_sql(BUSIEST).scalar_one()
    some = [row[0] for row in conn.exec_driver_sql("SELECT id FROM students ORDER BY md5(id::text) LIMIT 20")]
    conn.rollback()
    return Filled(conn, sorted(task_id for task_id, _ in due), cascade.Lists(lists), busiest, some)
