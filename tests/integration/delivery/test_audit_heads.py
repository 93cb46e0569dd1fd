"""Signed heads of the audit trail: what somebody with the database, but without the key, cannot hide."""

import json
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from structlog.testing import capture_logs

from app.cli import verify_audit
from app.db.database import Database
from app.delivery.audit_heads import EVERY_S, AuditHeads, read_heads, signed
from app.delivery.channels import audit_trail
from app.delivery.channels.audit_list import list_audit_entries
from app.delivery.messages.values import NotificationType
from app.settings.settings import Settings
from tests.support.delivery import notification

KEY, EARLIER = "k" * 32, "e" * 32

Verify = Callable[..., tuple[int, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "heads"


@pytest.fixture
def environ(folder: Path) -> dict[str, Any]:
    return {"audit_key": KEY, "audit_heads_dir": str(folder)}


@pytest.fixture
def verify(settings: Settings, capsys: pytest.CaptureFixture[str]) -> Verify:
    def run(**changes: Any) -> tuple[int, str]:
        code = verify_audit.main(settings.model_copy(update=changes), ["verify"])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def append(db: Database, subjects: str) -> None:
    with db.transaction() as conn:
        for subject in subjects:
            entry = notification(notification_type=NotificationType.AUDIT, recipient="ops", subject=subject)
            audit_trail.append(conn, [entry])


def sign(db: Database, folder: Path, *keys: str) -> None:
    assert AuditHeads(db, keys or (KEY,), str(folder)).write(folder) == EVERY_S


def by_owner(db: Database, change: Callable[[Connection], Any]) -> None:
    with db.transaction() as conn:
        conn.execute(text("ALTER TABLE audit_entries DISABLE TRIGGER USER"))
        change(conn)
        conn.execute(text("ALTER TABLE audit_entries ENABLE TRIGGER USER"))


def cut(db: Database, after: int) -> None:
    by_owner(db, lambda conn: conn.execute(text("DELETE FROM audit_entries WHERE id > :id"), {"id": after}))


def test_head_covers_the_trail_and_the_rest_is_named(db: Database, folder: Path, verify: Verify) -> None:
    append(db, "abc")
    sign(db, folder)
    code, printed = verify()
    assert (code, "covers all of them" in printed) == (0, True)
    append(db, "d")
    code, printed = verify()
    assert (code, "covers those up to entry 3" in printed) == (0, True)
    assert "Not known: whether entries after it were changed or removed" in printed


def test_trail_without_a_head_is_not_called_whole(db: Database, verify: Verify) -> None:
    append(db, "a")
    code, printed = verify()
    assert (code, "has no signed head yet" in printed) == (0, True)


def test_cut_tail_is_found(db: Database, folder: Path, verify: Verify) -> None:
    append(db, "abc")
    sign(db, folder)
    cut(db, after=2)
    code, printed = verify()
    assert (code, "Entry 3, signed on" in printed) == (1, True)


def test_trail_that_was_written_anew_is_found(db: Database, folder: Path, verify: Verify) -> None:
    """All hashes of the forged chain are right, and it is as long as the true one."""
    append(db, "abc")
    sign(db, folder)
    cut(db, after=0)
    by_owner(db, lambda conn: conn.execute(text("ALTER TABLE audit_entries ALTER COLUMN id RESTART")))
    append(db, "xyz")
    assert audit_trail.verify_audit_trail(db).broken_id is None
    code, printed = verify()
    assert (code, "Entry 3, signed on" in printed) == (1, True)


def test_no_head_is_signed_for_a_trail_that_misses_the_one_before(db: Database, folder: Path) -> None:
    append(db, "abc")
    sign(db, folder)
    cut(db, after=2)
    append(db, "d")
    with capture_logs() as logs:
        sign(db, folder)
    assert [path.name for path in folder.iterdir()] == [f"{3:020d}.json"]
    assert [(one["event"], one["entry_id"]) for one in logs] == [("audit_trail_misses_its_head", 3)]


def test_forged_head_does_not_stop_the_signing(db: Database, folder: Path) -> None:
    append(db, "a")
    folder.mkdir()
    forged = signed("another key", 99, bytes(32), "2026-01-01T00:00:00Z")
    (folder / forged.name).write_text(json.dumps(vars(forged)))
    sign(db, folder)
    assert [head.entry for head in read_heads(folder, [KEY]).heads] == [1]


def test_head_by_somebody_without_the_key_is_found(db: Database, folder: Path, verify: Verify) -> None:
    append(db, "abc")
    sign(db, folder)
    with db.reading() as conn:
        last = list_audit_entries(conn).items[0]
    forged = signed("another key", last.id, last.hash, "2026-01-01T00:00:00Z")
    (folder / forged.name).write_text(json.dumps(vars(forged)))
    code, printed = verify()
    assert (code, f"The head {forged.name} is not signed" in printed) == (1, True)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{}", "[1]", "{"),
        *(f'{{"entry": 3, "hash": "", "at": "", "signature": {signature}}}' for signature in ('""', "3", '"\\ud800"')),
    ],
)
def test_head_that_cannot_be_read_is_found(db: Database, folder: Path, verify: Verify, content: str) -> None:
    append(db, "abc")
    sign(db, folder)
    (folder / f"{3:020d}.json").write_text(content)
    assert verify()[0] == 1


def test_renamed_head_is_found(db: Database, folder: Path) -> None:
    append(db, "abc")
    sign(db, folder)
    (folder / f"{3:020d}.json").rename(folder / f"{9:020d}.json")
    assert read_heads(folder, [KEY]).forged == (f"{9:020d}.json",)


def test_heads_of_an_earlier_key_stay_known(db: Database, folder: Path, verify: Verify) -> None:
    append(db, "a")
    sign(db, folder, EARLIER)
    append(db, "b")
    sign(db, folder)
    assert verify()[0] == 1
    code, printed = verify(audit_key=f"{KEY} {EARLIER}")
    assert (code, "Signed heads: 2." in printed) == (0, True)


def test_clock_that_jumps_back_does_not_matter(db: Database, folder: Path, verify: Verify) -> None:
    """Heads are named for their entries, and ordered by them."""
    append(db, "a")
    with db.reading() as conn:
        [entry] = list_audit_entries(conn).items
    folder.mkdir()
    ahead = signed(KEY, entry.id, entry.hash, "2099-01-01T00:00:00Z")
    (folder / ahead.name).write_text(json.dumps(vars(ahead)))
    append(db, "b")
    sign(db, folder)
    code, printed = verify()
    assert (code, "covers all of them" in printed) == (0, True)


def test_full_disk_leaves_no_half_head(db: Database, folder: Path, verify: Verify) -> None:
    append(db, "a")
    sign(db, folder)
    append(db, "b")
    with no_file_longer_than(20), pytest.raises(OSError):
        sign(db, folder)
    assert [path.name for path in folder.iterdir()] == [f"{1:020d}.json"]
    assert verify()[0] == 0
    sign(db, folder)
    assert "covers all of them" in verify()[1]


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """The system refuses to write more, as on a full disk, after a part was written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_last_head_is_written_when_the_role_ends(db: Database, folder: Path) -> None:
    append(db, "a")
    stop = threading.Event()
    stop.set()
    AuditHeads(db, (KEY,), str(folder)).run(stop)
    assert [head.entry for head in read_heads(folder, [KEY]).heads] == [1]


def test_without_a_folder_nothing_is_written(db: Database, folder: Path) -> None:
    append(db, "a")
    stop = threading.Event()
    stop.set()
    AuditHeads(db, (), None).run(stop)
    assert not folder.exists()
