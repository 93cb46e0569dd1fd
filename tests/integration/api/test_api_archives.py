"""Archives: what is in them, how they replace each other, and how they are downloaded."""

import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.api.file_download import PIECE_BYTES
from app.api.services import Services
from app.roster import service as roster
from app.roster.kinds.kind import Kind
from app.roster.kinds.known_kinds import kind_named
from tests.support.rosters import RowChange, add_run, added, forget_changes, modified, removed
from tests.support.world import World, authorization

ELDERS = kind_named("elders")
PATH = "/api/v1/elders/archives/latest"
FIRST = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
ODD = 'Ayşe "Çınar" \\ \n \u2028 \x01 İIıi'


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, Any]:
    return {"roster_dir": str(tmp_path)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return roster.archive_folder(tmp_path, ELDERS)


@pytest.fixture
def sync(services: Services, tmp_path: Path) -> Any:
    def sync(hours: float, *changes: RowChange, write: bool = True, kind: Kind = ELDERS) -> str | None:
        with services.db.transaction() as conn:
            add_run(conn, kind, FIRST + timedelta(hours=hours), changes)
        return roster.write_archive(services.db, kind, tmp_path) if write else None

    return sync


@pytest.fixture
def download(call: Any) -> Any:
    def download(kind: str = "elders", **headers: str) -> Any:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        with call("admin", "GET", f"/api/v1/{kind}/archives/latest", None, **given) as answer:
            answer.get_data()
        return answer

    return download


def people_in(packed: bytes) -> dict[str, Any]:
    people = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    return {person["identifier"]: person for person in people}


def changes_after(call: Any, cursor: str, kind: str = "elders") -> list[str]:
    answer = call("admin", "GET", f"/api/v1/{kind}/changes?cursor={cursor}")
    return [change["identifier"] for change in answer.json["changes"]]


def test_an_archive_is_the_list_at_its_cursor(sync: Any, download: Any, call: Any):
    sync(0, added("1", name="Fatma"), added("2", name="Hüseyin"), write=False)
    sync(1, modified("1", name=ODD, home={"lat": 40.5, "lon": 29}), removed("2"))
    sync(2, added("3", name="Zeynep"), write=False)
    archive = download()
    assert (archive.status_code, archive.mimetype) == (200, "application/gzip")
    assert "Content-Encoding" not in archive.headers
    (person,) = people_in(archive.data).values()
    assert person == {
        "identifier": "1",
        "name": ODD,
        "phone": None,
        "locale": None,
        "home": {"lat": 40.5, "lon": 29},
        "aliases": [{"alias": "itu", "type": "ENROLMENT"}],
    }
    assert changes_after(call, archive.headers["Roster-Cursor"]) == ["3"]
    until = archive.headers["Roster-Until"].replace("+", "%2B")
    assert call("admin", "GET", f"/api/v1/elders/changes?since={until}").json["totalCount"] == 1


def test_an_archive_is_written_only_after_a_change_and_replaces_the_last_but_one(sync: Any, folder: Path):
    first = sync(0, added("1", name="Fatma"))
    assert sync(1) == first
    (folder / first).unlink()
    again = sync(2)
    assert again != first
    names = [sync(hours, modified("1", name=str(hours))) for hours in (3, 4, 5)]
    assert {path.name for path in folder.iterdir()} == set(names[1:])


def test_archives_are_for_no_other_user_of_the_machine(sync: Any, folder: Path):
    sync(0, added("1"))
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_no_archive_is_not_found(call: Any, download: Any, services: Services, sync: Any, tmp_path: Path, folder: Path):
    assert roster.write_archive(services.db, ELDERS, tmp_path) is None
    assert download().get_json(force=True)["code"] == "no_list_yet"
    sync(0, added("1", name="Fatma"), write=False)
    assert (download().status_code, download().get_json(force=True)["code"]) == (404, "archive_not_found")
    name = roster.write_archive(services.db, ELDERS, tmp_path)
    assert name is not None and download().status_code == 200
    (folder / name).unlink()
    assert download().get_json(force=True)["code"] == "archive_not_found"


def test_410_leads_to_the_archive(sync: Any, call: Any, download: Any, services: Services):
    sync(0, added("1", name="Fatma"))
    cursor = download().headers["Roster-Cursor"]
    sync(1, modified("1", name="Fatma Hanım"))
    with services.db.transaction() as conn:
        forget_changes(conn, ELDERS, 1)
    gone = call("admin", "GET", f"/api/v1/elders/changes?cursor={cursor}")
    problem = json.loads(gone.data)
    assert (gone.status_code, problem["archive"]) == (410, PATH)
    assert problem["cursor"] == download().headers["Roster-Cursor"]
    assert changes_after(call, problem["cursor"]) == []


def test_ranges_and_tags(sync: Any, download: Any):
    sync(0, added("1", name="Fatma"))
    whole = download()
    tag, size = whole.headers["ETag"], len(whole.data)
    assert (whole.headers["Accept-Ranges"], whole.headers["Content-Length"]) == ("bytes", str(size))

    def part(range_: str, **more: str) -> tuple[int, bytes, str | None]:
        answer = download(Range=range_, **more)
        return answer.status_code, answer.data, answer.headers.get("Content-Range")

    assert part("bytes=10-") == (206, whole.data[10:], f"bytes 10-{size - 1}/{size}")
    assert part("bytes=10-19", If_Range=tag) == (206, whole.data[10:20], f"bytes 10-19/{size}")
    assert part("bytes=-5")[:2] == (206, whole.data[-5:])
    assert part("bytes=10-", If_Range='"another"') == (200, whole.data, None)
    for ignored in ("bytes=0-1,5-6", "lines=0-5", "bytes=a-"):
        assert part(ignored) == (200, whole.data, None)
    beyond = download(Range=f"bytes={size}-")
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{size}")
    assert beyond.get_json(force=True)["code"] == "range_not_satisfiable"
    unchanged = download(If_None_Match=tag)
    assert (unchanged.status_code, unchanged.data, unchanged.headers["ETag"]) == (304, b"", tag)
    sync(1, modified("1", name="Fatma Hanım"))
    assert download(If_None_Match=tag).status_code == 200
    assert part("bytes=10-", If_Range=tag)[0] == 200


def test_a_download_under_way_is_not_mixed_with_newer_archives(
    sync: Any, app: Any, services: Services, world: World, folder: Path
):
    many = "SELECT 4, i::text, gen_random_uuid(), jsonb_build_object('name', gen_random_uuid()), '[]'"
    sync(0, write=False)
    with services.db.transaction() as conn:
        conn.execute(text(f"INSERT INTO roster_rows {many} FROM generate_series(1, 12000) i"))
    name = sync(1)
    expected = (folder / name).read_bytes()
    assert len(expected) > PIECE_BYTES
    response = app.test_client().get(PATH, headers=authorization(world, services, "admin"), buffered=False)
    pieces = response.iter_encoded()
    received = next(pieces)
    for hours in (2, 3):
        sync(hours, modified("1", name=str(hours)))
    assert not (folder / name).exists()
    assert received + b"".join(pieces) == expected
    response.close()


KILLED_WRITERS = """
import os, sys
from pathlib import Path
from app.db.database import Database
from app.foundation import failpoints
from app.roster.feed.archives import write_archive
from app.roster.kinds.known_kinds import kind_named

database_url, folder, *faults = sys.argv[1:]
for kind, place in zip(faults[::2], faults[1::2]):
    if (child := os.fork()) == 0:
        failpoints.arm(failpoints.parse(f"{place}=kill@1"))
        write_archive(Database(database_url), kind_named(kind), Path(folder))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
"""


def test_a_crash_leaves_the_old_archive_or_the_new_one(
    sync: Any, download: Any, call: Any, services: Services, tmp_path: Path
):
    places = {"elders": "archive.written", "einvoice": "archive.renamed", "edespatch": "archive.named"}
    for kind in map(kind_named, places):
        sync(0, added("1"), kind=kind)
        sync(1, added("2"), kind=kind, write=False)
    faults = [word for pair in places.items() for word in pair]
    command = [sys.executable, "-c", KILLED_WRITERS, services.settings.database_url, str(tmp_path), *faults]
    subprocess.run(command, check=True, timeout=60)
    for kind, place in places.items():
        archive = download(kind)
        is_new = place == "archive.named"
        assert people_in(archive.data).keys() == ({"1", "2"} if is_new else {"1"})
        assert changes_after(call, archive.headers["Roster-Cursor"], kind) == ([] if is_new else ["2"])
        sync(2, added("3"), kind=kind_named(kind))
        assert people_in(download(kind).data).keys() == {"1", "2", "3"}


def test_an_older_archive_does_not_take_the_place_of_a_newer_one(sync: Any, services: Services, folder: Path):
    sync(0, added("1", name="Fatma"))
    newer = "UPDATE roster_states SET archive_position = 9, archive_name = 'newer' WHERE document_type = 4"
    with services.db.transaction() as conn:
        conn.execute(text(newer))
    sync(1, modified("1", name="Fatma Hanım"))
    with services.db.reading() as conn:
        named = conn.execute(text("SELECT archive_name FROM roster_states WHERE document_type = 4")).scalar_one()
    assert named == "newer"
