"""Lists are pushed, runs are listed, and what a run held back is approved, over HTTP."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from app.api.services import Services
from app.roster import service as roster
from app.roster.contract import RunReport
from app.roster.models import ConsumerScope
from tests.support.lists import line, packed_bytes, students_csv
from tests.support.world import World, leave_consumer

NAMES = ("enrolment", "clearance")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, Any]:
    return {"roster_dir": str(tmp_path / "roster"), "roster_removed_floor": 2, "roster_list_bytes": 50_000}


@pytest.fixture
def push(app: Any, services: Services, world: World) -> Any:
    with services.db.transaction() as conn:
        leave_consumer(conn, "students", ConsumerScope.PUSH, "yr_university")

    def push(content: bytes, name: str = "enrolment", sha256: str | None = None) -> tuple[int, Any]:
        headers = {"Authorization": "Bearer yr_university"} | ({"Roster-Sha256": sha256} if sha256 else {})
        response = app.test_client().put(f"/api/v1/roster/students/lists/{name}", data=content, headers=headers)
        return response.status_code, response.get_json(force=True)

    return push


def archive(people: int) -> bytes:
    return packed_bytes(students_csv(map(line, range(people))))


def sync(services: Services) -> RunReport:
    return roster.sync(
        services.db, services.matching, services.settings, ["students"], dry_run=False, step=lambda *_: None
    )


def test_pushed_lists_are_read_by_the_next_run(push: Any, services: Services) -> None:
    content = archive(20)
    sha256 = hashlib.sha256(content).hexdigest()
    for name in NAMES:
        assert push(content, name, sha256.upper()) == (200, {"sha256": sha256, "size": len(content)})
    assert sync(services).kinds["students"].added == 20


@pytest.mark.parametrize(
    ("content", "sha256", "reason"),
    [
        (archive(3), "0" * 64, "CHECKSUM"),
        (b"<!doctype html><title>Giris</title>", None, "HTML"),
        (archive(3)[:-30], None, "DAMAGED"),
        (bytes(60_000), None, "TOO_LARGE"),
    ],
)
def test_archive_that_cannot_be_taken_leaves_the_one_before(
    push: Any, tmp_path: Path, content: bytes, sha256: str | None, reason: str
) -> None:
    before = archive(5)
    assert push(before)[0] == 200
    status, problem = push(content, sha256=sha256)
    assert (status, problem["code"], problem["reason"]) == (400, "list_not_taken", reason)
    assert (tmp_path / "roster/pushed/students/enrolment.zip").read_bytes() == before


def test_unknown_list_is_named_with_those_that_there_are(push: Any) -> None:
    status, problem = push(archive(3), "graduates")
    assert (status, problem["code"]) == (404, "unknown_list")
    assert "enrolment, clearance" in problem["detail"]


def test_runs_are_listed_and_what_was_held_back_is_approved(push: Any, call: Any, services: Services) -> None:
    for people in (40, 30):
        for name in NAMES:
            push(archive(people), name)
        held = sync(services)
    assert 'yaninda_roster_sync_removal_skipped_total{kind="students"} 1.0' in call("admin", "GET", "/metrics").text
    runs = call("admin", "GET", "/api/v1/roster/runs?limit=1").json["items"]
    assert [(run["id"], run["status"]) for run in runs] == [(held.id, "PARTIAL")]
    path = f"/api/v1/roster/runs/{held.id}"
    assert call("admin", "GET", path).json["report"]["kinds"]["students"]["removals_found"] == 10
    assert call("admin", "POST", f"{path}/approve").json == {"kinds": ["students"]}
    assert sync(services).kinds["students"].removed == 10
    assert call("admin", "POST", f"/api/v1/roster/runs/{held.id + 1}/approve").json["code"] == "nothing_held_back"
    assert call("admin", "GET", "/api/v1/roster/runs/999").json["code"] == "roster_run_not_found"
