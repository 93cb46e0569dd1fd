"""PostgreSQL: one engine for each process, transactions opened by entry points only."""

import math
import select
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
import sqlalchemy.exc
from psycopg.types.numeric import Int8Dumper
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.pool import QueuePool

from app.db.watchdog import OutOfTime, Watchdog, answer_by
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint, is_armed

PING_AFTER_S = 1.0
PING_LIMIT_S = 2.0
IDLE_LIMIT_MS = 5_000
SHORTEST_CONNECT_S = 2
"""The driver rounds anything less up to this."""


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"


def psycopg_url(database_url: str) -> str:
    """The URL with the driver spelled out; `postgresql://` alone means whatever SQLAlchemy prefers this year."""
    for prefix in ("postgresql://", "postgres://"):
        if database_url.startswith(prefix):
            return "postgresql+psycopg://" + database_url.removeprefix(prefix)
    return database_url


class Database:
    def __init__(
        self,
        database_url: str,
        *,
        pool_size: int = 8,
        connect_timeout_s: int = 3,
        pool_timeout_s: float = 3,
        statement_timeout_ms: int = 5_000,
        lock_timeout_ms: int = 3_000,
        call_limit_s: float = 30,
        application_name: str = "yaninda",
        plan_once: bool = False,
    ) -> None:
        """`plan_once` is for a process that sends few statements again and again, each with any number of ids: left to
        itself, PostgreSQL would plan them anew for every short list, which takes longer than running them."""
        # Whoever stands still in the middle of a transaction, as a machine that is paused does, loses it soon: the
        # rows it holds are other people's tasks.
        options = (
            f"-c statement_timeout={statement_timeout_ms} -c lock_timeout={lock_timeout_ms} -c jit=off"
            " -c max_parallel_workers_per_gather=0 -c timezone=UTC"
            f" -c idle_in_transaction_session_timeout={IDLE_LIMIT_MS}"
            f" -c plan_cache_mode={'force_generic_plan' if plan_once else 'auto'}"
        )
        self.engine = create_engine(
            psycopg_url(database_url),
            poolclass=QueuePool,
            # Errors of the driver would otherwise quote phone numbers and tokens.
            hide_parameters=True,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=pool_timeout_s,
            connect_args={
                "connect_timeout": connect_timeout_s,
                "options": options,
                "application_name": application_name,
                # A network path that is gone must not hold a thread for the quarter of an hour TCP would allow.
                "keepalives_idle": 5,
                "keepalives_interval": 2,
                "keepalives_count": 3,
                "tcp_user_timeout": 10_000,
                "prepare_threshold": 1,
            },
        )
        event.listen(self.engine, "connect", _send_integers_alike)

        self._watchdog = Watchdog(call_limit_s)
        _ping_after_rest(self.engine, self._watchdog)
        _connect_in_time(self.engine)
        if is_armed("sql.statement"):
            event.listen(self.engine, "before_cursor_execute", lambda *_: failpoint("sql.statement"))
        self._reader = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        """A READ COMMITTED transaction, committed at the end of the block and rolled back by any exception."""
        with _translated(), self.engine.connect() as conn, self._watchdog.guard(driver(conn)), conn.begin():
            yield conn
            failpoint("sql.commit")
        failpoint("sql.committed")

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """For reads that need no common snapshot: each statement by itself, without BEGIN and COMMIT around it."""
        with _translated(), self._reader.connect() as conn, self._watchdog.guard(driver(conn)):
            yield conn

    @contextmanager
    def autocommit(self) -> Generator[Connection]:
        """Each statement is a transaction of its own, committed when it returns: one way to the database and back
        instead of three, for writes that are one statement."""
        with self.reading() as conn:
            yield conn

    def now(self) -> datetime:
        with self.reading() as conn:
            return conn.execute(text("SELECT clock_timestamp()")).scalar_one()

    def close(self) -> None:
        self.engine.dispose()


def limit_statements(conn: Connection, timeout_s: float) -> None:
    """No statement of this transaction may take longer from here on."""
    milliseconds = str(int(timeout_s * 1000))
    conn.execute(text("SELECT set_config('statement_timeout', :limit, true)"), {"limit": milliseconds})


def driver(conn: Connection) -> Any:
    return conn.connection.driver_connection


def _send_integers_alike(connection: Any, _record: Any) -> None:
    """The driver would pick the smallest type that holds a value, and the server prepares a statement once for each
    combination of types: the same statement would be parsed and planned again for ids of another magnitude."""
    connection.adapters.register_dumper(int, Int8Dumper)


def _has_something_to_say(connection: Any) -> bool:
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


def _ping_after_rest(engine: Engine, watchdog: Watchdog) -> None:
    """A connection that has been idle for a while may have died meanwhile, so it is tried before it is handed out.
    SQLAlchemy's own ping does so every time, and waits without end for a server that does not answer."""

    def rest(_connection: Any, record: Any) -> None:
        record.info["idle_since"] = time.monotonic()

    def ping(connection: Any, record: Any, _proxy: Any) -> None:
        if _has_something_to_say(connection):
            # An idle connection hears from the server only when the server ends it.
            raise sqlalchemy.exc.DisconnectionError
        if time.monotonic() - record.info.get("idle_since", math.inf) < PING_AFTER_S:
            return
        try:
            with watchdog.guard(connection, PING_LIMIT_S):
                connection.execute("SELECT 1")
                connection.rollback()
        except psycopg.Error as error:
            raise sqlalchemy.exc.DisconnectionError from error

    event.listen(engine, "checkin", rest)
    event.listen(engine, "checkout", ping)


def _connect_in_time(engine: Engine) -> None:
    """A server that is frozen takes connections and says nothing. Within a request, trying ends with its time."""

    def limit(_dialect: Any, _record: Any, _arguments: Any, options: dict[str, Any]) -> None:
        request_ends = answer_by.get()
        if request_ends is None:
            return
        left_s = request_ends - time.monotonic()
        if left_s < SHORTEST_CONNECT_S:
            raise OutOfTime
        options["connect_timeout"] = min(options["connect_timeout"], int(left_s))

    event.listen(engine, "do_connect", limit)


@contextmanager
def _translated() -> Generator[None]:
    """Errors of the driver arrive bare where a hot query goes past SQLAlchemy."""
    try:
        yield
    except (
        sqlalchemy.exc.OperationalError,
        sqlalchemy.exc.InterfaceError,
        sqlalchemy.exc.TimeoutError,
        psycopg.OperationalError,
        psycopg.InterfaceError,
        # It ends the connection, and yet the driver counts it among its own mistakes.
        psycopg.errors.IdleInTransactionSessionTimeout,
        OutOfTime,
    ) as error:
        raise DatabaseUnavailable("The database does not answer.") from error
    except sqlalchemy.exc.InternalError as error:
        if isinstance(error.orig, psycopg.errors.IdleInTransactionSessionTimeout):
            raise DatabaseUnavailable("The database has ended a transaction that stood still.") from error
        raise
