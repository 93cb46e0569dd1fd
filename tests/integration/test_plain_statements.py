"""SQL texts that go straight to the driver behave as SQLAlchemy's do."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, TextClause, event, literal, select, text
from sqlalchemy.exc import DataError, IntegrityError, MultipleResultsFound, NoResultFound, OperationalError

from app.db.database import Database, DatabaseUnavailable, driver
from app.db.plain_statements import PlainConnection

EXECUTE = PlainConnection.execute
NUMBERS = text("SELECT n, 'x' || n AS name FROM generate_series(1, :last) n ORDER BY n")


@pytest.fixture(params=["plain", "prepared", "sqlalchemy"])
def conn(request: pytest.FixtureRequest, db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    if request.param == "plain":
        with db.transaction() as conn:
            yield conn
    elif request.param == "prepared":
        monkeypatch.setattr(PlainConnection, "execute", execute_thrice)
        with db.transaction() as conn:
            yield conn
    else:
        with db.engine.connect() as conn:
            yield conn


def execute_thrice(self: PlainConnection, statement: Any, parameters: Any = None, **options: Any) -> Any:
    """The driver prepares a statement when it comes for the second time."""
    if isinstance(statement, TextClause) and statement.text.lstrip().startswith("SELECT"):
        for _ in range(2):
            EXECUTE(self, statement, parameters, **options)
        with no_cursors(self):
            return EXECUTE(self, statement, parameters, **options)
    return EXECUTE(self, statement, parameters, **options)


@contextmanager
def no_cursors(conn: Connection) -> Iterator[None]:
    """Prepared statements need none."""
    connection = driver(conn)
    connection.cursor_factory = None
    try:
        yield
    finally:
        connection.cursor_factory = psycopg.Cursor


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


def test_a_transaction_begins_with_its_first_statement_also_if_that_is_prepared(db: Database) -> None:
    insert = text("INSERT INTO users (role, name) VALUES ('ADMIN', :name)")
    for name in ("one", "two", "three"):
        with db.transaction() as conn:
            conn.execute(insert, {"name": name})
    with pytest.raises(RuntimeError), db.transaction() as conn, no_cursors(conn):
        conn.execute(insert, {"name": "rolled back"})
        raise RuntimeError
    with db.reading() as conn:
        names = conn.execute(text("SELECT name FROM users WHERE role = 'ADMIN'")).scalars().all()
    assert names == ["one", "two", "three"]


def test_a_prepared_statement_that_fails_can_be_repeated(db: Database) -> None:
    divide = text("SELECT 1 / :by")
    for _ in range(3):
        with db.transaction() as conn:
            assert conn.execute(divide, {"by": 1}).scalar_one() == 1
    for first_statement in (True, False):
        with pytest.raises(DataError), db.transaction() as conn:
            if not first_statement:
                conn.execute(text("SELECT 1"))
            conn.execute(divide, {"by": 0})
        with db.transaction() as conn:
            assert conn.execute(divide, {"by": 1}).scalar_one() == 1


def test_a_prepared_statement_follows_a_table_that_changes(db: Database) -> None:
    select_all = text("SELECT * FROM changed")
    with db.autocommit() as conn:
        conn.execute(text("CREATE TABLE changed AS SELECT 1 AS a"))
        for _ in range(3):
            conn.execute(select_all)
        conn.execute(text("ALTER TABLE changed ADD COLUMN b int DEFAULT 2"))
        assert tuple(conn.execute(select_all).one()) == (1, 2)
        conn.execute(text("DROP TABLE changed"))


def test_a_lost_connection_is_told_by_a_prepared_statement(db: Database) -> None:
    with db.reading() as conn:
        for _ in range(3):
            conn.execute(NUMBERS, {"last": 1})
    for begin in (db.transaction, db.reading):
        with pytest.raises(DatabaseUnavailable), begin() as conn:
            with socket.socket(fileno=os.dup(driver(conn).pgconn.socket)) as copy:
                copy.shutdown(socket.SHUT_RDWR)
            conn.execute(NUMBERS, {"last": 1})
        with db.reading() as conn:
            for _ in range(3):
                assert conn.execute(NUMBERS, {"last": 1}).scalar() == 1


# ---- statements that are sent later ----

ADD = text("INSERT INTO users (role, name) VALUES (:role, :name) RETURNING id")
ADMINS = text("SELECT name FROM users WHERE role = 'ADMIN' AND :all ORDER BY id")


@pytest.fixture
def known(db: Database) -> Database:
    """The pool gives the connection out again on which these statements are prepared."""
    for _ in range(3):
        with db.transaction() as conn:
            for statement, values in (
                (ADD, {"role": "ADMIN", "name": "x"}),
                (ADMINS, {"all": True}),
                (NUMBERS, {"last": 1}),
            ):
                conn.execute(statement, values)
            conn.execute(text("DELETE FROM users"))
    return db


def admins(db: Database) -> list[str]:
    with db.reading() as conn:
        return conn.execute(ADMINS, {"all": True}).scalars().all()


def test_a_statement_sent_later_goes_with_the_next_one_which_sees_what_it_wrote(known: Database) -> None:
    with known.transaction() as conn:
        later = conn.execute_later(ADD, {"role": "ADMIN", "name": "one"})
        assert conn.execute(ADMINS, {"all": True}).scalars().all() == ["one"]
        assert later.rows.one().id > 0
    assert admins(known) == ["one"]


def test_a_statement_sent_later_is_sent_at_once_if_somebody_asks_for_its_answer(known: Database) -> None:
    with known.transaction() as conn, no_cursors(conn):
        first, second = (conn.execute_later(NUMBERS, {"last": last}) for last in (1, 2))
        assert [row.n for row in second.rows] == [1, 2]
        assert [row.n for row in first.rows] == [1]


def test_statements_sent_later_go_with_commit(known: Database) -> None:
    with known.transaction() as conn, no_cursors(conn):
        for name in ("one", "two"):
            conn.execute_later(ADD, {"role": "ADMIN", "name": name})
    assert admins(known) == ["one", "two"]


def test_a_rollback_drops_what_waits(known: Database) -> None:
    with pytest.raises(RuntimeError), known.transaction() as conn:
        conn.execute_later(ADD, {"role": "ADMIN", "name": "one"})
        raise RuntimeError
    with known.transaction() as conn:
        conn.execute_later(ADD, {"role": "ADMIN", "name": "two"})
    assert admins(known) == ["two"]


def test_a_rollback_keeps_what_is_prepared(known: Database) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError), known.transaction() as conn, no_cursors(conn):
            conn.execute(ADD, {"role": "ADMIN", "name": "rolled back"})
            raise RuntimeError
        with known.transaction() as conn, no_cursors(conn):
            conn.execute(ADD, {"role": "ADMIN", "name": "kept"})
    assert admins(known) == ["kept", "kept"]


def test_a_statement_that_was_prepared_for_a_rolled_back_table_finds_the_next_one(db: Database) -> None:
    for number in (1, 2, 3, 4):
        with pytest.raises(RuntimeError), db.transaction() as conn:
            conn.execute(text(f"CREATE TEMPORARY TABLE listed ON COMMIT DROP AS SELECT {number} AS n"))
            for _ in range(3):
                assert conn.execute(text("SELECT n FROM listed")).scalar_one() == number
            raise RuntimeError


def test_the_end_of_a_connection_is_told_also_if_the_deed_was_refused(known: Database) -> None:
    with pytest.raises(DatabaseUnavailable) as told, known.transaction() as conn:
        conn.execute(ADD, {"role": "ADMIN", "name": "one"})
        with known.reading() as other:
            pid = {"pid": driver(conn).info.backend_pid}
            other.execute(text("SELECT pg_terminate_backend(CAST(:pid AS int), 5000)"), pid)
        raise RuntimeError("refused")
    assert isinstance(told.value.__cause__, OperationalError)
    assert isinstance(told.value.__cause__.orig, psycopg.errors.AdminShutdown)


@pytest.mark.parametrize("ends", [lambda conn: None, lambda conn: conn.execute(NUMBERS, {"last": 1})])
def test_an_error_of_a_statement_sent_later_is_raised_with_the_next_one_or_at_the_commit(
    known: Database, ends: Callable[[PlainConnection], Any]
) -> None:
    with pytest.raises(IntegrityError), known.transaction() as conn:
        conn.execute(ADD, {"role": "ADMIN", "name": "one"})
        conn.execute_later(ADD, {"role": "NOBODY", "name": "wrong"})
        ends(conn)
    assert admins(known) == []
    with known.transaction() as conn:
        conn.execute(ADD, {"role": "ADMIN", "name": "two"})
    assert admins(known) == ["two"]


@pytest.mark.parametrize("next_statement", [select(literal(1)), text("SELECT 'not prepared'")])
def test_what_waits_goes_before_a_statement_on_another_way(known: Database, next_statement: Any) -> None:
    with known.transaction() as conn:
        later = conn.execute_later(ADD, {"role": "ADMIN", "name": "one"})
        conn.execute(next_statement)
        assert later.rows.one()
        with conn.begin_nested() as changes:
            conn.execute_later(ADD, {"role": "ADMIN", "name": "two"})
            conn.execute(NUMBERS, {"last": 1})
            changes.rollback()
    assert admins(known) == ["one"]


def test_a_statement_that_is_not_prepared_or_in_no_transaction_is_not_sent_later(db: Database) -> None:
    with db.transaction() as conn:
        assert conn.execute_later(ADD, {"role": "ADMIN", "name": "one"}).rows.one()
    for _ in range(3):
        with db.autocommit() as conn:
            assert conn.execute_later(ADMINS, {"all": True}).rows.scalars().all() == ["one"]


# ---- statements that are sent behind COMMIT ----


def test_a_statement_after_commit_sees_what_is_committed_and_is_in_no_transaction(known: Database) -> None:
    has_written = text("SELECT pg_current_xact_id_if_assigned() IS NOT NULL, (SELECT count(*) FROM users)")
    for _ in range(3):
        with known.transaction() as conn:
            conn.execute(has_written)
    with known.transaction() as conn, no_cursors(conn):
        conn.execute_later(ADD, {"role": "ADMIN", "name": "own"})
        after = conn.execute_after_commit(has_written, {})
        assert tuple(conn.execute(has_written).one()) == (True, 1)
        assert after.rows is None
        conn.execute_later(ADD, {"role": "ADMIN", "name": "another"})
    assert tuple(after.rows.one()) == (False, 2)


def test_a_statement_after_commit_has_no_answer_if_it_is_not_prepared(db: Database) -> None:
    with db.transaction() as conn:
        conn.execute(ADD, {"role": "ADMIN", "name": "own"})
        after = conn.execute_after_commit(text("SELECT 'never prepared'"), {})
    assert after.rows is None
    assert admins(db) == ["own"]


def test_an_error_after_commit_takes_nothing_back(known: Database) -> None:
    fails = text("SELECT 1 / CAST(:by AS bigint)")
    for _ in range(3):
        with known.transaction() as conn:
            conn.execute(fails, {"by": 1})
    with known.transaction() as conn, no_cursors(conn):
        conn.execute_later(ADD, {"role": "ADMIN", "name": "own"})
        after = conn.execute_after_commit(fails, {"by": 0})
    assert after.rows is None
    assert admins(known) == ["own"]
    with known.transaction() as conn:
        assert conn.execute(fails, {"by": 1}).scalar() == 1


def test_nothing_runs_after_a_transaction_that_fails(known: Database) -> None:
    with pytest.raises(IntegrityError), known.transaction() as conn, no_cursors(conn):
        after = conn.execute_after_commit(ADD, {"role": "ADMIN", "name": "after"})
        conn.execute_later(ADD, {"role": "NOBODY", "name": "wrong"})
    assert after.rows is None
    with pytest.raises(RuntimeError), known.transaction() as conn:
        conn.execute_after_commit(ADD, {"role": "ADMIN", "name": "after"})
        raise RuntimeError
    assert admins(known) == []


def test_a_connection_that_was_idle_keeps_what_is_prepared_on_it(known: Database) -> None:
    with known.transaction() as conn:
        record: Any = conn.connection._connection_record  # pyright: ignore
    record.info["idle_since"] -= 60
    with known.transaction() as conn, no_cursors(conn):
        assert conn.execute(NUMBERS, {"last": 1}).scalar() == 1


def test_statements_sent_together_may_have_long_values_and_long_answers(db: Database) -> None:
    """The answer to the first one comes while the second one is sent."""
    echo, long = text("SELECT CAST(:long AS text)"), "x" * 8_000_000
    for _ in range(3):
        with db.transaction() as conn:
            conn.execute(echo, {"long": ""})
    with db.transaction() as conn, no_cursors(conn):
        earlier = [conn.execute_later(echo, {"long": long}) for _ in range(3)]
        assert conn.execute(echo, {"long": long}).scalar() == long
        assert all(one.rows.scalar() == long for one in earlier)


# ---- executions that are transactions of their own ----

DIVIDE = text("INSERT INTO users (role, name) VALUES ('ADMIN', CAST(10 / :by AS text)) RETURNING name")
WAIT = text(
    "INSERT INTO users (role, name) SELECT 'ADMIN', :name FROM (SELECT pg_sleep(:seconds)) AS slept RETURNING name"
)


def results(answers: Sequence[Any]) -> list[str | None]:
    return [None if rows is None else rows.one().name for rows in answers]


@pytest.mark.parametrize("times_before", [0, 3])
def test_each_execution_is_committed_although_another_one_fails(db: Database, times_before: int) -> None:
    """The statement is not prepared at first."""
    with db.autocommit() as conn:
        for _ in range(times_before):
            conn.execute(DIVIDE, {"by": 10})
        conn.execute(text("DELETE FROM users"))
        with no_cursors(conn) if times_before else nullcontext():
            answers = conn.execute_each(DIVIDE, [{"by": 1}, {"by": 0}, {"by": 2}, {"by": 0}, {"by": 5}])
        assert results(answers) == ["10", None, "5", None, "2"]
        assert results(conn.execute_each(DIVIDE, [{"by": 1}, {"by": 0}])) == ["10", None]
    assert admins(db) == ["10", "5", "2", "10"]


def cut(pid: int, pgconn: Any) -> None:
    with socket.socket(fileno=os.dup(pgconn.socket)) as copy:
        copy.shutdown(socket.SHUT_RDWR)


def end_backend(pid: int, pgconn: Any) -> None:
    with psycopg.connect(os.environ["TEST_DATABASE_URL"]) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])


@pytest.mark.parametrize("times_before", [0, 3])
@pytest.mark.parametrize("break_connection", [cut, end_backend])
def test_executions_that_a_broken_connection_has_answered_are_known(
    db: Database, break_connection: Callable[[int, Any], None], times_before: int
) -> None:
    seconds = [0.0, 0.0, 5.0, 0.0]
    with db.autocommit() as conn:
        for _ in range(times_before):
            conn.execute(WAIT, {"name": "before", "seconds": 0.0})
        conn.execute(text("DELETE FROM users"))
        pid, pgconn = driver(conn).info.backend_pid, driver(conn).pgconn
        timer = threading.Timer(0.3, break_connection, (pid, pgconn))
        timer.start()
        answers = conn.execute_each(
            WAIT, [{"name": str(number), "seconds": waits} for number, waits in enumerate(seconds)]
        )
        timer.join()
    # A backend whose client is gone would go on, beside the next test.
    end_backend(pid, pgconn)
    assert results(answers) == ["0", "1", None, None]
    assert {"0", "1"} <= set(admins(db)) <= {"0", "1", "2"}
