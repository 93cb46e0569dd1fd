"""Archive and changes are the table, always: random nights, readers that poll and crash, retention and approvals."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from app.db.database import Database
from app.roster import service as roster
from app.roster.contract import ChangesGone, ChangesPage, ChangesWindow
from app.roster.lists.reading_rules import ReadingRules
from app.roster.sync.comparison import KindReport, Rules
from app.roster.sync.guards import GuardLimits
from app.roster.sync.whole_run import ListFile, WholeRun
from tests.support.depth import size
from tests.support.lists import line, packed_students, turkish_id

KIND = roster.kind_named("students")
ZONE = ZoneInfo("Europe/Istanbul")
DAYS, FAR = 30, 100_000
LIMITS = GuardLimits(
    removed_percent=40,
    floor=1,
    least_rows=0,
    removed_percent_of_week=100,
    modified_percent=60,
    modified_percent_of_week=FAR,
    blanked_percent=100,
    blanked_percent_of_week=100,
)
TABLES = ("roster_approvals", "sync_metadata", "roster_runs", "roster_states", "roster_changes", "roster_rows")
People = Mapping[int, int]
"""By number of a person, the institution."""


@dataclass
class Reader:
    """Knows only what the feed has said."""

    copy: dict[str, Any] = field(default_factory=dict[str, Any])
    cursor: str | None = None
    since: datetime | None = None

    def apply(self, page: ChangesPage) -> None:
        for change in map(json.loads, page.changes):
            identifier, kind = change["identifier"], change["changeType"]
            if kind == "removed":
                self.copy.pop(identifier, None)
            else:
                self.copy[identifier] = {name: change[name] for name in ("identifier", "name", "phone", "aliases")}


@dataclass
class Feed:
    db: Database
    folder: Path

    def forget_everything(self) -> None:
        with self.db.transaction() as conn:
            for table in TABLES:
                conn.execute(text(f"DELETE FROM {table}"))

    def night(self, people: People) -> KindReport | None:
        """None if nothing has changed."""
        lines = {
            "enrolment": [line(number, institution=institution) for number, institution in people.items()],
            "clearance": [line(number, institution=people.get(number, 1)) for number in clearance_of(people)],
        }
        files = {name: packed_students(self.folder / f"{name}.zip", rows) for name, rows in lines.items()}
        gathered = {name: ListFile(file, sha256(file.read_bytes()).digest()) for name, file in files.items()}
        whole = WholeRun(self.db, Rules(LIMITS, DAYS), ReadingRules(ZONE), lambda *_: None)
        return whole.sync([KIND], {KIND.source.name: gathered}, dry_run=False).kinds.get(KIND.name)

    def approve(self, people: People) -> None:
        with self.db.transaction() as conn:
            run = roster.list_runs(conn, cursor=None, limit=1).items[0]
            roster.approve_run(conn, run.id, None)
        self.night(people)

    def let_days_pass(self, days: int, readers: list[Reader]) -> None:
        with self.db.transaction() as conn:
            # Far away and back, because each row is checked by itself and times are unique.
            for by in (timedelta(days=days + FAR), timedelta(days=-FAR)):
                for table in ("sync_metadata", "roster_changes"):
                    conn.execute(text(f"UPDATE {table} SET changed_at = changed_at - :by"), {"by": by})
        for reader in readers:
            reader.since = None if reader.since is None else reader.since - timedelta(days=days)
            # A cursor names the time of its run, which no real day changes.
            reader.cursor = None

    def begin(self, reader: Reader) -> None:
        roster.write_archive(self.db, KIND, self.folder)
        with self.db.reading() as conn:
            archive = roster.find_archive(conn, KIND, ZONE)
        file = roster.archive_folder(self.folder, KIND) / archive.name
        with gzip.open(file, "rt", encoding="utf-8") as rows:
            records = [json.loads(row) for row in rows]
        reader.copy = {
            record["identifier"]: {name: record[name] for name in ("identifier", "name", "phone", "aliases")}
            for record in records
        }
        reader.cursor, reader.since = archive.cursor, datetime.fromisoformat(archive.until)

    def read_by_cursor(self, reader: Reader, page_size: int, crash_after: int) -> None:
        """After so many pages the reader has applied one and dies before it keeps the cursor."""
        if reader.cursor is None:
            self.begin(reader)
        while True:
            assert reader.cursor is not None
            with self.db.reading() as conn:
                page = roster.read_after(conn, KIND, reader.cursor, page_size, ZONE)
            reader.apply(page)
            if crash_after == 0:
                return
            crash_after -= 1
            reader.cursor = page.next_cursor
            if not page.changes:
                return

    def read_by_time(self, reader: Reader, page_size: int) -> None:
        if reader.since is None:
            self.begin(reader)
        assert reader.since is not None
        number, last = 1, None
        while last is None or number <= -(-last.total // page_size):
            with self.db.reading() as conn:
                window = ChangesWindow(reader.since, None, number, page_size)
                last = roster.read_window(conn, KIND, window, DAYS, ZONE)
            reader.apply(last)
            number += 1
        reader.since = datetime.fromisoformat(last.until)

    def table(self) -> dict[str, Any]:
        with self.db.reading() as conn:
            rows = conn.execute(
                text("SELECT * FROM roster_rows WHERE document_type = :type"), {"type": KIND.document_type}
            )
            return {
                row.identifier: {
                    "identifier": row.identifier,
                    "name": row.fields["name"],
                    "phone": row.fields["phone"],
                    "aliases": row.aliases,
                }
                for row in rows
            }


PEOPLE = st.dictionaries(st.integers(0, 12), st.integers(1, 3), min_size=1, max_size=12)
STEPS = st.one_of(
    st.tuples(st.just("night"), PEOPLE, st.booleans()),
    st.tuples(st.just("read"), st.integers(1, 4), st.integers(0, 3)),
    st.tuples(st.just("days"), st.integers(1, 40), st.booleans()),
    st.tuples(st.just("archive"), st.just(0), st.just(0)),
)


@pytest.fixture
def feed(db: Database, tmp_path: Path) -> Feed:
    return Feed(db, tmp_path)


@settings(
    max_examples=size(suite=15, deep=400),
    database=None,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(first=PEOPLE, steps=st.lists(STEPS, min_size=3, max_size=12))
def test_archive_and_changes_are_the_table(
    feed: Feed, first: dict[int, int], steps: list[tuple[str, Any, Any]]
) -> None:
    feed.forget_everything()
    feed.night(first)
    readers = by_cursor, by_time = Reader(), Reader()
    expected, is_old = listed(first), False
    for step, one, other in steps:
        if step == "night":
            expected = check_night(feed, one, expected, approves=other)
        elif step == "read":
            crashes = other if other < 3 else -1
            poll(
                feed,
                by_cursor,
                lambda reader, pages=one, after=crashes: feed.read_by_cursor(reader, pages, after),
                is_old=is_old,
            )
            poll(feed, by_time, lambda reader, pages=one: feed.read_by_time(reader, pages), is_old=is_old)
        elif step == "days":
            feed.let_days_pass(one, list(readers))
            is_old = True
        else:
            roster.write_archive(feed.db, KIND, feed.folder)
    poll(feed, by_cursor, lambda reader: feed.read_by_cursor(reader, 2, -1), is_old=is_old)
    poll(feed, by_time, lambda reader: feed.read_by_time(reader, 2), is_old=is_old)
    assert by_cursor.copy == by_time.copy == feed.table()
    assert set(feed.table()) == expected


def clearance_of(people: People) -> list[int]:
    """A third of the people, or somebody else: a list has at least one row."""
    return [number for number in people if number % 3 == 0] or [0]


def listed(people: People) -> set[str]:
    return {turkish_id(number) for number in {*people, *clearance_of(people)}}


def check_night(feed: Feed, people: People, expected: set[str], *, approves: bool) -> set[str]:
    report = feed.night(people)
    wanted = listed(people)
    if report is not None and report.is_held_back and approves:
        feed.approve(people)
        return wanted
    held = report is not None and report.removals_held is not None
    return wanted | expected if held else wanted


def poll(feed: Feed, reader: Reader, read: Any, *, is_old: bool) -> None:
    try:
        read(reader)
    except ChangesGone:
        assert is_old, "nobody was away for longer than changes are kept"
        feed.begin(reader)
        read(reader)
