"""SQL texts without SQLAlchemy's compiler and rows. A text with plain values needs neither, and they take twice as long
as the driver: SQLAlchemy works out a cache key, a context and a description of the columns for every execution."""

from collections import namedtuple
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, cast

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus
from sqlalchemy import Connection, Engine, TextClause
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError, MultipleResultsFound, NoResultFound

from app.db.prepared_statements import (
    Answered,
    DriverText,
    Prepared,
    RowMaker,
    find_each,
    find_prepared,
    is_in_sound_transaction,
    roll_back,
    run_and_commit,
    run_each,
    run_prepared,
)

TEXTS_REMEMBERED = 2_000
"""More than the statements of all roles together. A text that is put together anew each time pushes others out."""

NOTHING: Mapping[str, Any] = {}


class Rows(list[Any]):
    """The rows of one statement, with those parts of SQLAlchemy's `CursorResult` that we use."""

    def __init__(self, answered: Answered) -> None:
        super().__init__(answered.rows)
        self.rowcount = answered.rowcount
        self.returns_rows = answered.returns_rows

    def all(self) -> list[Any]:
        return self

    def first(self) -> Any:
        return self[0] if self else None

    def one(self) -> Any:
        if not self:
            raise NoResultFound("No row was found when one was required")
        return self.one_or_none()

    def one_or_none(self) -> Any:
        if len(self) > 1:
            raise MultipleResultsFound("Multiple rows were found when one or none was required")
        return self.first()

    def scalar(self) -> Any:
        return self[0][0] if self else None

    def scalar_one(self) -> Any:
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        row = self.one_or_none()
        return None if row is None else row[0]

    def scalars(self) -> "Rows":
        self[:] = [row[0] for row in self]
        return self

    def mappings(self) -> "Rows":
        self[:] = [row._asdict() for row in self]
        return self


class LaterRows:
    """The answer to a statement that is sent together with the next one, or when somebody asks for its answer."""

    def __init__(self, rows: Any = None, send: Callable[[], None] | None = None) -> None:
        self._rows = rows
        self._send = send

    @property
    def rows(self) -> Any:
        if self._rows is None and self._send is not None:
            self._send()
        return self._rows

    def arrive(self, answered: Answered) -> None:
        self._rows = Rows(answered)


