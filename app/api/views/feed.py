"""The changes of lists, and the archives to begin from."""

import json
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog

from app.api.access import READERS
from app.api.errors import RangeNotSatisfiable
from app.api.file_download import FileDownload
from app.api.routing import Call, Header, Reply, Routes
from app.api.schemas_feed import ChangesJson, ChangesQuery
from app.foundation.errors import InvalidValue, InvalidValues
from app.roster import service as roster
from app.roster.contract import (
    ArchiveNotFound,
    ChangesGone,
    ChangesPage,
    ChangesWindow,
    NoListYet,
    UnknownKind,
)

log = structlog.get_logger(__name__)

routes = Routes("Feed")


@routes.add(
    "GET",
    "/api/v1/{kind}/changes",
    who=READERS,
    answers={200: ChangesJson},
    errors=(InvalidValue, UnknownKind, NoListYet, ChangesGone),
)
def list_changes(call: Call, kind: str, query: ChangesQuery) -> Reply:
    """List what has changed in a list.

    Begin with the archive and send its cursor; each answer has the next one. Or send `since`, read all pages, and use
    `until` of the last one as the next `since`. Times without an offset are service time. 410 if some of the changes
    are not kept any more: begin again with the archive.
    """
    declared = roster.kind_named(kind)
    settings = call.services.settings
    zone = ZoneInfo(settings.time_zone)
    with call.services.db.reading() as conn:
        if query.cursor is not None:
            _refuse_beside_cursor(query)
            page = roster.read_after(conn, declared, query.cursor, query.page_size, zone)
        else:
            page = roster.read_window(conn, declared, _window(query), settings.roster_change_retention_days, zone)
    return Reply(_shown(page))


def _refuse_beside_cursor(query: ChangesQuery) -> None:
    others = sorted(query.model_fields_set & {"since", "until", "page"})
    if others:
        raise InvalidValues(dict.fromkeys(others, "cannot be combined with cursor"))


def _window(query: ChangesQuery) -> ChangesWindow:
    if query.since is None:
        raise InvalidValue("since", "is required, unless there is a cursor")
    return ChangesWindow(query.since, query.until, query.page, query.page_size)


def _shown(page: ChangesPage) -> bytes:
    """As `ChangesJson` describes it. The changes are JSON already."""
    rest = {
        "totalCount": page.total,
        "page": page.page,
        "pageSize": page.size,
        "totalPages": -(-page.total // page.size),
        "until": page.until,
        "nextCursor": page.next_cursor,
    }
    return f'{{"changes":[{",".join(page.changes)}],{json.dumps(rest)[1:]}'.encode()


@routes.add(
    "GET",
    "/api/v1/{kind}/archives/latest",
    who=READERS,
    answers={200: None, 206: None, 304: None},
    content_type="application/gzip",
    headers=(
        Header("Range", "One range of bytes, to go on with a download that broke off.", 100),
        Header("If-Range", "The `ETag` of that download: a newer archive is sent as a whole.", 200),
        Header("If-None-Match", "The `ETag` of the archive that the caller has.", 200),
    ),
    errors=(UnknownKind, NoListYet, ArchiveNotFound, RangeNotSatisfiable),
)
def get_latest_archive(call: Call, kind: str) -> Reply:
    """Download the newest archive of a list.

    Gzip of lines, each the JSON of one person, as in the changes but without `changeType` and `changedAt`. The header
    `Roster-Cursor` is the cursor of the changes that the archive does not hold, and `Roster-Until` their `since`.
    """
    declared = roster.kind_named(kind)
    settings = call.services.settings
    with call.services.db.reading() as conn:
        archive = roster.find_archive(conn, declared, ZoneInfo(settings.time_zone))
    try:
        download = FileDownload(roster.archive_folder(Path(settings.roster_dir or ""), declared) / archive.name)
    except FileNotFoundError:
        log.error("archive_file_missing", kind=kind, name=archive.name)
        raise ArchiveNotFound("The file of the archive is missing. It is written again after the next run.") from None
    return Reply(download, headers={"Roster-Cursor": archive.cursor, "Roster-Until": archive.until})
