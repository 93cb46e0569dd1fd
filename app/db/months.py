"""Tables in partitions by month.

The rows of these tables have ids of version 7, which increase with time, so each border between two months is an id.
A month ends at midnight UTC. A row whose month has no partition goes to the default partition, so none is ever refused.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import sqlalchemy.exc
import structlog
from sqlalchemy import Connection, text

from app.db.bites import GAVE_UP, Sweep, short_statements
from app.db.database import Database
from app.foundation.errors import Unavailable
from app.foundation.ids import earliest_id

log = structlog.get_logger(__name__)

AHEAD = 3
"""The number of months for which partitions are made in advance."""
TRIES = 100
PAUSE_S = 0.1
EXISTS_ALREADY = {"42P07", "42710", "42809", "23505", "42P01"}
"""Codes of errors of a process that another one has overtaken."""


@dataclass(frozen=True)
class MonthlyTable:
    name: str
    options: str = ""
    """Storage parameters of each partition."""

    @property
    def default(self) -> str:
        return f"{self.name}_default"

    def partition(self, month: date) -> "Partition":
        return Partition(self, month)


@dataclass(frozen=True)
class Partition:
    table: MonthlyTable
    month: date

    @property
    def name(self) -> str:
        return f"{self.table.name}_{self.month:%Y_%m}"

    @property
    def ends_at(self) -> datetime:
        return _midnight(following(self.month))

    @property
    def borders(self) -> tuple[UUID, UUID]:
        """The first id of this month, and the first id of the next."""
        return earliest_id(_midnight(self.month)), earliest_id(self.ends_at)


@dataclass(frozen=True)
class SweepByMonth:
    """A sweep for each month. The name of the table is replaced by that of the partition wherever it has an alias,
    because planning a statement for all partitions takes longer than running it."""

    table: MonthlyTable
    sweep: Sweep

    def of(self, partition: str) -> Sweep:
        def renamed(sql: str) -> str:
            return re.sub(rf"\b{self.table.name}(?= [a-z]\b)", partition, sql)

        table = partition if self.sweep.table == self.table.name else self.sweep.table
        chosen, another = renamed(self.sweep.chosen), renamed(self.sweep.another)
        return replace(self.sweep, table=table, chosen=chosen, another=another)


@dataclass(frozen=True)
class OldMonths:
    """How the rows of a table are forgotten by dropping its months."""

    table: MonthlyTable
    kept: str
    """A query that finds something if the month with the borders `{first}` and `{last}` must not be dropped."""
    rows: Sweep
    """Forgets single rows instead, in a month that cannot be dropped, and in the default partition."""
    counted: str = ""
    """A query on `{table}` for the part of SQL that becomes `{counted}` in `add`."""
    add: str = ""
    """A statement that is committed together with the drop. It must be short, but `counted` need not be."""
    seen: str = "SELECT ''"
    """A query for a text, which changes when somebody else forgets rows of the month that begins on `{month}`."""


Part = Sweep | SweepByMonth | OldMonths
"""How one table is forgotten."""


def following(month: date) -> date:
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


_PARTITIONS = text(
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
    " WHERE i.inhparent = CAST(:table AS regclass) AND NOT i.inhdetachpending ORDER BY c.relname"
)


def partition_names(conn: Connection, table: str) -> list[str]:
    return list(conn.execute(_PARTITIONS, {"table": table}).scalars())


def partitions(conn: Connection, table: MonthlyTable) -> list[Partition]:
    """The months that have a partition, oldest first. The default partition is left out."""
    found = [re.fullmatch(rf"{table.name}_(\d{{4}})_(\d\d)", name) for name in partition_names(conn, table.name)]
    return [Partition(table, date(int(match[1]), int(match[2]), 1)) for match in found if match]


def add_months(db: Database, tables: Sequence[MonthlyTable], ahead: int = AHEAD) -> list[str]:
    """Adds the missing partitions from this month on, and returns their names. Safe to call at any time, and by several
    processes at once."""
    with db.reading() as conn:
        today: datetime = conn.execute(text("SELECT clock_timestamp() AT TIME ZONE 'UTC'")).scalar_one()
        wanted = [(table, month) for table in tables for month in _from(today.date().replace(day=1), ahead)]
        known = {partition.name for table in tables for partition in partitions(conn, table)}
    missing = [partition for table, month in wanted if (partition := table.partition(month)).name not in known]
    return [partition.name for partition in missing if _add(db, partition)]


def _from(month: date, ahead: int) -> Iterator[date]:
    for _ in range(ahead + 1):
        yield month
        month = following(month)


_KEY = """
SELECT a.attname FROM pg_partitioned_table p
JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
WHERE p.partrelid = CAST(:table AS regclass)
"""
_HAS_ROWS = "SELECT EXISTS (SELECT FROM {default} WHERE {key} >= '{first}' AND {key} < '{last}')"
# A function of the database, because the role of the service does not own the tables. It makes the table first and
# attaches it afterwards, because attaching does not lock the whole table against writes, as making it in place would.
# It does lock the default partition, which is empty.
_ADD = "SELECT add_partition('{table}', '{month:%Y_%m}', ARRAY['{first}', '{last}'], '{options}')"


def _add(db: Database, partition: Partition) -> bool:
    values = _parts(partition)
    with db.reading() as conn:
        key = conn.execute(text(_KEY), {"table": partition.table.name}).scalar_one()
        if conn.execute(text(_HAS_ROWS.format(key=key, **values))).scalar_one():
            # These rows would have to be moved under a lock. They stay, and are forgotten one by one.
            log.error("month_is_in_default_partition", partition=partition.name)
            return False
    return in_short_locks(db, [_ADD.format(**values)], lambda conn: _exists(conn, partition))


def _exists(conn: Connection, partition: Partition) -> bool:
    return partition in partitions(conn, partition.table)


# One statement, so that its locks end with it. First the whole table and then the month, as all other statements lock.
_DROP = """
DO $$ BEGIN
    LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE;
    LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE;
    IF EXISTS ({kept}) OR ({seen}) <> '{seen_before}' THEN
        RETURN;
    END IF;
    {last_words}
    PERFORM drop_partition('{name}');
