"""A night's work: lists in, changes out.

What follows the commit is found again from rows, so a night that was interrupted is finished by the next one.
"""

from collections.abc import Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from app.db.database import Database
from app.roster.contract import NoLists, RosterFolderMissing
from app.roster.gather_lists import ListPlaces
from app.roster.kinds.kind import Kind
from app.roster.kinds.known_kinds import kind_named, known_kinds
from app.roster.lists.reading_rules import ListLimits, ReadingRules
from app.roster.sync.comparison import Rules, Step
from app.roster.sync.guards import GuardLimits
from app.roster.sync.whole_run import RunReport, WholeRun
from app.settings.roster_sources import parse_sources
from app.settings.settings import Environment, Settings


def sync(
    db: Database, settings: Settings, names: Sequence[str], *, dry_run: bool, step: Step, processes: int = 1
) -> RunReport:
    """Without names, of all kinds that have a list."""
    limits = list_limits(settings)
    places = ListPlaces(
        parse_sources(settings.roster_sources),
        roster_folder(settings),
        limits,
        allow_http_on_loopback=settings.environment is not Environment.PRODUCTION,
    )
    run = WholeRun(db, _rules(settings), _reading(settings, limits, processes), step)
    if run.is_under_way():
        return run.report_of_another()
    kinds = _kinds(names, places)
    if not kinds:
        raise NoLists("There are no lists. Name some in ROSTER_SOURCES, or push them.")
    return run.sync(kinds, places.gather(kinds, step), dry_run=dry_run)


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
        blanked_percent=settings.roster_blanked_percent,
    )
    return Rules(limits, settings.roster_change_retention_days)
