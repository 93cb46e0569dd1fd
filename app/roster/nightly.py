"""A night's work: lists in, changes out.

What follows the commit is found again from rows, so a night that was interrupted is finished by the next one.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog
from sqlalchemy import Connection

from app.db.database import Database
from app.foundation.errors import Unavailable
from app.matching.service import Matching
from app.roster.errors import NoLists, RosterFolderMissing
from app.roster.feed.archives import write_archive
from app.roster.gather_lists import PUSHED, ListPlaces
from app.roster.kinds.kind import Kind, ListDeclaration, ListSource
from app.roster.kinds.known_kinds import kind_named, known_kinds
from app.roster.lists.pushed_lists import KeptList, ReadInPieces, find_pushed, keep_pushed
from app.roster.lists.reading_rules import ListLimits, ReadingRules
from app.roster.people.service import apply_people, removals_would_end
from app.roster.sync.comparison import Rules, Step
from app.roster.sync.guards import GuardLimits
from app.roster.sync.models import RunStatus
from app.roster.sync.whole_run import RunReport, WholeRun, save_report
from app.settings.roster_sources import parse_sources
from app.settings.settings import Environment, Settings

log = structlog.get_logger(__name__)

TRIES, PAUSE_S = 3, 5.0
FAILED = "failed"
Sleep = Callable[[float], None]


def sync(
    db: Database,
    matching: Matching,
    settings: Settings,
    names: Sequence[str],
    *,
    dry_run: bool,
    step: Step,
    processes: int = 1,
    sleep: Sleep = time.sleep,
) -> RunReport:
    """Without names, of all kinds that have a list."""
    limits, folder = list_limits(settings), roster_folder(settings)
    places = ListPlaces(
        parse_sources(settings.roster_sources),
        folder,
        limits,
        allow_http_on_loopback=settings.environment is not Environment.PRODUCTION,
    )
    run = WholeRun(db, _rules(settings), _reading(settings, limits, processes), step, _count_risk)
    if not dry_run and run.is_under_way():
        return run.report_of_another()
    after = run.last_run()
    _require_known(places.sources)
    kinds = _kinds(names, places)
    if not kinds:
        raise NoLists("There are no lists. Name some in ROSTER_SOURCES, or push them.")
    report = run.sync(kinds, places.gather(kinds, step), dry_run=dry_run, after=after)
    if not dry_run and report.id is not None:
        try:
            _follow(db, matching, folder, report, step, sleep)
        finally:
            # Also if it was cancelled: what was done is done.
            save_report(db, report)
    return report


def keep_pushed_list(
    settings: Settings, source: ListSource, declaration: ListDeclaration, stream: ReadInPieces, sha256: str | None
) -> KeptList:
    """The next run reads it. Raises `ListRefused`."""
    folder = roster_folder(settings) / PUSHED
    return keep_pushed(stream, folder, source.name, declaration.name, list_limits(settings), sha256)


def has_pushed_list(settings: Settings, source: ListSource, declaration: ListDeclaration) -> bool:
    return find_pushed(roster_folder(settings) / PUSHED, source.name, declaration.name) is not None


def _count_risk(conn: Connection, kind: Kind) -> dict[str, int]:
    return {} if kind.role is None else asdict(removals_would_end(conn, kind))


def _require_known(sources: Mapping[str, Mapping[str, str]]) -> None:
    """Otherwise a list with a wrong name in the settings would never be taken, and nobody would know."""
    known = {f"{kind.source.name}/{declared.name}" for kind in known_kinds().values() for declared in kind.source.lists}
    unknown = sorted({f"{source}/{name}" for source, lists in sources.items() for name in lists} - known)
    if unknown:
        raise NoLists(f"There is no list {unknown[0]}. There are: {', '.join(sorted(known))}.")


def _follow(db: Database, matching: Matching, folder: Path, report: RunReport, step: Step, sleep: Sleep) -> None:
    """Of all kinds, not only of those of this run: an earlier one may have been killed before it came here. Archives
    come first, because people may take long and somebody may stop that."""
    for kind in known_kinds().values():
        step(kind.name, "archive", 0)
        try:
            archive = _write_archive(db, kind, folder, sleep)
        except ArchiveFailed:
            archive, report.status = FAILED, RunStatus.PARTIAL
            report.reason = f"The archive of {kind.name} could not be written. Is there room in ROSTER_DIR?"
        if archive is not None:
            report.archives[kind.name] = archive
    for kind in known_kinds().values():
        if kind.role is not None:

            def progress(done: int, _total: int, name: str = kind.name) -> None:
                step(name, "people", done)

            report.people[kind.name] = apply_people(db, matching, kind, progress=progress).to_dict()


class ArchiveFailed(Exception):
    """Every try to write an archive has failed. Readers have the one before, and the next night writes this one."""


def _write_archive(db: Database, kind: Kind, folder: Path, sleep: Sleep) -> str | None:
    for turn in range(TRIES):
        if turn:
            sleep(PAUSE_S)
        try:
            return write_archive(db, kind, folder)
        except (OSError, Unavailable) as error:
            log.error("roster_archive_failed", kind=kind.name, error_type=type(error).__name__)
    raise ArchiveFailed


def roster_folder(settings: Settings) -> Path:
    if settings.roster_dir is None:
        raise RosterFolderMissing("Set ROSTER_DIR to a folder for lists and archives.")
    return Path(settings.roster_dir)


def _kinds(names: Sequence[str], places: ListPlaces) -> list[Kind]:
    if names:
        return [kind_named(name) for name in dict.fromkeys(names)]
    return [kind for kind in known_kinds().values() if places.has(kind.source)]


def list_limits(settings: Settings) -> ListLimits:
    return ListLimits(
        bad_rows_share=settings.roster_bad_rows_percent / 100,
        archive_bytes=settings.roster_list_bytes,
        unpacked_bytes=settings.roster_unpacked_bytes,
        time_s=settings.roster_download_timeout_s,
    )


def _reading(settings: Settings, limits: ListLimits, processes: int) -> ReadingRules:
    return ReadingRules(
        ZoneInfo(settings.time_zone),
        country_code=settings.country_code,
        limits=limits,
        processes=processes,
    )


def _rules(settings: Settings) -> Rules:
    limits = GuardLimits(
        removed_percent=settings.roster_removed_percent,
        floor=settings.roster_removed_floor,
        least_rows=settings.roster_least_rows,
        removed_percent_of_week=settings.roster_removed_week_percent,
        modified_percent=settings.roster_modified_percent,
        modified_percent_of_week=settings.roster_modified_week_percent,
        blanked_percent=settings.roster_blanked_percent,
        blanked_percent_of_week=settings.roster_blanked_week_percent,
    )
    return Rules(limits, settings.roster_change_retention_days)
