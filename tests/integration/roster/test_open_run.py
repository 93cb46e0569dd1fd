"""A run whose transaction stays open for long, as that of a large list does, and readers beside it."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from app.api.services import Services
from app.db.database import Database
from app.roster import service as roster
from app.roster.contract import ChangesPage, ChangesWindow
from app.roster.lists.reading_rules import ReadingRules
from app.roster.sync.comparison import Rules, Step
from app.roster.sync.guards import GuardLimits
from app.roster.sync.whole_run import ListFile, WholeRun
from tests.support.depth import size
from tests.support.lists import line, packed, turkish_id

STUDENTS, ELDERS = roster.kind_named("students"), roster.kind_named("elders")
KINDS = (STUDENTS, ELDERS)
ZONE = ZoneInfo("Europe/Istanbul")
DAYS = 30
OPEN_GUARDS = GuardLimits(100, 1_000, 0, 100, 100, 100, 100, 100)
HELD_OPEN_S = size(suite=2, deep=60)
"""Longer than a second, because times in answers are whole seconds."""
HEADERS = {"students": "identifier;name;phone;institution", "elders": "identifier;name;phone;lat;lon;institution"}


@dataclass
class Poller:
    """Keeps only what the feed has said."""

    db: Database
    since: datetime
    cursor: str
    seen: dict[str, list[str]] = field(default_factory=lambda: {"time": [], "cursor": []})

    def poll(self) -> None:
        with self.db.reading() as conn:
            now = datetime.now(UTC)
            by_time = roster.read_window(conn, STUDENTS, ChangesWindow(self.since, now, 1, 1000), DAYS, ZONE)
            by_cursor = roster.read_after(conn, STUDENTS, self.cursor, 1000, ZONE)
        self.since, self.cursor = datetime.fromisoformat(by_time.until), by_cursor.next_cursor
        for way, page in (("time", by_time), ("cursor", by_cursor)):
            self.seen[way] += names(page)


def names(page: ChangesPage) -> list[str]:
    return [json.loads(change)["identifier"] for change in page.changes]


def run(db: Database, folder: Path, people: range, step: Step = lambda *_: None) -> None:
    files = {kind.source.name: _files(folder, kind.name, people) for kind in KINDS}
    WholeRun(db, Rules(OPEN_GUARDS, DAYS), ReadingRules(ZONE), step).sync(KINDS, files, dry_run=False)


def _files(folder: Path, kind: str, people: range) -> Mapping[str, ListFile]:
    header = HEADERS[kind]
    rows = [";".join((*line(number).split(";")[:-1], *[""] * (header.count(";") - 3), "1001")) for number in people]
    file = packed(folder / f"{kind}-{people.stop}.zip", "\n".join([header, *rows, ""]).encode())
    return dict.fromkeys(("enrolment", "clearance"), ListFile(file, sha256(file.read_bytes()).digest()))


def test_readers_beside_an_open_run_wait_for_nothing_and_miss_nothing(services: Services, tmp_path: Path) -> None:
    """If they waited for the run, this test would not end: it lets the run commit only after they have read."""
    run(services.db, tmp_path, range(20))
    roster.write_archive(services.db, STUDENTS, tmp_path)
    with services.db.reading() as conn:
        archive = roster.find_archive(conn, STUDENTS, ZONE)
    poller = Poller(services.db, datetime.fromisoformat(archive.until), archive.cursor)
    is_open, may_commit = threading.Event(), threading.Event()

    def hold_open(place: str, part: str, _records: int) -> None:
        """The changes of the students are published, and the elders come next."""
        if (place, part) == ("elders", "compare"):
            is_open.set()
            may_commit.wait(HELD_OPEN_S + 60)

    running = threading.Thread(target=run, args=(services.db, tmp_path, range(5, 25), hold_open))
    running.start()
    assert is_open.wait(30)
    until = time.monotonic() + HELD_OPEN_S
    while time.monotonic() < until:
        poller.poll()
        time.sleep(0.05)
    assert poller.seen == {"time": [], "cursor": []}
    may_commit.set()
    running.join()
    poller.poll()
    changed: Any = sorted(turkish_id(number) for number in (*range(5), *range(20, 25)))
    assert {way: sorted(seen) for way, seen in poller.seen.items()} == {"time": changed, "cursor": changed}
    poller.poll()
    assert len(poller.seen["time"]) == len(poller.seen["cursor"]) == 10
