"""The newest list of a kind as a file, with the place in the changes at which it stands.

Every file has a name of its own and never changes. The row of the kind names the one that is valid, so a crash between
two steps leaves the old one or the new one. The file before stays for those who are about to open it.
"""

import gzip
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, text

from app.db.database import Database, driver
from app.foundation.durable import sync_folder
from app.foundation.failpoints import failpoint
from app.roster.feed.change_cursors import cursor_of
from app.roster.feed.feed_state import archive_place, read_state
from app.roster.feed.feed_values import ArchiveNotFound, NewestArchive, NoListYet
from app.roster.feed.published_rows import members, shown_time
from app.roster.kinds.kind import Kind

SUFFIX = ".jsonl.gz"
_UNFINISHED = ".part"
_COMPRESSION = 4
_PIECE_BYTES = 1 << 18
_ABANDONED_AFTER_S = 3600.0
"""A writer writes all the time, so an unfinished file that is as old as that has lost its writer."""

# A run holds the row of the kind until it commits, which may take minutes.
_PATIENT = ("SET LOCAL statement_timeout = '30min'", "SET LOCAL lock_timeout = 0")
_NAME_IT = text(
    """
    UPDATE roster_states SET archive_position = :position, archive_name = :name
     WHERE document_type = :document_type AND coalesce(archive_position, 0) <= :position
    """
)


def write_archive(db: Database, kind: Kind, roster_folder: Path) -> str | None:
    """Writes the list as it is now, unless the archive holds it already. Returns the name of the file, or None if there
    is no list yet. Takes as long as it needs to read the list, so the database must allow long calls."""
    folder = archive_folder(roster_folder, kind)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{secrets.token_hex(6)}{_UNFINISHED}"
    try:
        with db.transaction() as conn:
            conn.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
            _be_patient(conn)
            try:
                state = read_state(conn, kind)
            except NoListYet:
                return None
            position = state.last.position
            if state.archive_position == position and state.archive_name and (folder / state.archive_name).exists():
                return state.archive_name
            _write(conn, kind, unfinished)
        name = f"{kind.name}-{position}-{unfinished.stem}{SUFFIX}"
        failpoint("archive.written")
        unfinished.rename(folder / name)
        sync_folder(folder)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    failpoint("archive.renamed")
    with db.transaction() as conn:
        _be_patient(conn)
        conn.execute(_NAME_IT, {"document_type": kind.document_type, "position": position, "name": name})
        valid = read_state(conn, kind).archive_name
    failpoint("archive.named")
    _remove_old(folder, valid)
    return name


def find_archive(conn: Connection, kind: Kind, zone: ZoneInfo) -> NewestArchive:
    """Raises `NoListYet` or `ArchiveNotFound`."""
    state = read_state(conn, kind)
    place = archive_place(conn, kind, state)
    if place is None or state.archive_name is None:
        raise ArchiveNotFound(f"There is no archive of {kind.name} yet.")
    cursor = cursor_of(state.cursor_key, place)
    return NewestArchive(state.archive_name, cursor, shown_time(kind, place.changed_at, zone))


def archive_folder(roster_folder: Path, kind: Kind) -> Path:
    return roster_folder / "archives" / kind.name


def _be_patient(conn: Connection) -> None:
    for statement in _PATIENT:
        conn.execute(text(statement))


def _write(conn: Connection, kind: Kind, path: Path) -> None:
    # For this user only: it has the numbers of all people.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_COMPRESSION, filename="", mtime=0) as packed:
            for piece in _pieces(_rows(conn, kind)):
                packed.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _rows(conn: Connection, kind: Kind) -> Iterator[bytes]:
    """One line of JSON for each row. The quote and the delimiter of this CSV are control characters, which JSON always
    escapes, so that nothing in the lines is quoted."""
    query = f"""
COPY (SELECT json_build_object('identifier', identifier, {members(kind)})
        FROM roster_rows WHERE document_type = {kind.document_type})
  TO STDOUT (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')"""
    with driver(conn).cursor() as cursor, cursor.copy(query) as copy:
        for row in copy:
            yield bytes(row)


def _pieces(rows: Iterator[bytes]) -> Iterator[bytes]:
    """Rows together, because a call of the compressor for each one takes longer than to compress it."""
    piece = bytearray()
    for row in rows:
        piece += row
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _remove_old(folder: Path, valid: str | None) -> None:
    others = [path for path in folder.glob(f"*{SUFFIX}") if path.name != valid]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    abandoned = time.time() - _ABANDONED_AFTER_S
    unfinished = [path for path in folder.glob(f"*{_UNFINISHED}") if path.stat().st_mtime < abandoned]
    for path in (*others[1:], *unfinished):
        path.unlink(missing_ok=True)
