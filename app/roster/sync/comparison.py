"""Compares the lists of a kind with those of the run before, and applies and publishes what has changed.

It locks nothing that matching uses. It leaves the names of the people who changed in `roster_to_apply`, and they
enter and leave the service after the commit, a few at a time.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from app.db.database import driver
from app.roster.kinds.kind import Kind, ListDeclaration, ListSource
from app.roster.sync import statements
from app.roster.sync.guards import (
    GuardLimits,
    Held,
    ListChanges,
    WeekBefore,
    any_above_floor,
    blanked_columns,
    columns_blanked_this_week,
    modifications_held_back,
    removals_held_back,
)
from app.roster.sync.models import ChangeType

ADVISORY_LOCK = 8370142691

# The transaction may take minutes and waits for the parser between two statements. Hash tables of a list with 1,500,000
# people fit into this memory.
BEGIN = (
    "SET LOCAL statement_timeout = '30min'",
    "SET LOCAL idle_in_transaction_session_timeout = '30min'",
    "SET LOCAL work_mem = '128MB'",
    "SET LOCAL random_page_cost = 1",
    # The planner expects too many rows of a full join, and would sort whole lists where hash tables are faster.
    "SET LOCAL enable_mergejoin = off",
)

STORAGE = "fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02"

CountRisk = Callable[[Connection, Kind], Mapping[str, int]]
"""Counts whom the removals of a run would hit. The table `_changes` still has them."""
Pieces = Iterable[bytes]
"""Rows in the text format of COPY."""
Step = Callable[[str, str, int], None]
"""Called with a kind or list, the part that begins or goes on, and the records so far; may raise to stop."""


class RunParts:
    """Turns the steps of a run into a number that grows, and a note."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], None] = {}

    def reach(self, place: str, part: str, records: int) -> tuple[int, str]:
        self._seen[place, part] = None
        return len(self._seen), f"{place} {part}" + (f" {records:,}" if records else "")


class AlreadyRunning(Exception):
    """Another run holds the lock."""


@dataclass(frozen=True)
class Rules:
    limits: GuardLimits
    retention_days: int
    """For how long changes can be read."""


@dataclass(frozen=True)
class KindReport:
    kind: str
    rows: int
    added: int
    modified: int
    removed: int
    is_first: bool
    removals_held: Held | None
    removals_found: int
    """More than `removed` if they are held back."""
    modifications_held: Held | None
    modifications_found: int
    blanked: Sequence[str]
    """The columns that were emptied in too many rows."""
    emptied: Mapping[str, int]
    """By column, in how many rows it was emptied."""
    last_position: int
    list_hash: str
    at_risk: Mapping[str, int] | None = None
    """Whom the removals would hit; only of a dry run."""

    @property
    def is_held_back(self) -> bool:
        return self.removals_held is not None or self.modifications_held is not None

    @property
    def held_back(self) -> int:
        """How many changes."""
        removals = self.removals_found if self.removals_held else 0
        return removals + (self.modifications_found if self.modifications_held else 0)

    @property
    def has_changes(self) -> bool:
        return bool(self.added or self.modified or self.removed)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Before:
    """The kind as the last run left it."""

    rows: int
    last_position: int
    changed_at: datetime | None
    """None before the first run."""

    @property
    def is_first(self) -> bool:
        """A list that was emptied and is filled again is not new: its readers follow the changes."""
        return self.changed_at is None


def begin(conn: Connection) -> None:
    """Raises `AlreadyRunning`."""
    _set_limits(conn)
    if not conn.execute(text("SELECT pg_try_advisory_xact_lock(:lock)"), {"lock": ADVISORY_LOCK}).scalar_one():
        raise AlreadyRunning


def begin_preview(conn: Connection) -> None:
    """Beside a run that may commit in between, so all is read from one snapshot."""
    conn.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
    _set_limits(conn)


def _set_limits(conn: Connection) -> None:
    for statement in BEGIN:
        conn.execute(text(statement))


def copy_list(conn: Connection, source: ListSource, declaration: ListDeclaration, pieces: Pieces) -> None:
    conn.execute(text(statements.create_raw_table(source, declaration)))
    _copy(conn, source, declaration, pieces)
    conn.execute(text(f"ANALYZE {statements.raw_table(source, declaration)} (document, identifier)"))


