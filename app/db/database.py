"""PostgreSQL: one engine for each process. Only entry points open transactions."""

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
import sqlalchemy.exc
from psycopg.pq import ExecStatus
from psycopg.types.numeric import Int8Dumper
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.pool import QueuePool

from app.db.after_commit import Count, count_nothing, kept_until_commit
from app.db.plain_lists import PlainListDumper
from app.db.plain_statements import PlainConnection
from app.db.prepared_statements import has_unread_data
from app.db.watchdog import OutOfTime, Watchdog, answer_by
from app.db.witness import present_witness
from app.foundation.errors import Unavailable
from app.foundation.failpoints import failpoint, is_armed

FRESH_S = 0.01
"""A connection that was in use so recently is not tested, because asking the kernel gives up the interpreter's lock."""
PING_AFTER_S = 1.0
PING_LIMIT_S = 2.0
IDLE_LIMIT_MS = 5_000
SHORTEST_CONNECT_S = 2
"""The driver rounds shorter timeouts up to this."""


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"


def psycopg_url(database_url: str) -> str:
    """The URL with the driver spelled out, because SQLAlchemy's default driver changes between versions."""
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
        """`plan_once` forces generic plans. It is for a process that repeats few statements with lists of ids:
        PostgreSQL would otherwise plan them again for every short list, which takes longer than running them."""
        # If a process stalls in the middle of a transaction, for example on a paused machine, PostgreSQL ends the
        # transaction soon, because other processes need the rows that it locks.
        options = (
            f"-c statement_timeout={statement_timeout_ms} -c lock_timeout={lock_timeout_ms} -c jit=off"
            " -c max_parallel_workers_per_gather=0 -c timezone=UTC"
            f" -c idle_in_transaction_session_timeout={IDLE_LIMIT_MS}"
            f" -c plan_cache_mode={'force_generic_plan' if plan_once else 'auto'}"
        )
        self.engine = create_engine(
            psycopg_url(database_url),
            poolclass=QueuePool,
            # Otherwise errors of the driver quote phone numbers and tokens.
            hide_parameters=True,
            pool_size=pool_size,
            max_overflow=0,
            # The connections used last have the warmest caches: plans, and catalogs.
            pool_use_lifo=True,
            pool_timeout=pool_timeout_s,
            connect_args={
                "connect_timeout": connect_timeout_s,
                "options": options,
                "application_name": application_name,
                # A lost network path must not hold a thread for the 15 minutes that TCP allows.
                "keepalives_idle": 5,
                "keepalives_interval": 2,
                "keepalives_count": 3,
                "tcp_user_timeout": 10_000,
                "prepare_threshold": 1,
            },
        )
        event.listen(self.engine, "connect", _adapt)
        self.count: Count = count_nothing
        """Gets the counts of each commit. Set once by whoever builds the process."""

        self._watchdog = Watchdog(call_limit_s)
        _ping_after_idle(self.engine, self._watchdog)
        _connect_in_time(self.engine)
        if is_armed("sql.statement"):
            event.listen(self.engine, "before_cursor_execute", lambda *_: failpoint("sql.statement"))

    @contextmanager
    def transaction(self) -> Generator[PlainConnection]:
        """A READ COMMITTED transaction, committed at the end of the block and rolled back by any exception."""
        witness = present_witness()
        with (
            kept_until_commit(self.count),
            _translated(),
            PlainConnection(self.engine) as conn,
            self._watchdog.guard(driver(conn)),
            conn.begin(),
        ):
            try:
                if witness:
                    witness.begin(conn)
                yield conn
                if witness:
                    witness.end(conn)
                failpoint("sql.commit")
                conn.send_commit()
            except BaseException:
                conn.send_rollback()
                raise
        if witness:
            witness.committed()
        failpoint("sql.committed")

    @contextmanager
    def reading(self) -> Generator[PlainConnection]:
        """For reads that need no common snapshot: each statement runs by itself, without BEGIN and COMMIT."""
        with _translated(), PlainConnection(self.engine) as conn, self._watchdog.guard(driver(conn)):
            connection = driver(conn)
            # At the driver, because SQLAlchemy takes four times as long to change the isolation level and back.
            connection.autocommit = True
            try:
                yield conn
            finally:
                if not connection.closed:
                    connection.autocommit = False

    @contextmanager
    def autocommit(self) -> Generator[PlainConnection]:
        """Each statement is a transaction of its own, committed when it returns. For writes of one statement: one
        round trip instead of three."""
        with kept_until_commit(self.count), self.reading() as conn:
            yield conn

    def now(self) -> datetime:
        with self.reading() as conn:
            return conn.execute(text("SELECT clock_timestamp()")).scalar_one()

    def close(self) -> None:
        self.engine.dispose()
        self._watchdog.close()


def limit_statements(conn: Connection, timeout_s: float) -> None:
    """Sets the time limit of all further statements of this transaction."""
    milliseconds = str(int(timeout_s * 1000))
    conn.execute(text("SELECT set_config('statement_timeout', :limit, true)"), {"limit": milliseconds})


def driver(conn: Connection) -> Any:
    return conn.connection.driver_connection


def _adapt(connection: Any, _record: Any) -> None:
    """Sends every integer as bigint, and lists of ids as text that needs no quotes. The driver would pick the smallest
    type for each value, and the server prepares a statement once for each combination of types, so it would parse and
    plan the same statement again for larger ids."""
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(list, PlainListDumper)


def _ping_after_idle(engine: Engine, watchdog: Watchdog) -> None:
    """Tests a connection at checkout if it has been idle for a while. SQLAlchemy's own ping tests at every checkout,
    and waits without a limit for a server that does not answer."""

    def note_idle(_connection: Any, record: Any) -> None:
        record.info["idle_since"] = time.monotonic()

    def ping(connection: Any, record: Any, _proxy: Any) -> None:
        idle_s = time.monotonic() - record.info.get("idle_since", math.inf)
        if idle_s < FRESH_S:
            return
        if has_unread_data(connection):
            # The server sends data on an idle connection only when it closes it.
            raise sqlalchemy.exc.DisconnectionError
        if idle_s < PING_AFTER_S:
            return
        try:
            with watchdog.guard(connection, PING_LIMIT_S):
                # Not by the driver, which would begin a transaction, and forget what it has prepared at its rollback.
                answer = connection.pgconn.exec_(b"SELECT 1")
        except psycopg.Error as error:
            raise sqlalchemy.exc.DisconnectionError from error
        if answer.status != ExecStatus.TUPLES_OK:
            raise sqlalchemy.exc.DisconnectionError

    event.listen(engine, "checkin", note_idle)
    event.listen(engine, "checkout", ping)


def _connect_in_time(engine: Engine) -> None:
    """Limits connecting to the time left for the request, because a frozen server accepts connections and sends
    nothing."""

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
    """Translates errors of SQLAlchemy, and of the driver where a fast query bypasses SQLAlchemy."""
    try:
        yield
    except (
        sqlalchemy.exc.OperationalError,
        sqlalchemy.exc.InterfaceError,
        sqlalchemy.exc.TimeoutError,
        psycopg.OperationalError,
        psycopg.InterfaceError,
        # The server closes the connection with this error, but the driver classes it as an internal error.
        psycopg.errors.IdleInTransactionSessionTimeout,
        OutOfTime,
    ) as error:
        raise DatabaseUnavailable("The database does not answer.") from error
    except sqlalchemy.exc.InternalError as error:
        if isinstance(error.orig, psycopg.errors.IdleInTransactionSessionTimeout):
            raise DatabaseUnavailable("The database has ended a transaction that stood still.") from error
        raise
