#!/usr/bin/env python3
"""Keeps a copy of a list in a SQLite file: the reference for everybody who writes a consumer. Standard library only.

    FEED_TOKEN=yr_… scripts/feed_consumer.py --url https://yaninda.example --kind students --copy students.db --once

Three rules make the copy right. It begins with an archive. The changes of a page and the cursor after them are
committed together, so that a crash at any point repeats a page and loses none; to apply a change twice is harmless. And
410 means that changes were missed: begin with an archive again.
"""

import argparse
import gzip
import http.client
import io
import json
import os
import random
import sqlite3
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

TIMEOUT_S = 60.0
TRIES = 8
LONGEST_WAIT_S = 60.0
ROWS_IN_ONE_COMMIT = 5_000
BROKEN = (OSError, http.client.HTTPException, EOFError, ValueError)
"""The connection failed or broke off in the middle of an answer, or something between here and the service answered for
it. HTTPError is an OSError, but is handled before."""
DAMAGED = (gzip.BadGzipFile, zlib.error, EOFError, ValueError)

TABLES = """
CREATE TABLE IF NOT EXISTS people (identifier TEXT PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS place (cursor TEXT NOT NULL);
"""


class ChangesAreGone(Exception):
    """410: some changes were never read and cannot be read any more."""


class Refused(Exception):
    """An answer that no repetition changes, such as 401 or 404."""


class ArchiveChanged(Exception):
    """A newer archive has replaced the one whose download broke off."""


