"""The reference consumer against a live server: its copy is the list, whatever happens in between."""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import feed_consumer
import pytest
from sqlalchemy import text
from werkzeug.serving import make_server

from app.api.services import Services
from app.bootstrap.api import create_app
from app.roster import service as roster
from app.roster.kinds.known_kinds import kind_named
from app.roster.models import ConsumerScope
from tests.support.rosters import RowChange, add_run, added, forget_changes, modified, removed
from tests.support.world import leave_consumer

ROOT = Path(__file__).resolve().parents[3]
ELDERS = kind_named("elders")
TOKEN = "yr_of-a-consumer"
FIRST = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, Any]:
    return {"roster_dir": str(tmp_path)}


class Mishaps:
    """Stands before the service. It answers the next requests with 503, or breaks off the next answers."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.refuse = 0
        self.cut: list[int] = []
        """After so many bytes."""
        self.pretend: list[bytes] = []
        """What somebody between the consumer and the service answers."""
        self.url = ""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        if self.refuse:
            self.refuse -= 1
            start_response("503 Service Unavailable", [("Retry-After", "7"), ("Content-Length", "0")])
            return [b""]
        if self.pretend:
            start_response("200 OK", [])
            return [self.pretend.pop(0)]
        answer = self._app(environ, start_response)
        if not self.cut:
            return answer
        with closing(answer):
            return [b"".join(answer)[: self.cut.pop(0)]]


@pytest.fixture
def service(services: Services) -> Iterator[Mishaps]:
    with services.db.transaction() as conn:
        leave_consumer(conn, "elders", ConsumerScope.READ, TOKEN)
    app = Mishaps(create_app(services))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    app.url = f"http://127.0.0.1:{server.server_port}"
    yield app
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def sync(services: Services, tmp_path: Path) -> Any:
    def sync(hours: float, *changes: RowChange, write: bool = False) -> None:
        with services.db.transaction() as conn:
            add_run(conn, ELDERS, FIRST + timedelta(hours=hours), changes)
        if write:
            roster.write_archive(services.db, ELDERS, tmp_path)

    return sync


class Consumer:
    def __init__(self, service: Mishaps, path: Path, sleep: Callable[[float], None] | None = None) -> None:
        self.path = path
        self.waits: list[float] = []
        self._feed = feed_consumer.FeedClient(service.url, "elders", TOKEN, sleep=sleep or self.waits.append)

    def poll(self) -> dict[str, Any]:
        with closing(feed_consumer.open_copy(self.path)) as copy:
            feed_consumer.bring_up_to_date(self._feed, copy, page_size=2)
            return self.copy()

    def copy(self) -> dict[str, Any]:
        with closing(sqlite3.connect(self.path)) as copy:
            return {identifier: json.loads(record) for identifier, record in copy.execute("SELECT * FROM people")}


@pytest.fixture
def consumer(service: Mishaps, tmp_path: Path) -> Consumer:
    return Consumer(service, tmp_path / "copy.db")


def the_list(services: Services) -> dict[str, Any]:
    """As an archive that is written now shows it."""
    with services.db.reading() as conn:
        rows = conn.execute(text("SELECT identifier, fields, aliases FROM roster_rows WHERE document_type = 4")).all()
    empty = dict.fromkeys(column.shown_as for column in ELDERS.source.columns)
    people = [{"identifier": row.identifier, **empty, **row.fields, "aliases": row.aliases} for row in rows]
    return {person["identifier"]: person for person in people}


def test_the_copy_is_the_list_after_an_archive_and_changes(services: Services, sync: Any, consumer: Consumer):
    sync(0, *(added(str(number), name=f"Ayşe {number}") for number in range(5)), write=True)
    sync(1, modified("1", name="Fatma"), removed("2"), added("7", name="Zeynep"))
    assert consumer.poll() == the_list(services)
    sync(2, removed("7"), modified("1", phone="+905551112233"), added("2", name="İpek"))
    assert consumer.poll() == the_list(services)
    assert consumer.poll() == the_list(services)


def test_a_consumer_that_missed_changes_begins_with_the_archive_again(
    services: Services, sync: Any, consumer: Consumer
):
    sync(0, added("1", name="Ayşe"), added("2", name="Fatma"), write=True)
    consumer.poll()
    sync(1, removed("1"), added("3", name="Zeynep"), write=True)
    with services.db.transaction() as conn:
        forget_changes(conn, ELDERS, 2)
    sync(2, modified("3", name="İpek"))
    assert consumer.poll() == the_list(services)


KILLED = """
import os, sqlite3, sys
from pathlib import Path
import feed_consumer

