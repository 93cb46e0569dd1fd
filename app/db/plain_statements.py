"""SQL texts without SQLAlchemy's compiler and rows. A text with plain values needs neither, and they take twice as long
as the driver: SQLAlchemy works out a cache key, a context and a description of the columns for every execution."""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import psycopg
from psycopg.pq import ExecStatus
from sqlalchemy import Connection, TextClause
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import MultipleResultsFound, NoResultFound

TEXTS_REMEMBERED = 2_000
"""More than the statements of all roles together. A text that is put together anew each time pushes others out."""

NOTHING: Mapping[str, Any] = {}


class Rows(list[Any]):
    """The rows of one statement, with those parts of SQLAlchemy's `CursorResult` that we use."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        result = cursor.pgresult
        self.returns_rows = result is not None and result.status == ExecStatus.TUPLES_OK
        super().__init__(cursor.fetchall() if self.returns_rows else ())
        self.rowcount = cursor.rowcount

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


class PlainConnection(Connection):
    """Sends SQL texts to the driver, and everything else on the usual way."""

    def execute(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        is_plain = type(statement) is TextClause and not execution_options
        if not is_plain or not (parameters is None or isinstance(parameters, Mapping)):
            return super().execute(statement, parameters, execution_options=execution_options)
        sql: Any = _driver_text(statement.text)
        values = cast(Any, parameters or NOTHING)
        driver: Any = self.connection.driver_connection
        cursor = driver.cursor(row_factory=_row_factory)
        for listener in self.dispatch.before_cursor_execute:
            sql, values = listener(self, cursor, sql, values, None, False)
        try:
            cursor.execute(sql, values)
            return Rows(cursor)
        except psycopg.Error as error:
            # It gives the error the class that callers expect, and takes a broken connection out of the pool.
            self._handle_dbapi_exception(error, sql, None, cursor, None)  # pyright: ignore[reportArgumentType]


def _row_factory(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], Any]:
    result = cursor.pgresult
    return _row_maker(*(result.fname(i) or b"" for i in range(result.nfields))) if result else tuple


@lru_cache(TEXTS_REMEMBERED)
def _row_maker(*names: bytes) -> Callable[[Sequence[Any]], Any]:
    """The driver's own factory refuses columns that share a name, such as two calls of a function."""
    return namedtuple("Row", [name.decode() for name in names], rename=True)._make  # pyright: ignore


@lru_cache(TEXTS_REMEMBERED)
def _driver_text(sql: str) -> str:
    """The text with `%(name)s` for `:name`, as SQLAlchemy writes it."""
    return str(TextClause(sql).compile(dialect=_DIALECT))


_DIALECT = PGDialect_psycopg()
