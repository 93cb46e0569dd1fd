"""`roster sync`, `runs`, `show` and `approve`, and the job `roster_sync`, on local and pushed lists."""

import io
import json
import os
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.cli import demo
from app.cli.manage_roster import main
from app.db.database import Database
from app.jobs.engine.execution_context import ExecutionContext, JobResources
from app.jobs.scripts import roster_sync
from app.jobs.scripts.roster_sync import RosterSyncParams
from app.roster.contract import RunStatus
from app.roster.gather_lists import DOWNLOADED, PUSHED
from app.roster.kinds import known_kinds
from app.roster.lists.pushed_lists import keep_pushed
from app.roster.lists.reading_rules import ListLimits
from app.roster.nightly import sync
from app.settings.settings import Settings
from tests.support.lists import line, packed, packed_students, turkish_id

NAMES = ("enrolment", "clearance")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, Any]:
    return {"roster_dir": str(tmp_path / "roster"), "roster_removed_floor": 2}


def write(folder: Path, people: int) -> list[str]:
    """The options that name the lists."""
    files = {name: packed_students(folder / f"{name}.zip", map(line, range(people))) for name in NAMES}
    return [word for name, file in files.items() for word in ("--list", f"students/{name}={file}")]


def test_sync_prints_what_changed_and_how_to_approve_what_was_held(
    db: Database, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(settings, ["sync", *write(tmp_path, 40)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "KIND      ROWS  ADDED  MODIFIED  REMOVED",
        "students  40    40     0         0",
    ]
    assert main(settings, ["sync", "--dry-run", *write(tmp_path, 39)]) == 0
    assert capsys.readouterr().out.endswith("This was a dry run; nothing was changed.\n")
    assert main(settings, ["sync", *write(tmp_path, 30)]) == 3
    out = capsys.readouterr().out
    assert "held back: too_many_removed" in out
    run = out.split("roster approve ")[1].split(",")[0]
    assert main(settings, ["approve", run]) == 0
    assert main(settings, ["sync", *write(tmp_path, 30)]) == 0
    capsys.readouterr()
    assert main(settings, ["runs"]) == 0
    assert [row.split()[3:5] for row in capsys.readouterr().out.splitlines()[1:]] == [
        ["UTC", "SUCCEEDED"],
        ["UTC", "PARTIAL"],
        ["UTC", "SUCCEEDED"],
    ]
    assert main(settings, ["show", run]) == 0
    assert json.loads(capsys.readouterr().out)["kinds"]["students"]["removals_found"] == 10


def test_the_demo_leaves_two_lists_that_a_run_takes(
    db: Database, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(settings, []) == demo.main(settings, []) == 0
    capsys.readouterr()
    assert main(settings, ["sync"]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == [
        "elders  3     3      0         0",
        "elders: created 1, bound 2",
    ]
    assert main(settings, ["sync"]) == 0
    assert "unchanged" in capsys.readouterr().out


def test_the_demo_says_that_its_lists_cannot_be_written(
    db: Database, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(settings.roster_dir or "").write_text("a file where the folder should be")
    assert demo.main(settings, []) == 1
    assert "Check ROSTER_DIR." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["approve", "999"], "There is no run 999."),
        (["sync", "--kind", "cats"], "There is no kind 'cats'."),
    ],
)
def test_commands_tell_what_is_wrong(
    db: Database, settings: Settings, capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    assert main(settings, argv) == 1
    assert capsys.readouterr().err == f"{sentence}\n"


def test_list_with_an_unknown_name_is_an_error(
    db: Database, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*write(tmp_path, 20), "--list", f"student/enrolment={tmp_path / 'enrolment.zip'}"]
    assert main(settings, ["sync", *options]) == 1
    assert "There is no list student/enrolment. There are: elders/clearance," in capsys.readouterr().err


def test_folder_that_cannot_be_written_refuses_its_source_and_keeps_the_run(
    db: Database, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    downloaded = Path(settings.roster_dir or "") / DOWNLOADED
    downloaded.mkdir(parents=True)
    (downloaded / "students").write_text("a file where a folder should be")
    assert main(settings, ["sync", *write(tmp_path, 20)]) == 1
    assert "students: refused (NOT_READABLE)" in capsys.readouterr().out
    with db.reading() as conn:
        assert conn.execute(text("SELECT status FROM roster_runs")).scalar_one() == "FAILED"


def test_archive_that_cannot_be_written_is_told(
    db: Database, settings: Settings, services: Services, tmp_path: Path
) -> None:
    push(settings, tmp_path, 20)
    (Path(settings.roster_dir or "") / "archives").write_text("a file where a folder should be")
    waits: list[float] = []
    report = sync(
        db, services.matching, settings, ["students"], dry_run=False, step=lambda *_: None, sleep=waits.append
    )
    assert report.status is RunStatus.PARTIAL
    assert "could not be written" in (report.reason or "")
    assert waits[:2] == [5.0, 5.0]
    assert report.people["students"]["created"] == 20


def test_tags_of_one_address_are_not_used_for_another(db: Database, settings: Settings, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, institution in ((first, 1), (second, 2)):
        folder.mkdir()
        lines = [line(number, institution=institution) for number in range(20)]
        for name in NAMES:
            os.utime(packed_students(folder / f"{name}.zip", lines), (1, 1))
    options = [
        [word for name in NAMES for word in ("--list", f"students/{name}={folder}/{name}.zip")]
        for folder in (first, second)
    ]
    assert [main(settings, ["sync", *words]) for words in options] == [0, 3]


def test_missing_list_says_what_to_do(db: Database, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(settings, ["sync", "--kind", "students"]) == 1
    assert "Name it in ROSTER_SOURCES, or push one." in capsys.readouterr().out


def test_bad_rows_are_named_by_line_without_their_values(
    db: Database, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = write(tmp_path, 200)
    packed_students(tmp_path / "enrolment.zip", [*map(line, range(200)), "12345678901;Gizli Kişi;;1"])
    assert main(settings, ["sync", *options]) == 0
    out = capsys.readouterr().out
    assert "students/enrolment line 202: identifier: IDENTIFIER" in out
    assert "12345678901" not in out
    assert "Gizli" not in out


@pytest.fixture
def context(db: Database, settings: Settings, services: Services) -> ExecutionContext:
    return ExecutionContext("t", "io-0", resources=lambda: JobResources(settings, db, services.clockwork))


def push(settings: Settings, folder: Path, people: int) -> None:
    write(folder, people)
    for name in NAMES:
        content = io.BytesIO((folder / f"{name}.zip").read_bytes())
        keep_pushed(content, Path(settings.roster_dir or "") / PUSHED, "students", name, ListLimits())


def test_job_takes_pushed_lists_and_reports_its_progress(
    settings: Settings, context: ExecutionContext, tmp_path: Path
) -> None:
    push(settings, tmp_path, 30)
    notes: list[str] = []
    context.report_progress = lambda _done, _total, note: notes.append(note)
    result = roster_sync.run(RosterSyncParams(), context)
    assert result["kinds"]["students"]["added"] == 30
    assert json.loads(json.dumps(result)) == result, "a result is JSON"
    assert "students/enrolment copy 30" in notes
    assert roster_sync.run(RosterSyncParams(), context)["unchanged"] == ["students"]


def test_cancelled_job_leaves_nothing(
    settings: Settings, context: ExecutionContext, db: Database, tmp_path: Path
) -> None:
    push(settings, tmp_path, 30)

    def cancel_at_apply(_done: int, _total: int | None, note: str) -> None:
        if note == "students compare":
            context.cancel.set()

    context.cancel, context.report_progress = Event(), cancel_at_apply
    assert roster_sync.run(RosterSyncParams(), context) == {"cancelled": True}
    with db.reading() as conn:
        assert conn.execute(text("SELECT count(*) FROM roster_rows")).scalar_one() == 0


def test_job_that_is_cancelled_after_its_commit_keeps_in_its_run_what_was_done(
    settings: Settings, context: ExecutionContext, db: Database, tmp_path: Path
) -> None:
    push(settings, tmp_path, 30)

    def cancel_at_an_archive(_done: int, _total: int | None, note: str) -> None:
        if note.startswith("students archive"):
            context.cancel.set()

    context.cancel, context.report_progress = Event(), cancel_at_an_archive
    assert roster_sync.run(RosterSyncParams(), context) == {"cancelled": True}
    with db.reading() as conn:
        [report] = conn.execute(text("SELECT report FROM roster_runs")).scalars()
    assert report["kinds"]["students"]["added"] == 30
    assert "students" in report["archives"]


def test_job_whose_lists_were_all_refused_has_failed(
    settings: Settings, context: ExecutionContext, tmp_path: Path
) -> None:
    push(settings, tmp_path, 20)
    (Path(settings.roster_dir or "") / PUSHED / "students" / "enrolment.zip").write_bytes(b"<html>")
    with pytest.raises(roster_sync.NothingTaken, match="students: This is a web page"):
        roster_sync.run(RosterSyncParams(), context)


FIFTH = '''
"""Drivers who may use a bus lane."""

from app.roster.kinds.kind import CsvFormat, IdentifierRule, Kind, ListColumn, ListDeclaration, ListSource

KIND = Kind(
    name="drivers",
    document_type=77,
    source=ListSource(
        name="drivers",
        lists=(ListDeclaration("all", alias_type="ALL"),),
        identifier=IdentifierRule.TURKISH_ID,
        columns=(ListColumn("plate", "plate", required=True),),
        alias_parts=("alias", "type"),
        csv=CsvFormat(headers={"identifier": ("identifier",), "plate": ("plate",), "alias": ("city",)}),
    ),
    hashed=("identifier", "plate_lower"),
)
'''


def test_fifth_kind_takes_one_file(
    db: Database,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "driver_list.py").write_text(FIFTH)
    monkeypatch.setattr(known_kinds.kinds, "__path__", [*known_kinds.kinds.__path__, str(tmp_path)])
    file = tmp_path / "drivers.zip"
    for plate, counts in (("34 ABC 01", "20    20     0"), ("06 ABC 02", "20    0      1")):
        rows = [f"{turkish_id(number)};{'34 XY 9' if number else plate};34" for number in range(20)]
        packed(file, "\n".join(["identifier;plate;city", *rows]).encode())
        assert main(settings, ["sync", "--kind", "drivers", "--list", f"drivers/all={file}"]) == 0
        assert f"drivers  {counts}" in capsys.readouterr().out
