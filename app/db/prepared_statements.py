"""Runs statements that PostgreSQL has prepared for a connection, by calls of libpq, which take less than a cursor of
the driver. The driver decides what it prepares, and forgets it when a transaction is rolled back."""

import select
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import PyFormat
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
    key: Any
    """By which the driver remembers it."""
    answer_format: int
    """0 for text, 1 for binary."""


def find_prepared(
    driver: Any, transformer: Any, statement: DriverText, values: Mapping[str, Any], *, binary: bool = False
) -> Prepared | None:
    """None if the connection has not prepared it. The transformer is one for all statements of a connection, because it
    remembers how to write and read each type. `binary` is the form of the rows."""
    # The driver has no public list of them.
    known = driver._prepared._names
    if not known or not all(name in values for name in statement.names):
        return None
    sent = transformer.dump_sequence([values[name] for name in statement.names], statement.formats)
    key = (statement.query, transformer.types or ())
    name = known.get(key)
    if name is None:
        return None
    known.move_to_end(key)
    return Prepared(name, sent, transformer.formats, key, int(binary))


def find_each(
    driver: Any, transformer: Any, statement: DriverText, many: Iterable[Mapping[str, Any]]
) -> list[Prepared] | None:
    """None if the connection has not prepared it for each of these values."""
    found = [find_prepared(driver, transformer, statement, values) for values in many]
    prepared = [one for one in found if one is not None]
    return prepared if len(prepared) == len(found) else None


def run_prepared(
    driver: Any, transformer: Any, statements: Sequence[Prepared], row_maker: Callable[[Any], RowMaker]
) -> list[Answered]:
    """Sends all of them at once, and BEGIN before them where a transaction begins. Raises the driver's errors."""
    begins = _begins(driver)
    if len(statements) == 1 and not begins:
        [(name, sent, formats, _, answer_format)] = statements
        results = [driver.pgconn.exec_prepared(name, sent, formats, answer_format)]
    else:
        results = _run_pipeline(driver.pgconn, [BEGIN, *statements] if begins else statements)
    _raise_error(driver, statements, results)
    return _all_answered(transformer, results[1:] if begins else results, row_maker)


def run_and_commit(
    driver: Any,
    transformer: Any,
    statements: Sequence[Prepared],
    after_commit: Sequence[Prepared],
    row_maker: Callable[[Any], RowMaker],
) -> tuple[list[Answered], list[Answered]]:
    """Sends the statements, COMMIT, and what comes after it, at once. Returns the answers of both; none of the latter
    if one of them failed. Then the transaction is committed all the same."""
    begin = [BEGIN] if _begins(driver) else []
    sent = [*begin, *statements, COMMIT]
    results = _run_pipeline(driver.pgconn, [*sent, *after_commit])
    of_transaction, later = results[: len(sent)], results[len(sent) :]
    _raise_error(driver, statements, of_transaction)
    answers = _all_answered(transformer, of_transaction[len(begin) : -1], row_maker)
    if any(result.status not in SUCCEEDED for result in later):
        _forget(driver, after_commit)
        return answers, []
    return answers, _all_answered(transformer, later, row_maker)


def run_each(
    driver: Any, transformer: Any, executions: Sequence[Prepared], row_maker: Callable[[Any], RowMaker]
) -> Generator[Answered | None]:
    """Sends all executions of one statement at once, each as a transaction of its own, and yields each answer as it
    arrives: None for one that failed, which is rolled back alone. Raises the driver's error if the connection breaks;
    nobody knows then which of the others were committed."""
    make_row: RowMaker | None = None
    with _pipeline(driver.pgconn) as pgconn:
        for one in executions:
            _send(pgconn, one)
            # PostgreSQL commits at each of these, and after an error it skips only what comes before the next one.
            pgconn.pipeline_sync()
        _flush(pgconn)
        for one in executions:
            [result] = _results(pgconn)
            if result.status not in SUCCEEDED:
                _forget(driver, [one])
                yield None
                continue
            # Their columns are alike.
            make_row = make_row or row_maker(result)
            yield _answered(transformer, result, make_row)


SUCCEEDED = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


def _begins(driver: Any) -> bool:
    return not driver.autocommit and driver.pgconn.transaction_status == TransactionStatus.IDLE


def is_in_sound_transaction(driver: Any) -> bool:
    """False if a statement of it has failed or still runs, or the server has said something by itself: the connection
    is about to end then, and the driver finds out why."""
    return driver.pgconn.transaction_status == TransactionStatus.INTRANS and not has_unread_data(driver)


def has_unread_data(driver: Any) -> bool:
    poll = select.poll()
    poll.register(driver.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


def roll_back(driver: Any) -> None:
    """Raises the driver's error."""
    _raise_error(driver, [], [driver.pgconn.exec_(ROLLBACK)])


def _raise_error(driver: Any, statements: Sequence[Prepared], results: Sequence[Any]) -> None:
    failed = next((one for one in results if one.status not in SUCCEEDED), None)
    if failed is not None:
        _forget(driver, statements)
        raise _error(driver, failed)


def _forget(driver: Any, statements: Sequence[Prepared]) -> None:
    """The driver prepares them again, because the tables may have changed."""
    for statement in statements:
        driver._prepared._names.pop(statement.key, None)


def _all_answered(transformer: Any, results: Iterable[Any], row_maker: Callable[[Any], RowMaker]) -> list[Answered]:
    return [_answered(transformer, result, row_maker(result)) for result in results]


def _answered(transformer: Any, result: Any, make_row: RowMaker) -> Answered:
    if result.status != ExecStatus.TUPLES_OK:
        return Answered((), result.command_tuples, False)
    transformer.set_pgresult(result)
    rows = transformer.load_rows(0, result.ntuples, make_row)
    return Answered(rows, result.command_tuples, True)


def _error(driver: Any, result: Any) -> psycopg.Error:
    if result.error_field(DiagnosticField.SQLSTATE) is None:
        # It comes from libpq, which has lost the connection.
        return psycopg.OperationalError(result.get_error_message())
    return error_from_result(result, driver.info.encoding)


BEGIN, COMMIT, ROLLBACK = b"BEGIN", b"COMMIT", b"ROLLBACK"


def _run_pipeline(pgconn: Any, statements: Sequence[Prepared | bytes]) -> list[Any]:
    with _pipeline(pgconn):
        for statement in statements:
            if isinstance(statement, bytes):
                pgconn.send_query_params(statement, None)
            else:
                _send(pgconn, statement)
        pgconn.pipeline_sync()
        _flush(pgconn)
        return _results(pgconn)


def _send(pgconn: Any, statement: Prepared) -> None:
    pgconn.send_query_prepared(statement.name, statement.sent, statement.formats, statement.answer_format)


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
    """Of a pipeline, up to its end or to the next point at which it was committed. Whether libpq is busy is asked as
    seldom as possible: the driver gives up the interpreter's lock for it, and so wakes a thread in vain."""
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
        # libpq says with a None that it has no more of this statement, and does not wait for that.
        if pgconn.get_result() is not None:
            raise psycopg.OperationalError("a statement of a pipeline had two results")
