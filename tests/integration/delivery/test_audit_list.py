"""Filters of the audit trail, and that each of them has an index."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, text

from app.db.database import Database
from app.delivery.channels.audit_list import AuditFilter, SubjectKind, list_audit_entries, list_query

START = datetime(2026, 3, 1, tzinfo=UTC)
TASK = "01900000-0000-7000-8000-000000000007"
PLAIN = {"author": "user:2", "recipient": "/users/6", "deed": "PATCH /users/{userId}", "metadata": "{}"}
_WRITE = text(
    """
    INSERT INTO audit_entries
           (notification_id, recipient, subject, body, metadata, written_at, previous_hash, hash, author)
    VALUES (gen_random_uuid(), :recipient, :deed, '', CAST(:metadata AS json), :at, '', '', :author)
    RETURNING id
    """
)


@pytest.fixture
def conn(db: Database) -> Iterator[Connection]:
    with db.transaction() as opened:
        yield opened


def write(conn: Connection, minutes: float = 0, **fields: str) -> int:
    at = START + timedelta(minutes=minutes)
    return conn.execute(_WRITE, {**PLAIN, "at": at, **fields}).scalar_one()


def found(conn: Connection, limit: int = 2, **filters: Any) -> list[int]:
    """All pages."""
    ids: list[int] = []
    cursor = None
    while True:
        page = list_audit_entries(conn, AuditFilter(**filters), cursor=cursor, limit=limit)
        ids += [entry.id for entry in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return ids


def test_each_filter_finds_its_entries_on_all_pages(conn: Connection) -> None:
    authors, deeds = ["user:2", "user:3", "operator"], ["POST /users", "users"]
    ids = [write(conn, number, author=authors[number % 3], deed=deeds[number % 2]) for number in range(24)]
    ids.reverse()
    assert found(conn) == ids
    assert found(conn, author="user:3") == ids[1::3]
    assert found(conn, deed="users") == ids[0::2]
    assert found(conn, author="operator", deed="users") == ids[0::6]
    since, until = START + timedelta(minutes=4), START + timedelta(minutes=9)
    assert found(conn, since=since, until=until) == ids[15:20], "from the first time up to the second one"
    assert found(conn, author="user:2", until=until) == ids[17::3]


def test_entries_of_one_moment_and_of_a_clock_that_was_set_back_are_found_once(conn: Connection) -> None:
    ids = [write(conn, minutes) for minutes in (0, 5, 5, 5, 1, 1, 6)]
    assert found(conn) == [ids[place] for place in (6, 3, 2, 1, 5, 4, 0)]
    assert found(conn, until=START + timedelta(minutes=2)) == [ids[5], ids[4], ids[0]]


ABOUT_THE_TASK = {
    "address": {"recipient": f"/tasks/{TASK}/cancel"},
    "short address": {"recipient": f"task:{TASK}"},
    "row": {"metadata": f'{{"changes": [{{"table": "tasks", "row": {{"id": "{TASK}"}}}}]}}'},
    "row of an offer": {
        "metadata": f'{{"changes": [{{"table": "offers", "row": {{"id": 8, "task_id": "{TASK}", "student_id": 9}}}}]}}'
    },
}


@pytest.mark.parametrize("entry", ABOUT_THE_TASK.values(), ids=ABOUT_THE_TASK)
def test_entry_is_found_by_what_it_is_about(conn: Connection, entry: dict[str, str]) -> None:
    id_ = write(conn, **entry)
    write(conn, recipient=f"/tasks/{UUID(int=9)}/cancel")
    write(conn, recipient=f"/jobs/{TASK}")
    assert found(conn, about=(SubjectKind.TASK, TASK)) == [id_]


def test_subjects_are_told_apart_by_kind_and_whole_id(conn: Connection) -> None:
    step = write(conn, recipient="/api/v1/action-plans/3/steps/5")
    new = write(conn, recipient="/users", metadata='{"changes": [{"table": "users", "row": {"id": 3}}]}')
    write(conn, recipient="/users/33")
    student = '{"changes": [{"table": "offers", "row": {"id": 3, "student_id": 3}}]}'
    asked = write(conn, recipient="/tasks", metadata=student)
    assert found(conn, about=(SubjectKind.PLAN, "3")) == found(conn, about=(SubjectKind.STEP, "5")) == [step]
    assert found(conn, about=(SubjectKind.USER, "3")) == [asked, new]
    assert found(conn, about=(SubjectKind.USER, "3"), deed="POST /users") == []


@pytest.mark.parametrize(
    "metadata",
    [
        "[]",
        "7",
        '{"changes": 7}',
        '{"changes": [7, null, [], {"row": 7}, {"table": "users", "row": {"id": {"a": 1}}}]}',
        '{"changes": [{"row": {"id": 6}}, {"table": "' + "x" * 8000 + '", "row": {"id": 6, "' + "y" * 8000 + '": 7}}]}',
        '{"changes": [{"table": "users", "row": {"id": "' + "6" * 8000 + '"}}]}',
    ],
)
def test_metadata_of_any_form_is_written(conn: Connection, metadata: str) -> None:
    """Services write entries too. What they send must not keep the trail from being written."""
    id_ = write(conn, recipient="ops", metadata=metadata)
    assert found(conn) == [id_] and found(conn, about=(SubjectKind.USER, "6")) == []


INDEXES: dict[str, dict[str, Any]] = {
    "audit_entries_time_idx": {"since": START, "until": START + timedelta(days=1)},
    "audit_entries_author_idx": {"author": "user:2"},
    "audit_entries_deed_idx": {"deed": "users"},
    "audit_entries_subjects_idx": {"about": (SubjectKind.USER, "6")},
}


@pytest.mark.parametrize("index", INDEXES)
def test_each_filter_has_an_index_that_serves_the_cursor_too(conn: Connection, index: str) -> None:
    last = [write(conn, number) for number in range(3)][-1]
    inverted = index == "audit_entries_subjects_idx"
    statements: list[str] = []
    # A planner of three rows takes any index, so it gets no other one, and no way around.
    with conn.begin_nested() as undone:
        for other in INDEXES.keys() - {index}:
            conn.execute(text(f"DROP INDEX {other}"))
        for way in ("seqscan", "indexscan") if inverted else ("seqscan", "bitmapscan", "sort"):
            conn.execute(text(f"SET LOCAL enable_{way} = off"))
        for cursor in (None, str(last)):
            compiled = list_query(AuditFilter(**INDEXES[index]), cursor, 51).compile(conn)
            rows = conn.exec_driver_sql(f"EXPLAIN (COSTS OFF) {compiled}", compiled.params).scalars().all()
            statements.append("\n".join(rows))
        undone.rollback()
    assert all(index in plan for plan in statements), statements
    if not inverted:
        assert not any("Sort" in plan for plan in statements), statements
