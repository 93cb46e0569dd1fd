"""Keeps copies of the lists with the reference consumer, while the APIs are killed and started again."""

import random
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from json import loads
from pathlib import Path
from typing import Any

import feed_consumer

from tests.torture.checker import Violation
from tests.torture.published_lists import Publisher, Records, record_of

PAGE = 7
"""Changes on a page: so few that most polls need several."""
LONGEST_WAIT_S = 0.5
PASSING = ("gave up", "the archive breaks off")
"""How `Refused` begins when the service was away for too long."""


@dataclass
class PollCounts:
    polls: int = 0
    changes: int = 0
    bootstraps: int = 0


class CountedFeed(feed_consumer.FeedClient):
    def __init__(self, url: str, kind: str, token: str, over: threading.Event, counts: PollCounts) -> None:
        def sleep(wait_s: float) -> None:
            over.wait(min(wait_s, LONGEST_WAIT_S))

        super().__init__(url, kind, token, sleep)
        self._counts = counts
        self.problems: list[str] = []

    def changes(self, cursor: str, page_size: int) -> dict[str, Any]:
        try:
            page = super().changes(cursor, page_size)
        except feed_consumer.ChangesAreGone:
            self.problems.append("410 although all changes are kept")
            raise
        self._counts.changes += len(page["changes"])
        return page

    def archive(self) -> feed_consumer.ArchiveStream:
        archive = super().archive()
        self._counts.bootstraps += 1
        return archive

    def wait(self, attempt: int, problem: str, least_s: float = 0.0) -> None:
        self.problems.append(problem)
        self._sleep(max(least_s, 0.1 * 2**attempt))


@dataclass
class FeedPoller:
    folder: Path
    ports: Sequence[int]
    tokens: Mapping[str, str]
    """By kind."""
    publisher: Publisher
    rng: random.Random
    counts: PollCounts = field(default_factory=PollCounts)
    violations: list[Violation] = field(default_factory=list[Violation])
    _over: threading.Event = field(default_factory=threading.Event)
    _begun: set[str] = field(default_factory=set[str])
    """Kinds that had an archive once."""

    def run(self) -> None:
        while not self._over.wait(self.rng.uniform(0.2, 1)):
            kind = self.rng.choice(tuple(self.tokens))
            if self.rng.random() < 0.15:
                self._copy(kind).unlink(missing_ok=True)
            self.poll(kind)

    def stop(self) -> None:
        self._over.set()

    def compare(self) -> None:
        """When nothing changes any more: the copies, and copies that are made anew, are the last lists."""
        self._over.clear()
        for kind in self.tokens:
            for how in ("followed", "made anew"):
                records = self.poll(kind)
                if records != self.publisher.published[-1].records[kind]:
                    self._violate(f"a copy, {how}, that differs from the list", kind)
                self._copy(kind).unlink(missing_ok=True)

    def poll(self, kind: str) -> Records | None:
        """A copy that was brought up to date is a list that was published. None if it could not be."""
        url = f"http://127.0.0.1:{self.rng.choice(self.ports)}"
        feed = CountedFeed(url, kind, self.tokens[kind], self._over, self.counts)
        self.counts.polls += 1
        try:
            with closing(feed_consumer.open_copy(self._copy(kind))) as copy:
                feed_consumer.bring_up_to_date(feed, copy, PAGE)
                rows = copy.execute("SELECT record FROM people").fetchall()
        except (feed_consumer.Refused, feed_consumer.ChangesAreGone) as refused:
            if not str(refused).startswith(PASSING) and not (kind not in self._begun and "404" in str(refused)):
                self._violate("an answer that a consumer must not get", f"{kind}: {refused}")
            return None
        finally:
            for problem in feed.problems:
                if problem.startswith(("500", "410")):
                    self._violate("an answer that a consumer must not get", f"{kind}: {problem}")
        self._begun.add(kind)
        records = frozenset(record_of(loads(record)) for (record,) in rows)
        if not self.publisher.has(kind, records):
            self._violate("a copy that is none of the published lists", f"{kind}: {len(records)} people")
        return records

    def _copy(self, kind: str) -> Path:
        return self.folder / f"copy-{kind}.db"

    def _violate(self, promise: str, detail: str) -> None:
        self.violations.append(Violation(promise, detail))