def has_same_list(conn: Connection, kind: Kind, list_hash: bytes) -> bool:
    """Whether the last run has applied this very list."""
    values = {"document_type": kind.document_type, "list_hash": list_hash.hex()}
    return conn.execute(text(statements.HAS_SAME_LIST), values).first() is not None


def touch(conn: Connection, kind: Kind, list_hash: bytes, run_id: int, rules: Rules) -> bool:
    """True if the list is the same: then it is only noted that it still is, and old changes are forgotten."""
    values = {"document_type": kind.document_type, "list_hash": list_hash.hex(), "run_id": run_id}
    if conn.execute(text(statements.TOUCH), values).rowcount == 0:
        return False
    conn.execute(text(statements.FORGET_OLD), {"document_type": kind.document_type, "days": rules.retention_days})
    return True


def _copy(conn: Connection, source: ListSource, declaration: ListDeclaration, pieces: Pieces) -> None:
    columns = ", ".join(statements.raw_columns(source))
    try:
        with (
            driver(conn).cursor() as cursor,
            cursor.copy(f"COPY {statements.raw_table(source, declaration)} ({columns}) FROM STDIN") as copy,
        ):
            for piece in pieces:
                copy.write(piece)
    except conn.dialect.loaded_dbapi.Error as error:
        # After its first line the message quotes the row: number, name and phone.
        error.args = (str(error).partition("\n")[0],)
        raise


def compare(conn: Connection, kind: Kind, list_hash: bytes, run_id: int, rules: Rules, step: Step) -> KindReport:
    _make_partition(conn, kind)

    def is_approved() -> bool:
        """Uses the approval up: it was given for this very list, once."""
        return conn.execute(text(statements.USE_APPROVAL), _of_list(kind, list_hash) | {"run_id": run_id}).rowcount > 0

    before = _read_state(conn, kind)
    report = _find_changes(conn, kind, before, list_hash, rules, step, is_approved)
    step(kind.name, "apply", 0)
    _apply(conn, kind, before, report, run_id, rules)
    conn.execute(text(statements.drop_tables(kind)))
    return report


def preview(
    conn: Connection, kind: Kind, list_hash: bytes, rules: Rules, step: Step, count_risk: CountRisk
) -> KindReport:
    """What `compare` would do. It writes to temporary tables only, so it needs no lock."""

    def is_approved() -> bool:
        return conn.execute(text(statements.HAS_APPROVAL), _of_list(kind, list_hash)).first() is not None

    report = _find_changes(conn, kind, _read_state(conn, kind), list_hash, rules, step, is_approved)
    report = replace(report, at_risk=count_risk(conn, kind))
    conn.execute(text(statements.drop_tables(kind)))
    return report


def _of_list(kind: Kind, list_hash: bytes) -> dict[str, Any]:
    return {"document_type": kind.document_type, "list_hash": list_hash}


def _find_changes(
    conn: Connection,
    kind: Kind,
    before: _Before,
    list_hash: bytes,
    rules: Rules,
    step: Step,
    is_approved: Callable[[], bool],
) -> KindReport:
    """Fills `_changes` with those that are not held back."""
    step(kind.name, "compare", 0)
    for declaration in kind.source.lists:
        conn.execute(text(statements.create_repeated(kind, declaration)))
    for statement in (statements.create_changes(kind), "ANALYZE _changes (identifier, change_type)"):
        conn.execute(text(statement))
    changes = _count(conn, kind, before, rules.limits)
    held = {} if before.is_first else _held_back(changes, rules.limits)
    if held and is_approved():
        held = {}
    for change_type in held:
        conn.execute(text(statements.HOLD_BACK), {"change_type": change_type})
    return _report(kind, before, changes, held, rules.limits, list_hash)


def _make_partition(conn: Connection, kind: Kind) -> None:
    """Attached, because `PARTITION OF` would lock all lists for readers until the run commits.

    A page has room for the rows that change in it in one night, so that no index entry is written for them, and the
    next night uses the room again. Migration 0008 has the same for lists that were there before it.
    """
    number = kind.document_type
    if conn.execute(text(f"SELECT to_regclass('roster_rows_{number}')")).scalar_one() is None:
        conn.execute(text(f"SELECT add_partition('roster_rows', '{number}', ARRAY['{number}'], '{STORAGE}')"))


