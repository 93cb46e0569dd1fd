"""Lists, as if runs had read them: rows, changes and runs straight in the tables."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from sqlalchemy import Connection, text

from app.roster.kinds.kind import Kind
from app.roster.models import ChangeType


@dataclass(frozen=True)
class RowChange:
    change_type: ChangeType
    identifier: str
    fields: dict[str, Any] | None = None
    aliases: list[dict[str, Any]] | None = None


def added(identifier: str, **fields: Any) -> RowChange:
    return RowChange(ChangeType.ADDED, identifier, fields, [{"alias": "itu", "type": "ENROLMENT"}])


def modified(identifier: str, **fields: Any) -> RowChange:
    return RowChange(ChangeType.MODIFIED, identifier, fields, [{"alias": "itu", "type": "ENROLMENT"}])


def removed(identifier: str) -> RowChange:
    return RowChange(ChangeType.REMOVED, identifier)


_STATE = text("SELECT last_position FROM roster_states WHERE document_type = :kind")
_RUN = text("INSERT INTO roster_runs (status, started_at, report) VALUES ('SUCCEEDED', :at, '{}') RETURNING id")
_METADATA = text(
    """
    INSERT INTO sync_metadata
           (document_type, run_id, changed_at, first_position, last_position, rows, removed, report)
    VALUES (:kind, :run, :at, :first, :last, 0, 0, '{}')
    """
)
_SAVE = text(
    """
    INSERT INTO roster_states (document_type, last_position, kept_from, rows) VALUES (:kind, :last, 0, 0)
    ON CONFLICT (document_type) DO UPDATE SET last_position = excluded.last_position
    """
)
_CHANGE = text(
    """
    INSERT INTO roster_changes (document_type, position, change_type, changed_at, identifier, fields, aliases)
    VALUES (:kind, :position, :change_type, :at, :identifier, CAST(:fields AS jsonb), CAST(:aliases AS jsonb))
    """
)
_PUT = text(
    """
    INSERT INTO roster_rows (document_type, identifier, content_hash, fields, aliases)
    VALUES (:kind, :identifier, :hash, CAST(:fields AS jsonb), CAST(:aliases AS jsonb))
    ON CONFLICT (document_type, identifier)
    DO UPDATE SET content_hash = excluded.content_hash, fields = excluded.fields, aliases = excluded.aliases
    """
)
_TAKE = text("DELETE FROM roster_rows WHERE document_type = :kind AND identifier = :identifier")


def add_run(conn: Connection, kind: Kind, at: datetime, changes: Sequence[RowChange] = ()) -> None:
    """The first run of a kind publishes no changes."""
    number = kind.document_type
    before = conn.execute(_STATE, {"kind": number}).scalar_one_or_none()
    first, published = before or 0, [] if before is None else changes
    if before is None:
        add = f"SELECT add_partition('roster_rows', '{number}', ARRAY['{number}'], '')"
        conn.execute(text(f"{add} WHERE to_regclass('roster_rows_{number}') IS NULL"))
    values = {"kind": number, "at": at, "first": first, "last": first + len(published)}
    conn.execute(_METADATA, values | {"run": conn.execute(_RUN, {"at": at}).scalar_one()})
    conn.execute(_SAVE, {"kind": number, "last": first + len(published)})
    rows = [
        {
            "kind": number,
            "at": at,
            "position": position,
            "change_type": change.change_type,
            "identifier": change.identifier,
            "fields": _json(change.fields),
            "aliases": _json(change.aliases),
            "hash": uuid5(NAMESPACE_OID, repr(change)),
        }
        for position, change in enumerate(changes, first + 1)
    ]
    for statement, chosen in (
        (_CHANGE, rows if published else []),
        (_PUT, [row for row in rows if row["fields"] is not None]),
        (_TAKE, [row for row in rows if row["fields"] is None]),
    ):
        if chosen:
            names = statement.compile().params.keys()
            conn.execute(statement, [{name: row[name] for name in names} for row in chosen])


def forget_changes(conn: Connection, kind: Kind, position: int) -> None:
    """Deletes the changes up to a position, as retention does."""
    values = {"kind": kind.document_type, "position": position}
    conn.execute(text("DELETE FROM roster_changes WHERE document_type = :kind AND position <= :position"), values)
    conn.execute(text("UPDATE roster_states SET kept_from = :position WHERE document_type = :kind"), values)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
