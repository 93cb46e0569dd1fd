"""SQL texts that go straight to the driver behave as SQLAlchemy's do."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, literal, select, text
from sqlalchemy.exc import DataError, IntegrityError, MultipleResultsFound, NoResultFound

from app.db.database import Database

NUMBERS = text("SELECT n, 'x' || n AS name FROM generate_series(1, :last) n ORDER BY n")


@pytest.fixture(params=["plain", "sqlalchemy"])
def conn(request: pytest.FixtureRequest, db: Database) -> Iterator[Connection]:
    if request.param == "plain":
        with db.transaction() as conn:
            yield conn
    else:
        with db.engine.connect() as conn:
            yield conn


def test_rows_by_name_by_place_and_as_mappings(conn: Connection) -> None:
    rows = conn.execute(NUMBERS, {"last": 2}).all()
    assert [(row.n, row.name, row[0], tuple(row)) for row in rows] == [(1, "x1", 1, (1, "x1")), (2, "x2", 2, (2, "x2"))]
    mappings = conn.execute(NUMBERS, {"last": 1}).mappings()
    assert [dict(row) for row in mappings] == [{"n": 1, "name": "x1"}]
    assert conn.execute(NUMBERS, {"last": 3}).scalars().all() == [1, 2, 3]
    assert [n for n, _ in conn.execute(NUMBERS, {"last": 2})] == [1, 2]


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (lambda rows: rows.one_or_none(), [None, (1, "x1"), MultipleResultsFound]),
        (lambda rows: rows.one(), [NoResultFound, (1, "x1"), MultipleResultsFound]),
        (lambda rows: rows.first(), [None, (1, "x1"), (1, "x1")]),
        (lambda rows: rows.scalar(), [None, 1, 1]),
        (lambda rows: rows.scalar_one(), [NoResultFound, 1, MultipleResultsFound]),
        (lambda rows: rows.scalar_one_or_none(), [None, 1, MultipleResultsFound]),
    ],
)
def test_a_number_of_rows_is_expected(conn: Connection, read: Callable[[Any], Any], found: list[Any]) -> None:
    for last, expected in enumerate(found):
        rows = conn.execute(NUMBERS, {"last": last})
        if isinstance(expected, type):
            with pytest.raises(expected):
                read(rows)
        else:
            assert read(rows) == expected


def test_colons_percents_and_columns_that_share_a_name(conn: Connection) -> None:
    statement = text(r"""SELECT lower('A'), lower('B'), '5%' LIKE '%\%', :x ::text, '{"a"\:1}'::json ->> 'a'""")
    assert tuple(conn.execute(statement, {"x": "%(y)s", "unused": 1}).one()) == ("a", "b", True, "%(y)s", "1")
    assert conn.execute(text("SELECT 100 % 7")).scalar_one() == 2
    assert conn.execute(select(literal(3))).scalar_one() == 3


def test_statements_without_rows_are_counted(conn: Connection) -> None:
    created = conn.execute(text("CREATE TEMPORARY TABLE counted (id int PRIMARY KEY) ON COMMIT DROP"))
    assert not created.returns_rows
    many = conn.execute(text("INSERT INTO counted VALUES (:id)"), [{"id": 1}, {"id": 2}])
    assert many.rowcount == 2
    assert conn.execute(text("UPDATE counted SET id = id + 10")).rowcount == 2
    assert conn.execute(text("SELECT FROM counted")).all() == [(), ()]


def test_errors_have_their_classes_and_are_told_to_listeners(db: Database) -> None:
    told: list[Any] = []

    def note(context: Any) -> None:
        told.append(context.original_exception)

    event.listen(Engine, "handle_error", note)
    try:
        with pytest.raises(DataError), db.transaction() as conn:
            conn.execute(text("SELECT 1 / :zero"), {"zero": 0})
        with pytest.raises(IntegrityError), db.transaction() as conn:
            conn.execute(text("INSERT INTO users (role, name) VALUES ('NOBODY', 'x')"))
    finally:
        event.remove(Engine, "handle_error", note)
    assert [error.sqlstate for error in told] == ["22012", "23514"]
