"""Lists that publishers push: the last whole one is kept."""

import hashlib
import io
import os
from pathlib import Path

import pytest

from app.roster.lists.list_refused import ListRefused, Refusal
from app.roster.lists.pushed_lists import find_pushed, keep_pushed
from app.roster.lists.reading_rules import ListLimits
from tests.support.lists import packed

LIMITS = ListLimits()


def push(folder: Path, content: bytes, sha256: str | None = None, limits: ListLimits = LIMITS) -> Path:
    return keep_pushed(io.BytesIO(content), folder, "students", "enrolment", limits, sha256).file


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    return packed(tmp_path / "made.zip", b"a;b").read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pushed"


def test_pushed_list_is_found(folder: Path, content: bytes) -> None:
    assert find_pushed(folder, "students", "enrolment") is None
    kept = push(folder, content, hashlib.sha256(content).hexdigest().upper())
    assert find_pushed(folder, "students", "enrolment") == kept
    assert (kept.read_bytes(), find_pushed(folder, "students", "clearance")) == (content, None)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"sha256": "0" * 64}, Refusal.CHECKSUM),
        ({"limits": ListLimits(archive_bytes=20)}, Refusal.TOO_LARGE),
        ({"content": b"<html>"}, Refusal.HTML),
        ({"content": b""}, Refusal.NOT_A_ZIP),
    ],
)
def test_refused_list_leaves_the_one_before(
    folder: Path, content: bytes, wrong: dict[str, object], reason: Refusal
) -> None:
    kept = push(folder, content)
    with pytest.raises(ListRefused) as caught:
        push(folder, **({"content": content} | wrong))  # pyright: ignore[reportArgumentType]
    assert caught.value.reason is reason
    assert (kept.read_bytes(), files_in(folder)) == (content, ["enrolment.zip"])


def test_upload_that_breaks_off_leaves_the_one_before(folder: Path, content: bytes) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(size) or self._break()

        def _break(self) -> bytes:
            raise ConnectionResetError

    kept = push(folder, content)
    with pytest.raises(ConnectionResetError):
        keep_pushed(Broken(content), folder, "students", "enrolment", LIMITS)
    assert (kept.read_bytes(), files_in(folder)) == (content, ["enrolment.zip"])


def test_who_reads_the_one_before_reads_on(folder: Path, content: bytes, tmp_path: Path) -> None:
    with push(folder, content).open("rb") as opened:
        assert push(folder, packed(tmp_path / "made.zip", b"other").read_bytes()).read_bytes() != content
        assert opened.read() == content


def test_parts_of_killed_processes_are_removed_after_a_day(folder: Path, content: bytes) -> None:
    for name, age_s in (("old.part", 100_000), ("new.part", 1_000)):
        part = push(folder, content).with_name(name)
        part.touch()
        now = part.stat().st_mtime
        os.utime(part, (now - age_s, now - age_s))
    push(folder, content)
    assert files_in(folder) == ["enrolment.zip", "new.part"]


@pytest.mark.parametrize("name", ["../x", "", "a/b", "A", "."])
def test_names_cannot_leave_the_folder(folder: Path, content: bytes, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        keep_pushed(io.BytesIO(content), folder, "students", name, LIMITS)
    assert not folder.exists()
