"""What the torture knows of the lists: each planted violation is caught, and nothing where all is well."""

import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from werkzeug.serving import make_server

from app.api.services import Services
from app.bootstrap.api import create_app
from app.roster.models import ConsumerScope
from app.roster.service import sync
from tests.support.world import leave_consumer
from tests.torture import roster_checks
from tests.torture.feed_poller import FeedPoller
from tests.torture.nightly_lists import NightlyLists
from tests.torture.published_lists import KINDS, Publisher, listed

ONE_STUDENT = "(SELECT user_id FROM roster_people WHERE document_type = 3 ORDER BY identifier LIMIT 1)"
UNBIND = f"DELETE FROM roster_people WHERE user_id = {ONE_STUDENT}"

PLANTS = {
    "a person on a list who neither is bound nor waits": UNBIND,
    "a person who was entered twice": "INSERT INTO users (role, name, phone) SELECT role, name, phone FROM users",
    "rows that are none of the published lists": 'UPDATE roster_rows SET fields = fields || \'{"name": "Can"}\'',
    "rows that are not the last lists": "DELETE FROM roster_rows WHERE document_type = 3",
    "a person who still waits after an undisturbed run": "INSERT INTO roster_to_apply VALUES (3, '1', 1)",
    "a person on a list who is not active": f"UPDATE users SET active = false WHERE id = {ONE_STUDENT}",
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, Any]:
    return {"roster_dir": str(tmp_path / "roster"), "roster_removed_floor": 1000, "roster_least_rows": 0}


@pytest.fixture
def publisher(services: Services, tmp_path: Path) -> Publisher:
    """Two publications, both taken."""
    made = Publisher(tmp_path / "lists", listed({"students": [], "elders": []}, 20), random.Random(1))
    for everybody in (False, True):
        take(services, made, everybody=everybody)
    return made


def take(services: Services, publisher: Publisher, *, everybody: bool) -> None:
    sources = {"roster_sources": publisher.publish(everybody=everybody).sources}
    settings = services.settings.model_copy(update=sources)
    sync(services.db, services.matching, settings, (), dry_run=False, step=lambda *_: None)


@pytest.fixture
def conn(services: Services) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(services.settings.database_url) as connected:
        yield connected
        connected.rollback()


@pytest.fixture
def poller(services: Services, publisher: Publisher, tmp_path: Path) -> Iterator[FeedPoller]:
    tokens = {kind: f"yr_{kind}" for kind in KINDS}
    with services.db.transaction() as conn:
        for kind, token in tokens.items():
            leave_consumer(conn, kind, ConsumerScope.READ, token)
    server = make_server("127.0.0.1", 0, create_app(services), threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield FeedPoller(tmp_path, [server.server_port], tokens, publisher, random.Random(2))
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_planted_violation_is_caught(conn: psycopg.Connection[Any], publisher: Publisher) -> None:
    assert roster_checks.check_followed(conn, publisher) == []
    for promise, plant in PLANTS.items():
        conn.execute(plant.encode())
        assert promise in {one.promise for one in roster_checks.check_followed(conn, publisher)}
        conn.rollback()


def test_a_run_of_which_only_one_kind_was_kept_is_caught(
    conn: psycopg.Connection[Any], services: Services, publisher: Publisher
) -> None:
    conn.execute("CREATE TEMPORARY TABLE before AS SELECT * FROM roster_rows WHERE document_type = 3")
    conn.commit()
    take(services, publisher, everybody=True)
    assert roster_checks.check_lists(conn, publisher) == []
    conn.execute("DELETE FROM roster_rows WHERE document_type = 3")
    conn.execute("INSERT INTO roster_rows SELECT * FROM before")
    [found] = roster_checks.check_lists(conn, publisher)
    assert found.promise == "rows that are none of the published lists"


def test_an_archive_that_is_gone_cut_short_or_of_another_list_is_caught(
    conn: psycopg.Connection[Any], publisher: Publisher, tmp_path: Path
) -> None:
    folder = tmp_path / "roster"
    assert roster_checks.check_archives(conn, folder, publisher) == []
    [name] = conn.execute("SELECT archive_name FROM roster_states WHERE document_type = 3").fetchone() or [""]
    archive = folder / "archives" / "students" / name
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-20])
    [cut] = roster_checks.check_archives(conn, folder, publisher)
    archive.unlink()
    [gone] = roster_checks.check_archives(conn, folder, publisher)
    archive.write_bytes(whole)
    publisher.published.clear()
    of_none = roster_checks.check_archives(conn, folder, publisher)
    assert {cut.promise, gone.promise, *(one.promise for one in of_none)} == {"an archive that is missing or not whole"}
    assert ["EOFError" in cut.detail, "FileNotFoundError" in gone.detail, len(of_none)] == [True, True, 2]


def test_copies_that_follow_are_no_violation(services: Services, publisher: Publisher, poller: FeedPoller) -> None:
    poller.poll("students")
    take(services, publisher, everybody=False)
    poller.compare()
    assert poller.violations == []
    assert (poller.counts.changes > 0, poller.counts.bootstraps) == (True, 4)


def test_a_copy_that_differs_from_the_list_is_caught(poller: FeedPoller, tmp_path: Path) -> None:
    poller.poll("students")
    with closing(sqlite3.connect(tmp_path / "copy-students.db")) as copy, copy:
        copy.execute("DELETE FROM people WHERE identifier = (SELECT min(identifier) FROM people)")
    poller.compare()
    assert [one.promise for one in poller.violations] == [
        "a copy that is none of the published lists",
        "a copy, followed, that differs from the list",
    ]


def test_an_answer_that_a_consumer_must_not_get_is_caught(
    services: Services, publisher: Publisher, poller: FeedPoller, conn: psycopg.Connection[Any]
) -> None:
    poller.poll("students")
    take(services, publisher, everybody=False)
    conn.execute("DELETE FROM roster_changes")
    conn.commit()
    poller.poll("students")
    poller.tokens = {"elders": "yr_revoked"}
    poller.poll("elders")
    [gone, refused] = poller.violations
    assert gone.promise == refused.promise == "an answer that a consumer must not get"
    assert ("410" in gone.detail, "401" in refused.detail) == (True, True)


def test_a_run_that_ends_badly_is_caught(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path / "lists", listed({"students": [], "elders": []}, 1), random.Random(1))
    log = tmp_path / "sync.log"
    nightly = NightlyLists(publisher, {"PATH": "/usr/bin:/bin"}, log, random.Random(1), quick=True)
    nightly.take_everybody()
    assert [one.promise for one in nightly.violations] == [
        "a run that ended in a way of its own",
        "an undisturbed run that did not take its lists",
    ]
    assert nightly.tracebacks() == []
    log.write_text("Traceback (most recent call last):\n")
    assert [one.promise for one in nightly.tracebacks()] == ["a run that broke off with a traceback"]
