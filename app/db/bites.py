"""Changes many rows in bites, each one so short that nobody notices its locks.

A bite is one statement that commits by itself, so its locks do not depend on this process: they end with the statement
even if this process stands still. The statement skips rows that others have locked, so it waits for nobody, and has a
time limit. The number of rows in a bite follows the time that the last one took.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

import sqlalchemy.exc
from sqlalchemy import Column, Connection, DateTime, Table, Text, TextClause, func, text

from app.db.database import Database
from app.db.schema import metadata

Result = TypeVar("Result")

AIM_MS = 30.0
LIMIT_MS = 80
"""PostgreSQL ends a bite after this time, and the next one is smaller."""
FIRST, MOST = 100, 5_000
PATIENCE, PAUSE_S = 20, 0.5
"""How often, and after which pause, a single row is tried again that took too long, because the database is busy."""
CONNECTION_S = 5.0
"""The watchdog of the database ends calls that hold a connection for much longer."""
LOCK_TIMEOUT_MS = 50
"""Whoever waits for the lock of a whole table makes all others wait behind it, so it gives up soon."""
GAVE_UP = {"55P03", "57014", "40P01"}
"""Codes of errors after which another try may succeed: no lock, out of time, deadlock."""

# How far each kind of work has come. Everything up to the mark is done.
retention_marks = Table(
    "retention_marks",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("mark", Text, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
)


class KeyType(StrEnum):
    """The type of a column that orders rows, with a value that is smaller than all others."""

    UUID = "uuid"
    BIGINT = "bigint"
    TEXT = "text"
    TIME = "timestamptz"

    @property
    def least(self) -> str:
        return _LEAST[self]


_LEAST = {
    KeyType.UUID: "'00000000-0000-0000-0000-000000000000'::uuid",
    KeyType.BIGINT: "'-9223372036854775808'::bigint",
    KeyType.TEXT: "''::text",
    KeyType.TIME: "'-infinity'::timestamptz",
}


@dataclass(frozen=True)
class Sweep:
    """A change of some rows of one table, as parts of SQL. `t` is the table. The parameters are `:cutoff`, a time, and
    `:before`, the first id of that time."""

    table: str
    key: KeyType
    chosen: str
    """The condition of the rows that are changed."""
    sets: str = ""
    """The columns that are set. If empty, the rows are deleted."""
    another: str = ""
    """Another table with its alias, such as `offers o`: its rows are changed instead. They have a column `id`."""
    linked: str = ""
    """The condition of the rows of the other table that belong to a row of `t`."""
    returned: str = "1"
    then: str = ""
    """A statement that reads the returned columns from `changed`."""
    order: str = "id"
    """An indexed column, in whose order rows are examined."""
    identity: str = "id"
    """The column by which rows are locked and changed."""
    examined: str = "true"
    """The condition of the rows that are examined. The index on `order` decides it."""
    since: str = "t.created_at"
    """The age of a row, for the oldest in a dry run."""
    waits_for: str = "false"
    """The condition of rows that are not chosen yet and will be. The mark stays before them."""
    is_in_time_order: bool = False
    """The rows are in the order of their age, so a bite without a row to be changed is the last."""
    mark: str | None = None
    """The name under which the place is kept for the next run. Without a name, each run begins at the start."""
    behind: str | None = None
    """The mark of an earlier sweep, which changes all rows after it."""
    up_to_behind: str = "true"
    """The condition of the rows up to that mark, `:behind`. A dry run counts only these."""

    @property
    def bite(self) -> TextClause:
        """Examines at most `:size` rows after `:after`, or a few more that have the same place."""
        locked = "FOR NO KEY UPDATE" if self.sets else "FOR UPDATE"
        return text(f"""
        WITH seen AS MATERIALIZED (
            SELECT t.{self.order} AS place, t.{self.identity} AS identity FROM {self.table} t
             WHERE {self._after} AND {self.examined} ORDER BY t.{self.order} FETCH FIRST :size ROWS WITH TIES
        ), free AS MATERIALIZED (
            SELECT t.{self.identity} AS identity FROM {self.table} t
             WHERE t.{self.identity} = ANY(ARRAY(SELECT identity FROM seen)) AND {self.chosen} {locked} SKIP LOCKED
        ), changed AS (
            {self._change} t.{self.identity} = ANY(ARRAY(SELECT identity FROM free))
            RETURNING {self.returned}
        ){f", followed AS ({self.then})" if self.then else ""}
        SELECT (SELECT count(*) FROM changed) AS done,
               (SELECT place::text FROM seen ORDER BY place DESC LIMIT 1) AS last,
               (SELECT count(*) FROM {self.table} t WHERE t.{self.identity} = ANY(ARRAY(SELECT identity FROM seen))
                   AND ({self.chosen} OR {self.waits_for}))
               - (SELECT count(*) FROM free) AS skipped""")

    @property
    def count(self) -> TextClause:
        return text(f"""
        SELECT {self._counted} AS rows, min({self.since}) AS oldest FROM {self.table} t {self._join}
         WHERE {self._after} AND {self.examined} AND {self.chosen} AND {self.up_to_behind}""")

    @property
    def _counted(self) -> str:
        # Several rows of `t` may belong to the same row of the other table, which is changed once.
        return f"count(DISTINCT {self.another.split()[1]}.id)" if self.another else "count(*)"

    @property
    def _join(self) -> str:
        return f"JOIN {self.another} ON {self.linked}" if self.another else ""

    @property
    def _change(self) -> str:
        if self.another:
            return f"UPDATE {self.another} SET {self.sets} FROM {self.table} t WHERE {self.linked} AND"
        change = f"UPDATE {self.table} t SET {self.sets}" if self.sets else f"DELETE FROM {self.table} t"
        return f"{change} WHERE"

    @property
    def _after(self) -> str:
        return f"t.{self.order} > coalesce(CAST(:after AS {self.key.value}), {self.key.least})"


@dataclass
class Eaten:
    """What a sweep has done."""

    rows: int = 0
    skipped: int = 0
    bites: int = 0
    longest_ms: float = 0.0
    """Of all bites, also those that were ended by the time limit."""
    is_finished: bool = True
    """False if the work was cancelled."""


def eat(
    db: Database,
    sweep: Sweep,
    values: Mapping[str, Any],
    *,
    cancelled: Callable[[], bool] = lambda: False,
    note: Callable[[int], None] = lambda _rows: None,
) -> Eaten:
    """`note` is told the number of rows so far after each bite."""
    eaten, size, patience, statement = Eaten(), FIRST, PATIENCE, sweep.bite
    after, is_whole = read_mark(db, sweep.mark), True
    while True:
        with short_statements(db) as conn:
            give_back_at = time.monotonic() + CONNECTION_S
            while time.monotonic() < give_back_at:
                if cancelled():
                    eaten.is_finished = False
                    return eaten
                began = time.monotonic()
                at = {**values, "after": after, "size": size}
                bite = in_time(lambda at=at: conn.execute(statement, at).one())
                took_ms = (time.monotonic() - began) * 1e3
                eaten.bites += 1
                eaten.longest_ms = max(eaten.longest_ms, took_ms)
                if bite is None:
                    if size == 1:
                        patience -= 1
                        time.sleep(PAUSE_S)
                    if patience == 0:
                        raise BiteTooLarge(sweep.table)
                    size = max(size // 4, 1)
                    continue
                if bite.last is None:
                    return eaten
                eaten.rows += bite.done
                eaten.skipped += bite.skipped
                if sweep.is_in_time_order and not (bite.done or bite.skipped):
                    return eaten
                # Rows that were skipped lie after the mark, so that the next run finds them.
                is_whole = is_whole and not bite.skipped
                after = bite.last
                if sweep.mark is not None and is_whole:
                    # One that takes too long is left out: the next one is further on.
                    mark = {"kind": sweep.mark, "mark": after}
                    in_time(lambda mark=mark: conn.execute(_WRITE_MARK, mark))
                note(eaten.rows)
                size = next_size(size, took_ms)


class BiteTooLarge(Exception):
    """A statement for a single row took longer than the limit, many times. The database is overloaded."""


def in_time(work: Callable[[], Result]) -> Result | None:
    """None if the time limit ended it."""
    try:
        return work()
    except sqlalchemy.exc.DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in GAVE_UP:
            return None
        raise


def next_size(size: int, took_ms: float) -> int:
    wanted = int(size * AIM_MS / max(took_ms, 1.0))
    return min(max(wanted, size // 2, 1), size * 2, MOST)


# Does not wait for the disk, because a bite that is lost in a crash is repeated. Plans each statement for its values,
# because a plan for any number of rows may read a whole table.
_SETTINGS = {
    "statement_timeout": f"{LIMIT_MS}",
    "lock_timeout": f"{LOCK_TIMEOUT_MS}",
    "synchronous_commit": "off",
    "plan_cache_mode": "force_custom_plan",
}
# Reads rows by their keys although no statistics say yet that a table has just been filled.
BY_KEYS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
}


@contextmanager
def short_statements(db: Database, planned: Mapping[str, str] = MappingProxyType({})) -> Generator[Connection]:
    """Each statement commits by itself, and PostgreSQL ends it after `LIMIT_MS`."""
    settings = {**_SETTINGS, **planned}
    chosen = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
    with db.autocommit() as conn:
        conn.execute(text(f"SELECT {chosen}"))
        try:
            yield conn
        finally:
            if not conn.invalidated:
                conn.execute(text("RESET ALL"))


_READ_MARK = text("SELECT mark FROM retention_marks WHERE kind = :kind")
_WRITE_MARK = text(
    "INSERT INTO retention_marks (kind, mark) VALUES (:kind, :mark)"
    " ON CONFLICT (kind) DO UPDATE SET mark = excluded.mark, updated_at = clock_timestamp()"
)


def read_mark(db: Database, kind: str | None) -> str | None:
    if kind is None:
        return None
    with db.reading() as conn:
        return conn.execute(_READ_MARK, {"kind": kind}).scalar_one_or_none()
