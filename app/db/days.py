"""Tables in partitions by day, of a column `day`. Days begin at midnight UTC."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

import structlog
from sqlalchemy import Connection, text

from app.db.database import Database
from app.db.months import in_short_locks, partition_names

log = structlog.get_logger(__name__)

AHEAD = 3
"""The number of days for which partitions are made in advance."""


@dataclass(frozen=True)
class DailyTable:
    name: str

    @property
    def default(self) -> str:
        return f"{self.name}_default"

    def partition(self, day: date) -> str:
        return f"{self.name}_{day:%Y_%m_%d}"

    def day_of(self, partition: str) -> date | None:
        """None for the default partition."""
        found = re.fullmatch(rf"{self.name}_(\d{{4}})_(\d\d)_(\d\d)", partition)
        return date(*map(int, found.groups())) if found else None


def add_days(db: Database, table: DailyTable, ahead: int = AHEAD) -> list[str]:
    """Adds the missing partitions from today on, and returns their names. Safe to call at any time, and by several
    processes at once."""
    with db.reading() as conn:
        today = _today(conn)
        known = set(partition_names(conn, table.name))
    wanted = [today + timedelta(days=number) for number in range(ahead + 1)]
    missing = [day for day in wanted if table.partition(day) not in known]
    return [table.partition(day) for day in missing if _add(db, table, day)]


def _add(db: Database, table: DailyTable, day: date) -> bool:
    with db.reading() as conn:
        if conn.execute(text(f"SELECT FROM {table.default} WHERE day = :day LIMIT 1"), {"day": day}).first():
            # These rows would have to be moved under a lock. They stay, and are deleted when their time has come.
            log.error("day_is_in_default_partition", table=table.name, day=f"{day}")
            return False
    borders = f"ARRAY['{day}', '{day + timedelta(days=1)}']"
    statement = f"SELECT add_partition('{table.name}', '{day:%Y_%m_%d}', {borders}, '')"
    return in_short_locks(db, [statement], partial(_exists, table=table, day=day))


def drop_days(db: Database, table: DailyTable, kept_days: int) -> list[str]:
    """Drops the days that ended more than `kept_days` ago, and returns their names. Raises `TableBusy`."""
    with db.reading() as conn:
        first = _today(conn) - timedelta(days=kept_days)
        found = [(table.day_of(name), name) for name in partition_names(conn, table.name)]
    old = [(day, name) for day, name in found if day is not None and day < first]
    for day, name in old:
        in_short_locks(
            db, [f"SELECT drop_partition('{name}')"], lambda conn, day=day: not _exists(conn, table=table, day=day)
        )
    if old:
        with db.autocommit() as conn:
            conn.execute(text(f"DELETE FROM {table.default} WHERE day < :first"), {"first": first})
    return [name for _, name in old]


def _today(conn: Connection) -> date:
    return conn.execute(text("SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date")).scalar_one()


def _exists(conn: Connection, *, table: DailyTable, day: date) -> bool:
    return table.partition(day) in partition_names(conn, table.name)