class KilledAt(sqlite3.Connection):
    passages = 0
    def execute(self, sql, *values):
        if sql.startswith(sys.argv[3]):
            self.passages += 1
            if self.passages == int(sys.argv[4]):
                os.kill(os.getpid(), 9)
        return super().execute(sql, *values)

feed = feed_consumer.FeedClient(sys.argv[1], "elders", feed_consumer.read_token(None))
feed_consumer.bring_up_to_date(feed, feed_consumer.open_copy(Path(sys.argv[2]), KilledAt), page_size=2)
"""


@pytest.mark.parametrize(
    ("statement", "passage", "left"),
    [
        ("DROP TABLE people", 1, set()),
        ("INSERT INTO place", 1, set()),
        ("INSERT OR REPLACE", 2, {"1"}),
        ("INSERT INTO place", 2, {"1"}),
        ("COMMIT", 4, {"1", "2", "3"}),
    ],
)
def test_a_consumer_that_is_killed_goes_on_where_it_was(
    services: Services, sync: Any, consumer: Consumer, service: Mishaps, statement: str, passage: int, left: set[str]
):
    sync(0, added("1", name="Ayşe"), write=True)
    sync(1, *(added(str(number), name="Fatma") for number in range(2, 6)), removed("1"))
    arguments = [service.url, str(consumer.path), statement, str(passage)]
    environ = {"PYTHONPATH": str(ROOT / "scripts"), "FEED_TOKEN": TOKEN}
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], env=environ, capture_output=True, timeout=60)
    assert killed.returncode == -9, killed.stderr
    assert consumer.copy().keys() == left
    assert consumer.poll() == the_list(services)


def test_a_consumer_comes_back_later_while_the_service_cannot_answer(
    services: Services, sync: Any, consumer: Consumer, service: Mishaps
):
    sync(0, added("1", name="Ayşe"), write=True)
    service.refuse = 2
    assert consumer.poll() == the_list(services)
    assert consumer.waits == [7, 7]
    sync(1, added("2", name="Fatma"))
    service.cut = [20, 20]
    assert consumer.poll() == the_list(services)
    assert len(consumer.waits) == 4


def test_an_answer_of_somebody_else_is_not_applied(services: Services, sync: Any, consumer: Consumer, service: Mishaps):
    """Such as the page of a hotel's network."""
    sync(0, added("1", name="Ayşe"), write=True)
    service.pretend = [b"<html>Ho\xfe geldiniz</html>"]
    with pytest.raises(feed_consumer.Refused, match="no archive"):
        consumer.poll()
    assert consumer.poll() == the_list(services)
    sync(1, added("2", name="Fatma"))
    service.pretend = [b"<html>Ho\xfe geldiniz</html>", b"[]", b'{"changes":[]}']
    assert consumer.poll() == the_list(services)
    assert len(consumer.waits) == 3


def test_an_archive_that_breaks_off_is_read_on_or_from_the_beginning_if_it_was_replaced(
    services: Services, sync: Any, consumer: Consumer, service: Mishaps, tmp_path: Path
):
    people = [added(str(number), name=f"Ayşe {number}") for number in range(300)]
    sync(0, *people, write=True)
    service.cut = [1000, 500]
    assert consumer.poll() == the_list(services)
    assert len(consumer.waits) == 2

    again = Consumer(service, tmp_path / "again.db", sleep=lambda _s: sync(1, removed("1"), write=True))
    service.cut = [1000]
    assert again.poll() == the_list(services)


def test_the_command_brings_the_copy_up_to_date(services: Services, sync: Any, consumer: Consumer, service: Mishaps):
    def run(**environ: str) -> tuple[int, str]:
        command = [str(ROOT / "scripts" / "feed_consumer.py"), "--url", service.url, "--kind", "elders", "--once"]
        done = subprocess.run(
            [sys.executable, *command, "--copy", consumer.path], env=environ, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout or done.stderr

    sync(0, added("1", name="Ayşe"), write=True)
    assert run(FEED_TOKEN=TOKEN) == (0, "1 people\n")
    assert consumer.copy() == the_list(services)
    status, words = run(FEED_TOKEN="yr_wrong")
    assert status == 1 and words.startswith("401")
    assert run()[0] == 1
