"""SQL texts without SQLAlchemy's compiler and rows. A text with plain values needs neither, and they take twice as long
as the driver: SQLAlchemy works out a cache key, a context and a description of the columns for every execution."""

from collections import namedtuple
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, cast

import psycopg
from psycopg.adapt import PyFormat
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

    def __enter__(self) -> "PlainConnection":
        return self

    def execute(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        is_plain = type(statement) is TextClause and not execution_options
        if not is_plain or not (parameters is None or isinstance(parameters, Mapping)):
            self._send_waiting()
            return super().execute(statement, parameters, execution_options=execution_options)
        sql, values = driver_text(statement.text), cast(Mapping[str, Any], parameters or NOTHING)
        with self._translated(sql.text):
            prepared = self._find(sql, values)
            if prepared is None:
                self._send_waiting()
                return Rows(self._by_cursor(sql.text, values))
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

    def execute_each(self, statement: TextClause, many: Sequence[Mapping[str, Any]]) -> list[Rows | None]:
        """Executes it for each of these values, each time as a transaction of its own, without waiting for one before
        the next is sent. Needs autocommit. None for each that failed, and for those that were on their way when the
        connection broke; the caller executes these again by themselves, and gets their errors."""
        sql = driver_text(statement.text)
        prepared: list[Prepared] | None = None
        if not self._is_listened_to:
            # A value that the driver cannot send fails by itself below.
            with suppress(psycopg.DataError):
                prepared = find_each(self._driver, sql, many)
        if prepared is None:
            return [self._execute_apart(statement, values) for values in many]
        answers: list[Rows | None] = []
        with suppress(DBAPIError), self._translated(sql.text):
            for answered in run_each(self._driver, prepared, _maker_of):
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
        if self._waiting:
            with self._translated("COMMIT"):
                self._send([], commit=True)

    def _find(self, sql: DriverText, values: Mapping[str, Any]) -> Prepared | None:
        return None if self._is_listened_to else find_prepared(self._driver, sql, values)

    @property
    def _is_listened_to(self) -> bool:
        """Listeners see each statement when it runs, so that nothing is sent without the cursor of the driver."""
        return bool(self.dispatch.before_cursor_execute)

    def _send_waiting(self) -> None:
        if self._waiting:
            with self._translated(""):
                self._send([])

    def _send(self, more: list[Prepared], *, commit: bool = False) -> Answered:
        """Returns the last answer."""
        waiting, self._waiting = self._waiting, []
        answers = run_prepared(self._driver, [one for one, _ in waiting] + more, _maker_of, commit=commit)
        for (_, later), answered in zip(waiting, answers, strict=False):
            later.arrive(answered)
        return answers[-1]

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

    def _by_cursor(self, sql: Any, values: Any) -> Answered:
        cursor = self._driver.cursor(row_factory=_row_factory)
        for listener in self.dispatch.before_cursor_execute:
            sql, values = listener(self, cursor, sql, values, None, False)
        cursor.execute(sql, values)
        result = cursor.pgresult
        returns_rows = result is not None and result.status == ExecStatus.TUPLES_OK
        return Answered(cursor.fetchall() if returns_rows else (), cursor.rowcount, returns_rows)


def execute_later(conn: Connection, statement: TextClause, parameters: Mapping[str, Any]) -> LaterRows:
    """As the method, for a connection that may be SQLAlchemy's own."""
    if isinstance(conn, PlainConnection):
        return conn.execute_later(statement, parameters)
    return LaterRows(conn.execute(statement, parameters))


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