class PlainConnection(Connection):
    """Sends SQL texts to the driver, and everything else on the usual way."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._waiting: list[tuple[Prepared, LaterRows]] = []
        self._after_commit: list[tuple[Prepared, LaterRows]] = []

    def __enter__(self) -> "PlainConnection":
        return self

    def execute(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        is_plain = type(statement) is TextClause and not execution_options
        if not is_plain or not (parameters is None or isinstance(parameters, Mapping)):
            self._send_waiting()
            return super().execute(statement, parameters, execution_options=execution_options)
        return self._execute_plain(statement, cast(Mapping[str, Any], parameters or NOTHING))

    def execute_binary(self, statement: TextClause, parameters: Mapping[str, Any]) -> Rows:
        """Gets the rows in binary form, which is faster for many numbers."""
        return self._execute_plain(statement, parameters, binary=True)

    def _execute_plain(self, statement: TextClause, values: Mapping[str, Any], *, binary: bool = False) -> Rows:
        sql = driver_text(statement.text)
        with self._translated(sql.text):
            prepared = self._find(sql, values, binary=binary)
            if prepared is None:
                self._send_waiting()
                return Rows(self._by_cursor(sql.text, values, binary=binary))
            return Rows(self._send([prepared]))

    def execute_later(self, statement: TextClause, parameters: Mapping[str, Any]) -> LaterRows:
        """Sends the statement together with the next one, or with COMMIT, which saves a round trip. Its error is raised
        there."""
        sql = driver_text(statement.text)
        is_in_transaction = self.in_transaction() and not self._driver.autocommit
        prepared = self._find(sql, parameters) if is_in_transaction else None
        if prepared is None:
            return LaterRows(self.execute(statement, parameters))
        later = LaterRows(send=self._send_waiting)
        self._waiting.append((prepared, later))
        return later

    def execute_after_commit(self, statement: TextClause, parameters: Mapping[str, Any]) -> LaterRows:
        """Sends the statement in the same round trip as COMMIT, but after it, so that it sees what is committed. Its
        rows stay None if it was not prepared yet or has failed: then the caller asks again."""
        later = LaterRows()
        prepared = self._find(driver_text(statement.text), parameters)
        if prepared is not None:
            self._after_commit.append((prepared, later))
        return later

    def execute_each(self, statement: TextClause, many: Sequence[Mapping[str, Any]]) -> list[Rows | None]:
        """Executes it for each of these values, each time as a transaction of its own, without waiting for one before
        the next is sent. Needs autocommit. None for each that failed, and for those that were on their way when the
        connection broke; the caller executes these again by themselves, and gets their errors."""
        sql = driver_text(statement.text)
        prepared: list[Prepared] | None = None
        if not self._is_listened_to:
            # A value that the driver cannot send fails by itself below.
            with suppress(psycopg.DataError):
                prepared = find_each(self._driver, self._transformer, sql, many)
        if prepared is None:
            return [self._execute_apart(statement, values) for values in many]
        answers: list[Rows | None] = []
        with suppress(DBAPIError), self._translated(sql.text):
            for answered in run_each(self._driver, self._transformer, prepared, _maker_of):
                answers.append(None if answered is None else Rows(answered))
        return answers + [None] * (len(many) - len(answers))

    def _execute_apart(self, statement: TextClause, values: Mapping[str, Any]) -> Rows | None:
        if self.invalidated:
            # SQLAlchemy would take another connection, which would not commit.
            return None
        try:
            return self.execute(statement, values)
        except DBAPIError:
            return None

    def send_commit(self) -> None:
        """Sends what waits together with COMMIT. SQLAlchemy then finds nothing left to commit."""
        if not (self._waiting or self._after_commit):
            return
        waiting, self._waiting = self._waiting, []
        after, self._after_commit = self._after_commit, []
        with self._translated("COMMIT"):
            answers = run_and_commit(
                self._driver, self._transformer, [one for one, _ in waiting], [one for one, _ in after], _maker_of
            )
        for asked, answered in zip((waiting, after), answers, strict=True):
            _arrive(asked, answered)

    def send_rollback(self) -> None:
        """SQLAlchemy then finds nothing left to roll back. After its own ROLLBACK the driver would forget everything
        that is prepared, and each refused deed ends with one. After a failed statement it may. So a temporary table
        must not have other types of columns in the next transaction."""
        self._waiting.clear()
        self._after_commit.clear()
        if not (self.closed or self.invalidated) and is_in_sound_transaction(self._driver):
            with self._translated("ROLLBACK"):
                roll_back(self._driver)

    def _find(self, sql: DriverText, values: Mapping[str, Any], *, binary: bool = False) -> Prepared | None:
        if self._is_listened_to:
            return None
        return find_prepared(self._driver, self._transformer, sql, values, binary=binary)

    @property
    def _is_listened_to(self) -> bool:
        """Listeners see each statement when it runs, so that nothing is sent without the cursor of the driver."""
        return bool(self.dispatch.before_cursor_execute)

    def _send_waiting(self) -> None:
        if self._waiting:
            with self._translated(""):
                self._send([])

    def _send(self, more: list[Prepared]) -> Answered:
        """Returns the last answer."""
        waiting, self._waiting = self._waiting, []
        answers = run_prepared(self._driver, self._transformer, [one for one, _ in waiting] + more, _maker_of)
        _arrive(waiting, answers)
        return answers[-1]

    @property
    def _transformer(self) -> Any:
        """Kept as long as the connection to PostgreSQL."""
        info = self.connection.info
        if "transformer" not in info:
            info["transformer"] = Transformer(self._driver)
        return info["transformer"]

    @property
    def _driver(self) -> Any:
        return self.connection.driver_connection

    @contextmanager
    def _translated(self, sql: str) -> Generator[None]:
        """Gives an error the class that callers expect, and takes a broken connection out of the pool."""
        try:
            yield
        except psycopg.Error as error:
            self._handle_dbapi_exception(error, sql, None, None, None)  # pyright: ignore[reportArgumentType]

    def _by_cursor(self, sql: Any, values: Any, *, binary: bool) -> Answered:
        cursor = self._driver.cursor(row_factory=_row_factory, binary=binary)
        for listener in self.dispatch.before_cursor_execute:
            sql, values = listener(self, cursor, sql, values, None, False)
        cursor.execute(sql, values)
        result = cursor.pgresult
        returns_rows = result is not None and result.status == ExecStatus.TUPLES_OK
        return Answered(cursor.fetchall() if returns_rows else (), cursor.rowcount, returns_rows)


def _arrive(asked: Sequence[tuple[Prepared, LaterRows]], answers: Sequence[Answered]) -> None:
    for (_, later), answered in zip(asked, answers, strict=False):
        later.arrive(answered)


def execute_later(conn: Connection, statement: TextClause, parameters: Mapping[str, Any]) -> LaterRows:
    """As the method, for a connection that may be SQLAlchemy's own."""
    if isinstance(conn, PlainConnection):
        return conn.execute_later(statement, parameters)
    return LaterRows(conn.execute(statement, parameters))


def execute_binary(conn: Connection, statement: TextClause, parameters: Mapping[str, Any]) -> Any:
    """As the method, for a connection that may be SQLAlchemy's own, which gets the rows as text."""
    if isinstance(conn, PlainConnection):
        return conn.execute_binary(statement, parameters)
    return conn.execute(statement, parameters)


def execute_after_commit(conn: Connection, statement: TextClause, parameters: Mapping[str, Any]) -> LaterRows:
    """As the method, for a connection that may be SQLAlchemy's own."""
    return conn.execute_after_commit(statement, parameters) if isinstance(conn, PlainConnection) else LaterRows()


def _row_factory(cursor: psycopg.Cursor[Any]) -> RowMaker:
    return _maker_of(cursor.pgresult) if cursor.pgresult else tuple


def _maker_of(result: Any) -> RowMaker:
    return _row_maker(*[result.fname(i) or b"" for i in range(result.nfields)])


@lru_cache(TEXTS_REMEMBERED)
def _row_maker(*names: bytes) -> RowMaker:
    """The driver's own factory refuses columns that share a name, such as two calls of a function."""
    return namedtuple("Row", [name.decode() for name in names], rename=True)._make  # pyright: ignore


@lru_cache(TEXTS_REMEMBERED)
def driver_text(sql: str) -> DriverText:
    """The text as SQLAlchemy writes it for the driver, and as the driver writes it for PostgreSQL."""
    clause = TextClause(sql)
    numbered: Any = clause.compile(dialect=_NUMBERED)
    names = tuple(numbered.positiontup or ())
    text = str(clause.compile(dialect=_NAMED))
    return DriverText(text, str(numbered).encode(), names, (PyFormat.AUTO,) * len(names))


_NAMED = PGDialect_psycopg()
_NUMBERED = PGDialect_psycopg(paramstyle="numeric_dollar")
