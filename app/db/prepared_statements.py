"""Runs statements that PostgreSQL has prepared for a connection, by calls of libpq, which take less than a cursor of
the driver. The driver decides what it prepares, and forgets it when a transaction is rolled back."""

import select
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus

RowMaker = Callable[[Sequence[Any]], Any]


class DriverText(NamedTuple):
    """A text in both notations of the driver."""

    text: str
    """With `%(name)s`."""
    query: bytes
    """With `$1`, as the driver sends and remembers it."""
    names: tuple[str, ...]
    formats: tuple[PyFormat, ...]


class Answered(NamedTuple):
    rows: Sequence[Any]
    rowcount: int
    returns_rows: bool


class Prepared(NamedTuple):
    """A statement that PostgreSQL knows by its name, with the values of one execution."""

    name: bytes
    sent: Any
    formats: Any
    transformer: Any
    key: Any
    """By which the driver remembers it."""


def find_prepared(
    driver: Any, statement: DriverText, values: Mapping[str, Any], transformer: Any = None
) -> Prepared | None:
    """None if the connection has not prepared it. Executions of one statement may share a transformer, which remembers
    how it writes and reads each type."""
    # The driver has no public list of them.
    known = driver._prepared._names
    if not known or not all(name in values for name in statement.names):
        return None
    transformer = transformer or Transformer(driver)
    sent = transformer.dump_sequence([values[name] for name in statement.names], statement.formats)
    key = (statement.query, transformer.types or ())
    name = known.get(key)
    if name is None:
        return None
    known.move_to_end(key)
    return Prepared(name, sent, transformer.formats, transformer, key)


def find_each(driver: Any, statement: DriverText, many: Iterable[Mapping[str, Any]]) -> list[Prepared] | None:
    """None if the connection has not prepared it for each of these values."""
    transformer = Transformer(driver)
    found = [find_prepared(driver, statement, values, transformer) for values in many]
    prepared = [one for one in found if one is not None]
    return prepared if len(prepared) == len(found) else None


def run_prepared(
    driver: Any, statements: Sequence[Prepared], row_maker: Callable[[Any], RowMaker], *, commit: bool = False
) -> list[Answered]:
    """Sends all of them at once, and BEGIN before them where a transaction begins. Raises the driver's errors."""
    begins = not driver.autocommit and driver.pgconn.transaction_status == TransactionStatus.IDLE
    if len(statements) == 1 and not begins and not commit:
        [(name, sent, formats, _, _)] = statements
        results = [driver.pgconn.exec_prepared(name, sent, formats)]
    else:
        results = _run_pipeline(driver.pgconn, statements, begins=begins, commit=commit)
    failed = next((one for one in results if one.status not in SUCCEEDED), None)
    if failed is not None:
        # The driver prepares them again, because the tables may have changed.
        for statement in statements:
            driver._prepared._names.pop(statement.key, None)
        raise _error(driver, failed)
    first = int(begins)
    answers = results[first : first + len(statements)]
    return [_answered(one, result, row_maker(result)) for one, result in zip(statements, answers, strict=True)]


def run_each(
    driver: Any, executions: Sequence[Prepared], row_maker: Callable[[Any], RowMaker]
) -> Generator[Answered | None]:
    """Sends all executions of one statement at once, each as a transaction of its own, and yields each answer as it
    arrives: None for one that failed, which is rolled back alone. Raises the driver's error if the connection breaks;
    nobody knows then which of the others were committed."""
    make_row: RowMaker | None = None
    with _pipeline(driver.pgconn) as pgconn:
        for name, sent, formats, _, _ in executions:
            pgconn.send_query_prepared(name, sent, formats)
            # PostgreSQL commits at each of these, and after an error it skips only what comes before the next one.
            pgconn.pipeline_sync()
        _flush(pgconn)
        for one in executions:
            [result] = _results(pgconn)
            if result.status not in SUCCEEDED:
                driver._prepared._names.pop(one.key, None)
                yield None
                continue
            # Their columns are alike.
            make_row = make_row or row_maker(result)
            yield _answered(one, result, make_row)


SUCCEEDED = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


def _answered(statement: Prepared, result: Any, make_row: RowMaker) -> Answered:
    if result.status != ExecStatus.TUPLES_OK:
        return Answered((), result.command_tuples, False)
    statement.transformer.set_pgresult(result)
    rows = statement.transformer.load_rows(0, result.ntuples, make_row)
    return Answered(rows, result.command_tuples, True)


def _error(driver: Any, result: Any) -> psycopg.Error:
    if result.error_field(DiagnosticField.SQLSTATE) is None:
        # It comes from libpq, which has lost the connection.
        return psycopg.OperationalError(result.get_error_message())
    return error_from_result(result, driver.info.encoding)


def _run_pipeline(pgconn: Any, statements: Sequence[Prepared], *, begins: bool, commit: bool) -> list[Any]:
    with _pipeline(pgconn):
        if begins:
            pgconn.send_query_params(b"BEGIN", None)
        for name, sent, formats, _, _ in statements:
            pgconn.send_query_prepared(name, sent, formats)
        if commit:
            pgconn.send_query_params(b"COMMIT", None)
        pgconn.pipeline_sync()
        _flush(pgconn)
        return _results(pgconn)


@contextmanager
def _pipeline(pgconn: Any) -> Generator[Any]:
    try:
        pgconn.enter_pipeline_mode()
        yield pgconn
        pgconn.exit_pipeline_mode()
    except BaseException:
        # In the middle of a pipeline, nobody else could use the connection.
        pgconn.finish()
        raise


def _flush(pgconn: Any) -> None:
    socket = select.poll()
    # What has been answered is read meanwhile, because a server that cannot send stops reading.
    socket.register(pgconn.socket, select.POLLIN | select.POLLOUT)
    while pgconn.flush():
        if any(ready & select.POLLIN for _, ready in socket.poll()):
            pgconn.consume_input()


def _results(pgconn: Any) -> list[Any]:
    """Of a pipeline, up to its end or to the next point at which it was committed."""
    socket = select.poll()
    socket.register(pgconn.socket, select.POLLIN)
    results: list[Any] = []
    while True:
        while pgconn.is_busy():
            socket.poll()
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            continue
        if result.status == ExecStatus.PIPELINE_SYNC:
            return results
        results.append(result)
