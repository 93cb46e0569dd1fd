"""Tables that operators edit. All of them are listed, added to, changed and retired in the same way; each has its own
checks before a row is written. A retired row stays, because other rows refer to it, but is no longer used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Table, func, insert, select, text, true, update
from sqlalchemy.exc import IntegrityError

from app.foundation.clock import rfc3339
from app.foundation.errors import Conflict, InvalidValue, NotFound
from app.foundation.pages import Page, page_of, parse_number
from app.foundation.state_machine import TransitionTable, check_transition, sources


class ChangedMeanwhile(Conflict):
    """Somebody else has changed it after the `updatedAt` that was sent; read it again."""

    code = "changed_meanwhile"

    def __init__(self) -> None:
        super().__init__("Somebody else has changed this meanwhile. Read it again.")


IN_USE = text("retired_at IS NULL")
EVERY_ROW = true()
Seen = ColumnElement[bool]
"""Which rows the caller sees. The others do not exist for them."""

Values = dict[str, Any]
TableRow = Row[Any]
Rules = TypeVar("Rules")
"""The settings that the checks of a table use."""


Check = Callable[[Connection, Values, TableRow | None, Rules], None]
"""Checks the values of a new row, or the changes to an existing one, and normalises them."""


def _accept(_conn: Connection, _values: Values, _current: TableRow | None, _rules: object) -> None:
    """For tables whose values need no further check."""


@dataclass(frozen=True)
class EditableTable(Generic[Rules]):
    table: Table
    name: str
    check: Check[Rules] = _accept
    after_retire: tuple[Callable[[Connection, TableRow], None], ...] = ()
    """Run after a row was retired, in the same transaction and in this order. Each may refuse by raising an error."""
    conflicts: Mapping[str, Callable[[], Conflict]] = field(default_factory=dict[str, Callable[[], Conflict]])
    """The error to raise if a unique index is violated, by the name of the index."""
    states: Mapping[str, TransitionTable[Any]] = field(default_factory=dict[str, TransitionTable[Any]])
    """The columns that hold a state, with their transitions. A check that changes a state has locked the row."""

    def list(
        self,
        conn: Connection,
        filters: Values,
        *,
        seen: Seen,
        cursor: str | None,
        limit: int,
        include_retired: bool = False,
    ) -> Page[TableRow]:
        """Newest first: later rows have higher ids."""
        columns = self.table.c
        query = select(self.table).where(seen).order_by(columns.id.desc()).limit(limit + 1)
        query = query.where(*(columns[name] == value for name, value in filters.items()))
        if not include_retired:
            query = query.where(columns.retired_at.is_(None))
        if cursor is not None:
            query = query.where(columns.id < parse_number(cursor))
        return page_of(conn.execute(query).all(), limit, lambda row: row)

    def show(self, conn: Connection, id_: int, *, seen: Seen = EVERY_ROW) -> TableRow:
        """A row, whether it is retired or in use, because rows that refer to it are shown too."""
        return self._found(conn.execute(select(self.table).where(self.table.c.id == id_, seen)).one_or_none())

    def get(self, conn: Connection, id_: int, *, seen: Seen = EVERY_ROW, lock: bool = False) -> TableRow:
        """A row in use. With `lock`, no other transaction changes it before the caller has committed."""
        query = self._in_use(id_).where(seen)
        return self._found(conn.execute(query.with_for_update(key_share=True) if lock else query).one_or_none())

    def refer(self, conn: Connection, field: str, id_: int) -> TableRow:
        """Locks a row that another row will refer to, so that it cannot be retired before the caller has committed."""
        row = conn.execute(self._in_use(id_).with_for_update(read=True)).one_or_none()
        if row is None:
            raise InvalidValue(field, f"is not the id of a {self.name} in use")
        return row

    def create(self, conn: Connection, values: Values, rules: Rules) -> TableRow:
        self.check(conn, values, None, rules)
        for name in values.keys() & self.states:
            check_transition(self.states[name], None, values[name])
        return self._written(conn, insert(self.table).values(values))

    def edit(self, conn: Connection, id_: int, changes: Values, rules: Rules) -> TableRow:
        """Changes the given columns only. `updated_at` is no change, but the state that the caller has seen; whoever
        gives it has locked the row, or what it belongs to."""
        current = self.get(conn, id_)
        changes = _unless_changed(current, changes)
        if not changes:
            return current
        self.check(conn, changes, current, rules)
        columns = self.table.c
        statement = update(self.table).where(columns.id == id_, columns.retired_at.is_(None))
        for name in changes.keys() & self.states:
            allowed = [changes[name], *sources(self.states[name], changes[name])]
            statement = statement.where(columns[name].in_(allowed))
        return self._written(conn, statement.values(**changes, updated_at=func.clock_timestamp()))

    def retire(self, conn: Connection, id_: int) -> None:
        row = self.get(conn, id_, lock=True)
        retire_all(conn, self.table, id=id_)
        for callback in self.after_retire:
            callback(conn, row)

    def _in_use(self, id_: int) -> Any:
        return select(self.table).where(self.table.c.id == id_, self.table.c.retired_at.is_(None))

    def _written(self, conn: Connection, statement: Any) -> TableRow:
        try:
            row = conn.execute(statement.returning(self.table)).one_or_none()
        except IntegrityError as error:
            index = str(getattr(getattr(error.orig, "diag", None), "constraint_name", None))
            if index in self.conflicts:
                raise self.conflicts[index]() from None
            raise
        return self._found(row)

    def _found(self, row: TableRow | None) -> TableRow:
        if row is None:
            raise NotFound(f"There is no {self.name} with this id.")
        return row


def _unless_changed(current: TableRow, changes: Values) -> Values:
    seen_at = changes.get("updated_at")
    if seen_at is not None and seen_at != rfc3339(current.updated_at):
        raise ChangedMeanwhile
    return {name: value for name, value in changes.items() if name != "updated_at"}


def retire_all(conn: Connection, table: Table, **where: Any) -> None:
    """Locks the rows in the order of their ids, as all transactions do that lock several."""
    now = func.clock_timestamp()
    conditions = [table.c[name] == value for name, value in where.items()]
    in_use = select(table.c.id).where(table.c.retired_at.is_(None), *conditions)
    held = in_use.order_by(table.c.id).with_for_update(key_share=True).cte("held")
    conn.execute(update(table).where(table.c.id == held.c.id).values(retired_at=now, updated_at=now))
