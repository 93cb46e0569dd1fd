"""A run from the lists to the commit: reads lists, compares each kind, and keeps a report."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from app.db.database import Database
from app.roster.kinds.kind import Kind, ListSource
from app.roster.lists.list_refused import ListRefused
from app.roster.lists.read_list import ListPiece, read_pieces
from app.roster.lists.reading_rules import ReadingRules
from app.roster.sync.comparison import (
    ADVISORY_LOCK,
    AlreadyRunning,
    CountRisk,
    KindReport,
    Rules,
    Step,
    begin,
    begin_preview,
    compare,
    copy_list,
    has_same_list,
    preview,
    touch,
)
from app.roster.sync.models import RunStatus
from app.roster.sync.run_notices import announce


@dataclass(frozen=True)
class ListFile:
    path: Path
    sha256: bytes


Gathered = Mapping[str, ListFile] | ListRefused
"""The files of a source by list, or why one of them is not taken."""


@dataclass
class ListReport:
    """What was read from one list."""

    records: int = 0
    bad: int = 0
    bad_rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The first of them: line, flaw and field, never a value."""


@dataclass
class RunReport:
    started_at: datetime
    dry_run: bool
    status: RunStatus = RunStatus.SUCCEEDED
    id: int | None = None
    """None of a dry run, which is not kept."""
    reason: str | None = None
    """Why nothing was done, or what is missing."""
    kinds: dict[str, KindReport] = field(default_factory=dict[str, KindReport])
    unchanged: list[str] = field(default_factory=list[str])
    """Kinds whose lists are those of the run before."""
    refused: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """By source: code and sentence."""
    lists: dict[str, ListReport] = field(default_factory=dict[str, ListReport])
    people: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """By kind, who entered, changed and left after the commit."""
    archives: dict[str, str] = field(default_factory=dict[str, str])
    """By kind, the file of the newest archive, or `failed`."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "status": self.status,
            "startedAt": self.started_at.isoformat(),
            "dryRun": self.dry_run,
            "reason": self.reason,
            "kinds": {name: report.to_dict() for name, report in self.kinds.items()},
            "unchanged": self.unchanged,
            "refused": self.refused,
            "lists": {name: asdict(report) for name, report in self.lists.items()},
            "people": self.people,
            "archives": self.archives,
        }


@dataclass(frozen=True)
class WholeRun:
    db: Database
    rules: Rules
    reading: ReadingRules
    step: Step
    count_risk: CountRisk = lambda _conn, _kind: {}
    """For dry runs."""

    def sync(
        self, kinds: Sequence[Kind], gathered: Mapping[str, Gathered], *, dry_run: bool, after: int | None = None
    ) -> RunReport:
        """`after` is the last run before the lists were fetched. The lists of one that has worked since may be newer,
        so this one leaves. A dry run works beside others."""
        report = RunReport(self.db.now(), dry_run)
        if dry_run:
            with self.db.transaction() as conn:
                begin_preview(conn)
                self._take_sources(conn, kinds, gathered, report)
            return report
        try:
            with self.db.transaction() as conn:
                begin(conn)
                if after is not None and conn.execute(_LAST_RUN).scalar_one() != after:
                    raise AlreadyRunning
                self._sync(conn, kinds, gathered, report)
        except AlreadyRunning:
            return self.report_of_another()
        except Exception as error:
            self._record_failure(report, error)
            raise
        return report

    def _record_failure(self, report: RunReport, error: Exception) -> None:
        report.id, report.status, report.reason = None, RunStatus.FAILED, type(error).__name__
        report.kinds.clear()
        with self.db.transaction() as conn:
            report.id = run_id = conn.execute(_BEGIN_RUN, {"started_at": report.started_at}).scalar_one()
            _end(conn, run_id, report)

    def is_under_way(self) -> bool:
        """Asked before lists are fetched, so that a second run leaves at once."""
        with self.db.reading() as conn:
            return conn.execute(_IS_LOCKED, {"lock": ADVISORY_LOCK}).scalar_one()

    def last_run(self) -> int:
        """That has taken a list."""
        with self.db.reading() as conn:
            return conn.execute(_LAST_RUN).scalar_one()

    def report_of_another(self) -> RunReport:
        """Partial, and not kept: the other run keeps its own."""
        return RunReport(self.db.now(), False, RunStatus.PARTIAL, reason="Another run is under way.")

    def _sync(
        self, conn: Connection, kinds: Sequence[Kind], gathered: Mapping[str, Gathered], report: RunReport
    ) -> None:
        report.id = run_id = conn.execute(_BEGIN_RUN, {"started_at": report.started_at}).scalar_one()
        self._take_sources(conn, kinds, gathered, report)
        # If nothing was taken the job fails, which is told already.
        is_partial = report.status is RunStatus.PARTIAL
        refused = {source: refusal["code"] for source, refusal in report.refused.items()} if is_partial else {}
        announce(conn, run_id, list(report.kinds.values()), refused)
        _end(conn, run_id, report)

    def _take_sources(
        self, conn: Connection, kinds: Sequence[Kind], gathered: Mapping[str, Gathered], report: RunReport
    ) -> None:
        for source in sources_of(kinds):
            files = gathered[source.name]
            try:
                if isinstance(files, ListRefused):
                    raise files
                with conn.begin_nested():
                    self._take_source(conn, source, [kind for kind in kinds if kind.source is source], files, report)
            except ListRefused as refusal:
                report.refused[source.name] = {"code": refusal.reason, "detail": refusal.message}
        report.status = _status(report)

    def _take_source(
        self,
        conn: Connection,
        source: ListSource,
        kinds: Sequence[Kind],
        files: Mapping[str, ListFile],
        report: RunReport,
    ) -> None:
        list_hash = sha256(b"".join(files[declaration.name].sha256 for declaration in source.lists)).digest()
        changed = [kind for kind in kinds if not self._is_unchanged(conn, kind, list_hash, report)]
        for declaration in source.lists if changed else ():
            name = f"{source.name}/{declaration.name}"
            report.lists[name] = seen = ListReport()
            file = files[declaration.name]
            pieces = read_pieces(file.path, source, declaration, self.reading, file.sha256)
            copy_list(conn, source, declaration, self._counted(pieces, name, seen))
        for kind in changed:
            report.kinds[kind.name] = self._compare(conn, kind, list_hash, report)
        # At the end: if a list is refused, nothing of its source was taken.
        report.unchanged += [kind.name for kind in kinds if kind not in changed]

    def _is_unchanged(self, conn: Connection, kind: Kind, list_hash: bytes, report: RunReport) -> bool:
        if report.id is None:
            return has_same_list(conn, kind, list_hash)
        return touch(conn, kind, list_hash, report.id, self.rules)

    def _compare(self, conn: Connection, kind: Kind, list_hash: bytes, report: RunReport) -> KindReport:
        if report.id is None:
            return preview(conn, kind, list_hash, self.rules, self.step, self.count_risk)
        return compare(conn, kind, list_hash, report.id, self.rules, self.step)

    def _counted(self, pieces: Iterator[ListPiece], name: str, seen: ListReport) -> Iterator[bytes]:
        for piece in pieces:
            seen.records += piece.records
            seen.bad += piece.bad_count
            seen.bad_rows += [asdict(row) for row in piece.bad]
            self.step(name, "copy", seen.records)
            yield piece.copy_text


def _status(report: RunReport) -> RunStatus:
    if report.refused and not (report.kinds or report.unchanged):
        return RunStatus.FAILED
    if report.refused or any(kind.is_held_back for kind in report.kinds.values()):
        return RunStatus.PARTIAL
    return RunStatus.SUCCEEDED


def save_report(db: Database, report: RunReport) -> None:
    """Again, with what followed the commit."""
    if report.id is not None:
        with db.transaction() as conn:
            _end(conn, report.id, report)


def _end(conn: Connection, run_id: int, report: RunReport) -> None:
    conn.execute(_END_RUN, {"id": run_id, "status": report.status, "report": json.dumps(report.to_dict())})


def sources_of(kinds: Sequence[Kind]) -> list[ListSource]:
    return list({kind.source.name: kind.source for kind in kinds}.values())


# To try the lock would send a run away that tries it at the same moment.
_IS_LOCKED = text("""
SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND (classid::bigint << 32) + objid::bigint = :lock)""")
_LAST_RUN = text("SELECT coalesce(max(id), 0) FROM roster_runs WHERE status <> 'FAILED'")
_BEGIN_RUN = text("""
INSERT INTO roster_runs (status, started_at, report) VALUES ('SUCCEEDED', :started_at, '{}') RETURNING id""")
_END_RUN = text("""
UPDATE roster_runs SET status = :status, report = CAST(:report AS jsonb), finished_at = clock_timestamp()
 WHERE id = :id""")