class FeedClient:
    def __init__(self, url: str, kind: str, token: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._base = f"{url.rstrip('/')}/api/v1/{kind}"
        self._token = token
        self._sleep = sleep
        self._opener = urllib.request.build_opener(_NoRedirects)

    def changes(self, cursor: str, page_size: int) -> dict[str, Any]:
        path = f"/changes?{urlencode({'cursor': cursor, 'pageSize': page_size})}"
        return self._again_and_again(lambda: _page(self._open(path, {}).read()))

    def archive(self) -> "ArchiveStream":
        return ArchiveStream(self)

    def open_archive(self, headers: dict[str, str]) -> http.client.HTTPResponse:
        return self._again_and_again(lambda: self._open("/archives/latest", headers))

    def _open(self, path: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        headers = headers | {"Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._base + path, headers=headers)
        return self._opener.open(request, timeout=TIMEOUT_S)

    def _again_and_again(self, call: Callable[[], Any]) -> Any:
        """Repeats a call that failed for a reason that may pass."""
        for attempt in range(TRIES):
            try:
                return call()
            except urllib.error.HTTPError as error:
                if error.code == 410:
                    raise ChangesAreGone from None
                if error.code < 500 and error.code != 429:
                    raise Refused(f"{error.code}: {error.read().decode(errors='replace')}") from None
                self.wait(attempt, str(error.code), _retry_after(error.headers))
            except BROKEN as error:
                self.wait(attempt, type(error).__name__)
        raise Refused(f"gave up after {TRIES} tries")

    def wait(self, attempt: int, problem: str, least_s: float = 0.0) -> None:
        # The random part keeps all consumers from coming back in the same second.
        wait_s = max(least_s, min(2.0**attempt, LONGEST_WAIT_S) * random.uniform(0.5, 1.0))
        print(f"{problem}; trying again in {wait_s:.0f} s", file=sys.stderr)
        self._sleep(wait_s)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """urllib would send the token to wherever it is redirected."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _page(answer: bytes) -> dict[str, Any]:
    page = json.loads(answer)
    if not (isinstance(page, dict) and {"changes", "nextCursor", "totalPages"} <= page.keys()):
        raise ValueError("the answer is no page of changes")
    return page


def _retry_after(headers: Message) -> float:
    text = headers.get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0


class ArchiveStream(io.RawIOBase):
    """The bytes of one archive. When the connection breaks off it goes on from where it was."""

    def __init__(self, feed: FeedClient) -> None:
        self._feed = feed
        self._answer = feed.open_archive({})
        headers = {name: self._answer.headers[name] for name in ("Roster-Cursor", "ETag", "Content-Length")}
        if None in headers.values():
            raise Refused("the answer is no archive")
        self.cursor, self._tag = headers["Roster-Cursor"], headers["ETag"]
        self._length = int(headers["Content-Length"])
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        for attempt in range(TRIES):
            try:
                count = self._answer.readinto(buffer)
            except BROKEN:
                count = 0
            if count or self._done == self._length:
                self._done += count
                return count
            self._feed.wait(attempt, f"the archive broke off at byte {self._done}")
            self._go_on()
        raise Refused("the archive breaks off again and again")

    def _go_on(self) -> None:
        self._answer.close()
        self._answer = self._feed.open_archive({"Range": f"bytes={self._done}-", "If-Range": self._tag})
        if self._answer.status != 206:
            raise ArchiveChanged

    def close(self) -> None:
        self._answer.close()
        super().close()


def open_copy(path: Path, factory: type[sqlite3.Connection] = sqlite3.Connection) -> sqlite3.Connection:
    copy = sqlite3.connect(path, isolation_level=None, factory=factory)
    # Readers of the copy go on while it is written.
    copy.execute("PRAGMA journal_mode = WAL")
    copy.executescript(TABLES)
    return copy


def bring_up_to_date(feed: FeedClient, copy: sqlite3.Connection, page_size: int = 1000) -> None:
    """Reads all changes that there are, from where the copy stands."""
    place = copy.execute("SELECT cursor FROM place").fetchone()
    cursor = place[0] if place else bootstrap(feed, copy)
    while True:
        try:
            page = feed.changes(cursor, page_size)
        except ChangesAreGone:
            print("Changes were missed: beginning with the archive", file=sys.stderr)
            cursor = bootstrap(feed, copy)
            page = feed.changes(cursor, page_size)
        apply_page(copy, page)
        cursor = page["nextCursor"]
        if page["totalPages"] <= 1:
            return


def apply_page(copy: sqlite3.Connection, page: dict[str, Any]) -> None:
    copy.execute("BEGIN IMMEDIATE")
    try:
        for change in page["changes"]:
            if change["changeType"] == "removed":
                copy.execute("DELETE FROM people WHERE identifier = ?", (change["identifier"],))
            else:
                record = {name: value for name, value in change.items() if name not in ("changeType", "changedAt")}
                copy.execute("INSERT OR REPLACE INTO people VALUES (?, ?)", _row(record))
        _set_place(copy, page["nextCursor"])
        copy.execute("COMMIT")
    except BaseException:
        copy.execute("ROLLBACK")
        raise


def bootstrap(feed: FeedClient, copy: sqlite3.Connection) -> str:
    """Fills a new table, while the old one can be read, and then replaces the old one. Returns the cursor."""
    while True:
        try:
            archive = feed.archive()
            copy.executescript(
                "DROP TABLE IF EXISTS new_people;"
                "CREATE TABLE new_people (identifier TEXT PRIMARY KEY, record TEXT NOT NULL);"
            )
            with archive, io.BufferedReader(archive, 1 << 16) as packed, gzip.open(packed) as lines:
                for rows in _batches(_row(json.loads(line)) for line in lines):
                    copy.execute("BEGIN")
                    copy.executemany("INSERT INTO new_people VALUES (?, ?)", rows)
                    copy.execute("COMMIT")
            break
        except ArchiveChanged:
            print("There is a newer archive: beginning with that", file=sys.stderr)
        except DAMAGED as error:
            raise Refused(f"the archive is damaged ({type(error).__name__})") from error
    copy.execute("BEGIN IMMEDIATE")
    copy.execute("DROP TABLE people")
    copy.execute("ALTER TABLE new_people RENAME TO people")
    _set_place(copy, archive.cursor)
    copy.execute("COMMIT")
    return archive.cursor


def _row(record: dict[str, Any]) -> tuple[str, str]:
    return record["identifier"], json.dumps(record, ensure_ascii=False)


def _batches(rows: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    batch: list[tuple[str, str]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == ROWS_IN_ONE_COMMIT:
            yield batch
            batch = []
    yield batch


def _set_place(copy: sqlite3.Connection, cursor: str) -> None:
    copy.execute("DELETE FROM place")
    copy.execute("INSERT INTO place VALUES (?)", (cursor,))


def read_token(path: Path | None) -> str:
    """Never from the command line, which every user of the machine can read."""
    token = os.environ.get("FEED_TOKEN", "") if path is None else path.read_text()
    if not token.strip():
        sys.exit("no token: set FEED_TOKEN, or name a file with --token-file")
    return token.strip()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="of the service, such as https://yaninda.example")
    parser.add_argument("--kind", required=True, help="such as students")
    parser.add_argument("--copy", required=True, type=Path, help="the SQLite file")
    parser.add_argument("--token-file", type=Path, help="instead of the variable FEED_TOKEN")
    parser.add_argument("--page-size", type=int, default=1000)
    often = parser.add_mutually_exclusive_group()
    often.add_argument("--once", action="store_true", help="end when the copy is up to date")
    often.add_argument("--every", type=float, default=900.0, metavar="S", help="seconds between two looks (900)")
    given = parser.parse_args(arguments)
    feed = FeedClient(given.url, given.kind, read_token(given.token_file))
    copy = open_copy(given.copy)
    while True:
        try:
            bring_up_to_date(feed, copy, given.page_size)
            print(f"{copy.execute('SELECT count(*) FROM people').fetchone()[0]} people", flush=True)
        except (Refused, ChangesAreGone) as problem:
            print(str(problem) or "the archive is older than the changes that are kept", file=sys.stderr)
            if given.once:
                return 1
        if given.once:
            return 0
        time.sleep(given.every)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
