"""Tables that operators keep by hand: the directory, plans, routes and templates are listed, added to, edited and
retired in the same way, and differ in what is checked before.

What is retired stays, because actions and letters point at it, and is used no more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, Table, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.delivery.cursors import number_of
from app.delivery.models import NotificationType
from app.errors import Conflict, InvalidValue, NotFound
from app.settings import Settings

Values = dict[str, Any]
Entry = Row[Any]


@dataclass(frozen=True)
class House:
    """What this installation says about addresses and types."""

    country_code: str
    handover_types: frozenset[str]
    """Types of steps that another service carries out."""

    @classmethod
    def of(cls, settings: Settings) -> "House":
        return cls(settings.country_code, settings.handover_types)

    def check_step_type(self, field: str, channel_type: str) -> None:
        known = [*(type_.channel_type for type_ in NotificationType), *sorted(self.handover_types)]
        if channel_type not in known:
            raise InvalidValue(field, f"is not one of {', '.join(known)}")


@dataclass(frozen=True)
class EntryPage:
    items: list[Entry]
    next_cursor: str | None


Check = Callable[[Connection, Values, Entry | None, House], None]
"""Looks at the values of a new entry, or at the changes to one that is there, and brings them to their form."""


def _accept(_conn: Connection, _values: Values, _current: Entry | None, _house: House) -> None:
    """Where the form of the values is all there is to check."""


@dataclass(frozen=True)
class Entries:
    table: Table
    name: str
    check: Check = _accept
    retired: Callable[[Connection, Entry], None] = lambda _conn, _entry: None
    """What else has to happen when one is retired; it may also refuse."""
    conflicts: Mapping[str, Callable[[], Conflict]] = field(default_factory=dict[str, Callable[[], Conflict]])
    """What it means that a unique index refuses, by the name of the index."""

    def list(
        self, conn: Connection, filters: Values, *, cursor: str | None, limit: int, include_retired: bool = False
    ) -> EntryPage:
        """Newest first; ids are given out in the order of time."""
        columns = self.table.c
        query = select(self.table).order_by(columns.id.desc()).limit(limit + 1)
        query = query.where(*(columns[name] == value for name, value in filters.items()))
        if not include_retired:
            query = query.where(columns.retired_at.is_(None))
        if cursor is not None:
            query = query.where(columns.id < number_of(cursor))
        rows = list(conn.execute(query))
        return EntryPage(rows[:limit], str(rows[limit - 1].id) if len(rows) > limit else None)

    def get(self, conn: Connection, id_: int, *, lock: bool = False) -> Entry:
        """One that is in use; with `lock`, nobody else changes it before the caller has committed."""
        query = self._in_use(id_)
        entry = conn.execute(query.with_for_update(key_share=True) if lock else query).one_or_none()
        if entry is None:
            raise NotFound(f"There is no {self.name} with this id.")
        return entry

    def refer(self, conn: Connection, field: str, id_: int) -> Entry:
        """One that another entry is about to point at: it is not retired before that is committed."""
        entry = conn.execute(self._in_use(id_).with_for_update(read=True)).one_or_none()
        if entry is None:
            raise InvalidValue(field, f"is not the id of a {self.name} in use")
        return entry

    def create(self, conn: Connection, values: Values, house: House) -> Entry:
        self.check(conn, values, None, house)
        return self._written(conn, insert(self.table).values(values))

    def edit(self, conn: Connection, id_: int, changes: Values, house: House) -> Entry:
        """What is not among the changes stays as it is."""
        current = self.get(conn, id_)
        if not changes:
            return current
        self.check(conn, changes, current, house)
        columns = self.table.c
        statement = update(self.table).where(columns.id == id_, columns.retired_at.is_(None))
        return self._written(conn, statement.values(**changes, updated_at=func.clock_timestamp()))

    def retire(self, conn: Connection, id_: int) -> None:
        entry = self.get(conn, id_, lock=True)
        retire_all(conn, self.table, id=id_)
        self.retired(conn, entry)

    def _in_use(self, id_: int) -> Any:
        return select(self.table).where(self.table.c.id == id_, self.table.c.retired_at.is_(None))

    def _written(self, conn: Connection, statement: Any) -> Entry:
        try:
            entry = conn.execute(statement.returning(self.table)).one_or_none()
        except IntegrityError as error:
            index = str(getattr(getattr(error.orig, "diag", None), "constraint_name", None))
            if index in self.conflicts:
                raise self.conflicts[index]() from None
            raise
        if entry is None:
            raise NotFound(f"There is no {self.name} with this id.")
        return entry


def retire_all(conn: Connection, table: Table, **where: Any) -> None:
    now = func.clock_timestamp()
    meant = [table.c[name] == value for name, value in where.items()]
    conn.execute(update(table).where(table.c.retired_at.is_(None), *meant).values(retired_at=now, updated_at=now))
