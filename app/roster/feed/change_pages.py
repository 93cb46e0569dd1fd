"""Pages of changes.

Positions have no gaps and runs become visible in their order, so a page is a range of positions, and a run that commits
meanwhile moves no row to another page. No answer claims more than the runs that are committed: `until` is at most the
time of the last one, so that a run which commits later lies after it.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, text

from app.roster.feed.change_cursors import FeedPlace, cursor_of, place_of
from app.roster.feed.feed_state import FeedState, changes_gone, read_places, read_state
from app.roster.feed.feed_values import ChangesPage, ChangesWindow
from app.roster.feed.published_rows import members, shown_time
from app.roster.kinds.kind import Kind
from app.roster.sync.models import ChangeType

_WORDS = {change_type: change_type.name.lower() for change_type in ChangeType}

# The last two runs up to a moment: the place where they ended.
_RUNS_UP_TO = text(
    """
    SELECT last_position AS position, changed_at FROM sync_metadata
     WHERE document_type = :document_type AND changed_at <= :moment
     ORDER BY changed_at DESC LIMIT 2
    """
)
_IS_KNOWN = text(
    """
    SELECT EXISTS (
        SELECT FROM sync_metadata
         WHERE document_type = :document_type AND changed_at = :changed_at
           AND :position BETWEEN first_position AND last_position
    )
    """
)


def read_window(
    conn: Connection, kind: Kind, window: ChangesWindow, retention_days: int, zone: ZoneInfo
) -> ChangesPage:
    """Raises `NoListYet` or `ChangesGone`."""
    since, until = _with_offset(window.since, zone), window.until and _with_offset(window.until, zone)
    places = read_places(conn, kind, since, until, retention_days)
    state, begin, end = places.state, places.begin, places.end
    # A reader who has seen the last run has missed nothing, however long ago that run was.
    if begin is None or places.is_old or begin.position < state.kept_from:
        raise changes_gone(conn, kind, state)
    newest = state.last.changed_at
    since, until = min(since, newest), min(until or newest, newest)
    until = max(since, until)
    first = min(begin.position + (window.page - 1) * window.size, end.position)
    last = min(first + window.size, end.position)
    rows = _read(conn, kind, state, first, last)
    reached = FeedPlace(last, rows[-1].changed_at) if rows else end
    if window.until is None and window.page > 1 and last < end.position:
        # More runs may have been committed since the first page was read, and a reader who goes by its number of pages
        # takes this page for the last one.
        until = max(since, _complete_until(conn, kind, reached))
    return ChangesPage(
        changes=_items(kind, rows, zone),
        total=end.position - begin.position,
        page=window.page,
        size=window.size,
        until=shown_time(kind, until, zone),
        next_cursor=cursor_of(state.cursor_key, reached),
    )


def read_after(conn: Connection, kind: Kind, cursor: str, size: int, zone: ZoneInfo) -> ChangesPage:
    """The changes after a cursor. Raises `InvalidValue`, `NoListYet` or `ChangesGone`."""
    state = read_state(conn, kind)
    place = place_of(state.cursor_key, cursor)
    values = {"document_type": kind.document_type, "position": place.position, "changed_at": place.changed_at}
    if place.position < state.kept_from or not conn.execute(_IS_KNOWN, values).scalar_one():
        raise changes_gone(conn, kind, state)
    last = min(place.position + size, state.last.position)
    rows = _read(conn, kind, state, place.position, last)
    reached = FeedPlace(last, rows[-1].changed_at) if rows else place
    until = state.last.changed_at if last == state.last.position else _complete_until(conn, kind, reached)
    return ChangesPage(
        changes=_items(kind, rows, zone),
        total=state.last.position - place.position,
        page=1,
        size=size,
        until=shown_time(kind, until, zone),
        next_cursor=cursor_of(state.cursor_key, reached),
    )


def _with_offset(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def _complete_until(conn: Connection, kind: Kind, reached: FeedPlace) -> datetime:
    """The time of the last run whose changes all lie before this place: its own one, or the one before that."""
    runs = conn.execute(_RUNS_UP_TO, {"document_type": kind.document_type, "moment": reached.changed_at})
    return next(run.changed_at for run in runs if run.position <= reached.position)


def _read(conn: Connection, kind: Kind, state: FeedState, first: int, last: int) -> Sequence[Any]:
    """The changes after the position `first` up to `last`."""
    values = {"document_type": kind.document_type, "first": first, "rows": last - first}
    rows = conn.execute(text(_changes(kind)), values).all()
    if len(rows) != last - first or (rows and rows[-1].position != last):
        # A run has deleted some of them since the state was read.
        raise changes_gone(conn, kind, state)
    return rows


def _changes(kind: Kind) -> str:
    return f"""
SELECT position, change_type, changed_at, identifier, json_build_object({members(kind)})::text AS members
  FROM roster_changes WHERE document_type = :document_type AND position > :first ORDER BY position LIMIT :rows"""


def _items(kind: Kind, rows: Sequence[Any], zone: ZoneInfo) -> list[str]:
    """As text: to read the JSON of the database into Python and to write it again takes longer than all the rest."""
    times = {moment: shown_time(kind, moment, zone) for moment in {row.changed_at for row in rows}}
    return [
        f'{{"identifier":{json.dumps(row.identifier)},"changeType":"{_WORDS[row.change_type]}",'
        f'"changedAt":"{times[row.changed_at]}",{row.members[1:]}'
        for row in rows
    ]
