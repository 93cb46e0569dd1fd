"""The audit trail: one hash chain of all writers, in which verification finds any change."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy.exc
from sqlalchemy import Connection, text

from app.cli import verify_audit
from app.db.database import Database
from app.delivery.channels import audit_trail
from app.delivery.channels.audit_trail import GENESIS, Verified
from app.delivery.messages.values import NotificationType
from app.settings.settings import Settings
from tests.support.delivery import notification

METADATA = {"b": [1.0, 1e22, 0.1, -0.0, 2**53 + 1], "a": {"ş": None, "data": True}, "text": '"\\\n\u2028'}


def write(db: Database, number: int, each: int = 1) -> None:
    for start in range(0, number, each):
        events = [
            notification(
                notification_type=NotificationType.AUDIT, recipient="ops", subject=str(start + place), metadata=METADATA
            )
            for place in range(each)
        ]
        with db.transaction() as conn:
            audit_trail.append(conn, events)


def check(db: Database, known: bytes | None = None) -> Verified:
    return audit_trail.verify_audit_trail(db, known, page=4)


def is_intact(found: Verified) -> bool:
    return found.broken_id is None and found.missing is None


@contextmanager
def superuser(db: Database) -> Iterator[Connection]:
    """A transaction without the trigger that refuses changes."""
    with db.transaction() as conn:
        conn.execute(text("ALTER TABLE audit_entries DISABLE TRIGGER audit_entries_append_only"))
        yield conn
        conn.execute(text("ALTER TABLE audit_entries ENABLE TRIGGER audit_entries_append_only"))


def test_empty_trail_is_intact(db: Database) -> None:
    assert check(db) == Verified(0, GENESIS)


def test_entries_form_a_hash_chain(db: Database) -> None:
    write(db, 3)
    write(db, 6, each=3)
    with db.reading() as conn:
        rows = conn.execute(text("SELECT subject, previous_hash, hash FROM audit_entries ORDER BY id")).all()
    assert [one.subject for one in rows] == ["0", "1", "2", "0", "1", "2", "3", "4", "5"]
    assert [one.previous_hash for one in rows] == [GENESIS, *(one.hash for one in rows[:-1])]
    assert check(db) == Verified(9, rows[-1].hash, last_id=9)


def test_twenty_parallel_writers_form_one_chain(db: Database) -> None:
    together = Barrier(20)

    def write_with_others(_number: int) -> None:
        together.wait()
        write(db, 6, each=2)

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(write_with_others, range(20)))
    found = check(db)
    assert (found.count, is_intact(found)) == (120, True)


def test_failed_writer_leaves_no_gap(db: Database) -> None:
    write(db, 2)
    with pytest.raises(ZeroDivisionError), db.transaction() as conn:
        audit_trail.append(conn, [notification(notification_type=NotificationType.AUDIT)])
        raise ZeroDivisionError
    write(db, 2)
    assert (check(db).count, is_intact(check(db))) == (4, True)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET body = 'x'",
        "DELETE FROM audit_entries",
        "DELETE FROM audit_entries WHERE id = 2",
        "TRUNCATE audit_entries",
    ],
)
def test_database_refuses_changes_of_the_trail(db: Database, statement: str) -> None:
    write(db, 3)
    with pytest.raises(sqlalchemy.exc.ProgrammingError, match="append-only"), db.transaction() as conn:
        conn.execute(text(statement))
    assert check(db).count == 3


TAMPERING = {
    "another body": ("UPDATE audit_entries SET body = 'x' WHERE id = 6", 6),
    "another recipient": ("UPDATE audit_entries SET recipient = 'x' WHERE id = 1", 1),
    "other metadata": ("UPDATE audit_entries SET metadata = '{}' WHERE id = 9", 9),
    "the same metadata in other letters": (
        "UPDATE audit_entries SET metadata = metadata::jsonb::json WHERE id = 9",
        9,
    ),
    "another author": ("UPDATE audit_entries SET author = 'user:2' WHERE id = 7", 7),
    "no author": ("UPDATE audit_entries SET author = NULL WHERE id = 1", 1),
    "another time": ("UPDATE audit_entries SET written_at = written_at + interval '1 microsecond' WHERE id = 2", 2),
    "another id": ("UPDATE audit_entries SET notification_id = gen_random_uuid() WHERE id = 3", 3),
    "another hash": ("UPDATE audit_entries SET hash = decode(repeat('ab', 32), 'hex') WHERE id = 10", 10),
    "another hash before": ("UPDATE audit_entries SET previous_hash = decode('ab', 'hex') WHERE id = 4", 4),
    "one taken out": ("DELETE FROM audit_entries WHERE id = 5", 6),
    "the first taken out": ("DELETE FROM audit_entries WHERE id = 1", 2),
    "two that changed places": ("UPDATE audit_entries SET id = CASE id WHEN 3 THEN 40 ELSE id END WHERE id = 3", 4),
    "one put in": (
        "INSERT INTO audit_entries (id, notification_id, recipient, subject, body, metadata, written_at, previous_hash,"
        " hash) SELECT -1, gen_random_uuid(), '', '', '', '{}', written_at, previous_hash, hash FROM audit_entries"
        " WHERE id = 1",
        -1,
    ),
    "one put in at the end": (
        "INSERT INTO audit_entries (notification_id, recipient, subject, body, metadata, written_at, previous_hash,"
        " hash) SELECT gen_random_uuid(), '', '', '', '{}', written_at, hash, hash FROM audit_entries WHERE id = 10",
        11,
    ),
}


@pytest.mark.parametrize("how", TAMPERING)
def test_verification_finds_any_change(db: Database, how: str) -> None:
    statement, broken_id = TAMPERING[how]
    write(db, 10)
    with superuser(db) as conn:
        conn.execute(text(statement))
    found = check(db)
    assert (found.broken_id, is_intact(found)) == (broken_id, False)


def test_known_hash_reveals_a_truncated_trail(db: Database) -> None:
    write(db, 10)
    noted = check(db).last_hash
    write(db, 2)
    assert is_intact(check(db, noted))
    with superuser(db) as conn:
        conn.execute(text("DELETE FROM audit_entries WHERE id >= 10"))
    assert is_intact(check(db))
    assert not is_intact(check(db, noted))
    assert check(db, noted).missing == noted


def test_command_shows_the_result(db: Database, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    write(db, 5)
    noted = check(db).last_hash.hex()
    assert verify_audit.main(settings, ["verify"]) == 0
    first, *unknown = capsys.readouterr().out.splitlines()
    assert first == f"5 entries, last hash {noted}"
    assert [line[:9] for line in unknown] == ["Not known", "The role "]
    assert verify_audit.main(settings, ["verify", "--known", noted]) == 0
    assert verify_audit.main(settings, ["verify", "--known", "ab" * 32]) == 1
    assert "ab" * 32 in capsys.readouterr().err
    with superuser(db) as conn:
        conn.execute(text("UPDATE audit_entries SET subject = 'x' WHERE id = 4"))
    assert verify_audit.main(settings, ["verify"]) == 1
    assert capsys.readouterr().err == "Entry 4 does not follow from the 3 before it.\n"


@pytest.mark.parametrize("argv", [[], ["mend"], ["verify", "--known", "ab"], ["verify", "--known", "nothing"]])
def test_command_refuses_invalid_arguments_with_its_usage(settings: Settings, argv: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        verify_audit.main(settings, argv)
    assert ended.value.code == 2
