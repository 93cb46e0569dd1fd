"""The runs that are kept, and the approval of what a run held back."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from app.foundation.pages import Page, page_of, parse_number
from app.roster.errors import NothingHeldBack, RunNotFound
from app.roster.kinds.known_kinds import kind_named, known_kinds
from app.roster.sync.models import RunStatus


@dataclass(frozen=True)
class RosterRun:
    id: int
    status: RunStatus
    started_at: datetime
    finished_at: datetime
    report: dict[str, Any]


@dataclass(frozen=True)
class KindLoad:
    """The state of one kind, for metrics."""

    kind: str
    rows: int
    last_run_age_s: float
    people_left: int
    """Who do not follow their list yet."""
    removals_skipped: int
    """Runs that held removals back."""


def read_load(conn: Connection) -> list[KindLoad]:
    names = {kind.document_type: kind.name for kind in known_kinds().values()}
    rows = conn.execute(_LOAD)
    return [KindLoad(names[row.document_type], *row[1:]) for row in rows if row.document_type in names]


_LOAD = text("""
SELECT s.document_type, s.rows,
       extract(epoch FROM clock_timestamp() - (
           SELECT max(changed_at) FROM sync_metadata m WHERE m.document_type = s.document_type))::float8,
       (SELECT count(*) FROM roster_to_apply q WHERE q.document_type = s.document_type),
       (SELECT count(*) FROM sync_metadata m WHERE m.document_type = s.document_type
           AND m.report ->> 'removals_held' IS NOT NULL)
  FROM roster_states s ORDER BY 1""")

_RUN = "SELECT id, status, started_at, finished_at, report FROM roster_runs"


def list_runs(conn: Connection, *, cursor: str | None, limit: int) -> Page[RosterRun]:
    """Newest first."""
    values: dict[str, Any] = {"limit": limit + 1}
    where = ""
    if cursor is not None:
        where, values["before"] = "WHERE id < :before", parse_number(cursor)
    rows = conn.execute(text(f"{_RUN} {where} ORDER BY id DESC LIMIT :limit"), values).mappings().all()
    return page_of(rows, limit, _run)


def get_run(conn: Connection, run_id: int) -> RosterRun:
    row = conn.execute(text(f"{_RUN} WHERE id = :id"), {"id": run_id}).mappings().one_or_none()
    if row is None:
        raise RunNotFound(f"There is no run {run_id}.")
    return _run(row)


def _run(row: RowMapping) -> RosterRun:
    return RosterRun(row["id"], RunStatus(row["status"]), row["started_at"], row["finished_at"], row["report"])


def approve_run(conn: Connection, run_id: int, by: int | None) -> list[str]:
    """Lets the next run apply what this one held back, once, and only if the lists are still the same. Returns the
    names of the kinds. Harmless to repeat."""
    kinds: dict[str, dict[str, Any]] = get_run(conn, run_id).report.get("kinds", {})
    held = {name: one for name, one in kinds.items() if one["removals_held"] or one["modifications_held"]}
    if not held:
        raise NothingHeldBack(f"Run {run_id} held nothing back.")
    for name, one in held.items():
        values = {
            "document_type": kind_named(name).document_type,
            "run_id": run_id,
            "list_hash": bytes.fromhex(one["list_hash"]),
            "by": by,
        }
        conn.execute(_APPROVE, values)
    return list(held)


_APPROVE = text("""
INSERT INTO roster_approvals (document_type, run_id, list_hash, approved_by)
VALUES (:document_type, :run_id, :list_hash, :by) ON CONFLICT DO NOTHING""")
