"""Where a kind stands: its last run, the changes that are kept, and its archive."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from app.roster.feed.change_cursors import FeedPlace, cursor_of
from app.roster.feed.feed_values import ChangesGone, NoListYet
from app.roster.kinds.kind import Kind


@dataclass(frozen=True)
class FeedState:
    last: FeedPlace
    kept_from: int
    archive_position: int | None
    archive_name: str | None
    cursor_key: bytes = field(repr=False)


@dataclass(frozen=True)
class FeedWindow:
    """Where a window of time begins and ends."""

    state: FeedState
    begin: FeedPlace | None
    """None before the first run."""
    end: FeedPlace
    is_old: bool
    """It begins earlier than changes are kept, and there were runs since."""


_COLUMNS = "s.last_position, s.kept_from, s.archive_position, s.archive_name, s.cursor_key, newest.changed_at"
_NEWEST = """
    SELECT changed_at FROM sync_metadata m WHERE m.document_type = s.document_type ORDER BY changed_at DESC LIMIT 1
"""
_STATE = text(
    f"""
    SELECT {_COLUMNS} FROM roster_states s JOIN LATERAL ({_NEWEST}) newest ON true
     WHERE s.document_type = :document_type
    """
)


def _run_up_to(moment: str) -> str:
    return f"""
    SELECT last_position AS position, changed_at FROM sync_metadata m
     WHERE m.document_type = s.document_type AND changed_at <= {moment} ORDER BY changed_at DESC LIMIT 1
    """


_SINCE, _UNTIL = "CAST(:since AS timestamptz)", "CAST(:until AS timestamptz)"
_WINDOW = text(
    f"""
    SELECT {_COLUMNS}, begins.position AS begin_position, begins.changed_at AS begins_at,
           ends.position AS end_position, ends.changed_at AS ends_at,
           {_SINCE} < least(newest.changed_at, clock_timestamp() - CAST(:days AS integer) * interval '1 day') AS is_old
      FROM roster_states s
      JOIN LATERAL ({_NEWEST}) newest ON true
      LEFT JOIN LATERAL ({_run_up_to(_SINCE)}) begins ON true
      LEFT JOIN LATERAL ({_run_up_to(f"greatest({_SINCE}, coalesce({_UNTIL}, 'infinity'))")}) ends ON true
     WHERE s.document_type = :document_type
    """
)
_RUN_WITH = text(
    """
    SELECT changed_at FROM sync_metadata
     WHERE document_type = :document_type AND last_position = :position
     ORDER BY changed_at DESC LIMIT 1
    """
)


def read_state(conn: Connection, kind: Kind) -> FeedState:
    """Raises `NoListYet`."""
    return _state(kind, conn.execute(_STATE, {"document_type": kind.document_type}).one_or_none())


def read_places(
    conn: Connection, kind: Kind, since: datetime, until: datetime | None, retention_days: int
) -> FeedWindow:
    """Raises `NoListYet`."""
    values = {"document_type": kind.document_type, "since": since, "until": until, "days": retention_days}
    row = conn.execute(_WINDOW, values).one_or_none()
    state = _state(kind, row)
    assert row is not None
    begin = None if row.begins_at is None else FeedPlace(row.begin_position, row.begins_at)
    end = state.last if row.ends_at is None else FeedPlace(row.end_position, row.ends_at)
    return FeedWindow(state, begin, end, row.is_old)


def _state(kind: Kind, row: Any) -> FeedState:
    if row is None:
        raise NoListYet(f"No list of {kind.name} has been read yet.")
    last = FeedPlace(row.last_position, row.changed_at)
    return FeedState(last, row.kept_from, row.archive_position, row.archive_name, row.cursor_key)


def archive_place(conn: Connection, kind: Kind, state: FeedState) -> FeedPlace | None:
    """None while there is no archive."""
    if state.archive_position is None:
        return None
    values = {"document_type": kind.document_type, "position": state.archive_position}
    return FeedPlace(state.archive_position, conn.execute(_RUN_WITH, values).scalar_one())


def changes_gone(conn: Connection, kind: Kind, state: FeedState) -> ChangesGone:
    place = archive_place(conn, kind, state)
    return ChangesGone(kind.name, None if place is None else cursor_of(state.cursor_key, place))