def _read_state(conn: Connection, kind: Kind) -> _Before:
    last = conn.execute(text(statements.LAST), {"document_type": kind.document_type}).one_or_none()
    if last is None:
        return _Before(rows=0, last_position=0, changed_at=None)
    return _Before(last.rows, last.last_position, last.changed_at)


def _count(conn: Connection, kind: Kind, before: _Before, limits: GuardLimits) -> ListChanges:
    found = {row.change_type: row.rows for row in conn.execute(text(statements.COUNT_CHANGES))}
    added, modified, removed = (found.get(change_type, 0) for change_type in ChangeType)
    week = _week(conn, kind, before)
    blanked = _values(conn, statements.count_blanked(kind)) if modified else {}
    # To count the values reads the whole table.
    filled = _values(conn, statements.count_values(kind)) if any_above_floor(blanked, week, limits) else {}
    return ListChanges(
        before=before.rows,
        after=before.rows + added - removed,
        added=added,
        modified=modified,
        removed=removed,
        week=week,
        filled=filled,
        blanked=blanked,
    )


def _week(conn: Connection, kind: Kind, before: _Before) -> WeekBefore:
    found = conn.execute(text(statements.WEEK), {"document_type": kind.document_type}).one()
    blanked: Counter[str] = Counter()
    for values in found.blanked:
        blanked.update(values)
    rows = before.rows + found.removed if found.rows is None else found.rows
    return WeekBefore(rows, found.removed, found.modified, blanked)


def _values(conn: Connection, statement: str) -> dict[str, int]:
    return dict(conn.execute(text(statement)).mappings().one())


def _held_back(changes: ListChanges, limits: GuardLimits) -> dict[ChangeType, Held]:
    found = {
        ChangeType.REMOVED: removals_held_back(changes, limits),
        ChangeType.MODIFIED: modifications_held_back(changes, limits),
    }
    return {change_type: reason for change_type, reason in found.items() if reason is not None}


def _report(
    kind: Kind,
    before: _Before,
    changes: ListChanges,
    held: Mapping[ChangeType, Held],
    limits: GuardLimits,
    list_hash: bytes,
) -> KindReport:
    modifications_are_held = ChangeType.MODIFIED in held
    removed = 0 if ChangeType.REMOVED in held else changes.removed
    modified = 0 if modifications_are_held else changes.modified
    published = 0 if before.is_first else changes.added + modified + removed
    return KindReport(
        kind=kind.name,
        rows=before.rows + changes.added - removed,
        added=changes.added,
        modified=modified,
        removed=removed,
        is_first=before.is_first,
        removals_held=held.get(ChangeType.REMOVED),
        removals_found=changes.removed,
        modifications_held=held.get(ChangeType.MODIFIED),
        modifications_found=changes.modified,
        blanked=sorted({*blanked_columns(changes, limits), *columns_blanked_this_week(changes, limits)}),
        emptied={name: count for name, count in changes.blanked.items() if count and not modifications_are_held},
        last_position=before.last_position + published,
        list_hash=list_hash.hex(),
    )


def _apply(conn: Connection, kind: Kind, before: _Before, report: KindReport, run_id: int, rules: Rules) -> None:
    changed_at = conn.execute(text(statements.CHANGED_AT), {"before": before.changed_at}).scalar_one()
    values = {
        "document_type": kind.document_type,
        "run_id": run_id,
        "changed_at": changed_at,
        "first_position": before.last_position,
        "last_position": report.last_position,
        "rows": report.rows,
        "removed": report.removed,
        "report": json.dumps(report.to_dict()),
        "days": rules.retention_days,
        "list_hash": None if report.is_held_back else report.list_hash,
    }
    # Nobody has asked for changes before there was a list, and a first list would fill the table.
    published = [] if before.is_first else [statements.PUBLISH]
    followed = [] if kind.role is None else [statements.TAKE_FROM_QUEUE, statements.TO_APPLY]
    applied = [statements.INSERT_ADDED, statements.UPDATE_MODIFIED, statements.DELETE_REMOVED]
    saved = [statements.SAVE_METADATA, statements.SAVE_STATE, statements.FORGET_OLD]
    for statement in (*applied, *published, *followed, *saved):
        named = {name: value for name, value in values.items() if f":{name}" in statement}
        conn.execute(text(statement), named)