END $$
"""


def drop_month(db: Database, old: OldMonths, partition: Partition, tries: int = TRIES) -> int | None:
    """Drops a month together with its rows, and returns their number. None if some of them have to stay. Raises
    `TableBusy`."""
    values = _parts(partition)
    kept, seen, last_words = old.kept.format(**values), old.seen.format(**values), ""
    with db.reading() as conn:
        if conn.execute(text(kept)).first() is not None:
            return None
        seen_before = conn.execute(text(seen)).scalar_one()
        # Counting reads the whole month, so the limit of other statements does not fit.
        conn.execute(text("SET statement_timeout = 0"))
        try:
            rows: int = conn.execute(text(f"SELECT count(*) FROM {partition.name}")).scalar_one()
            if old.counted and rows:
                counted = conn.execute(text(old.counted.format(table=partition.name))).scalar_one()
                last_words = old.add.format(counted=counted) + ";"
        finally:
            conn.execute(text("RESET statement_timeout"))
    statement = _DROP.format(kept=kept, seen=seen, seen_before=seen_before, last_words=last_words, **values)
    is_dropped = in_short_locks(db, [statement], lambda conn: not _exists(conn, partition), tries)
    return rows if is_dropped else None


def _parts(partition: Partition) -> dict[str, Any]:
    first, last = partition.borders
    table = partition.table
    return {
        "table": table.name,
        "default": table.default,
        "name": partition.name,
        "first": first,
        "last": last,
        "options": table.options,
        "month": partition.month,
    }


class TableBusy(Unavailable):
    """Other transactions used the table all the time."""

    code = "table_busy"


def in_short_locks(
    db: Database, statements: Sequence[str], is_done: Callable[[Connection], bool], tries: int = TRIES
) -> bool:
    """Runs statements that lock whole tables for a moment, and tries again while others use them. Several processes may
    do this at the same time."""
    for _ in range(tries):
        with short_statements(db) as conn:
            try:
                for statement in statements:
                    conn.execute(text(statement))
                return is_done(conn)
            except sqlalchemy.exc.DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in GAVE_UP | EXISTS_ALREADY:
                    raise
            if is_done(conn):
                return True
        time.sleep(PAUSE_S)
    raise TableBusy("Other transactions use this table all the time; try again later.")
