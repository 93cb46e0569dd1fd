"""Takes new lists again and again with `roster sync`, as every night does, and kills it at any moment."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from machine import processes
from machine.steps import ROOT

from tests.torture.checker import Violation
from tests.torture.published_lists import Publication, Publisher

# A run of these lists passes a failpoint of the first kind about `STATEMENTS` times, and the others less often.
STATEMENTS = 120
PLACES = {
    "sql.statement": STATEMENTS,
    "sql.commit": 8,
    "sql.committed": 8,
    "archive.written": 2,
    "archive.renamed": 2,
    "archive.named": 2,
}
MOST = 8
"""Runs in a short torture."""
LONGEST_S = 90.0
"""Faults may hold a run up for about half a minute."""
TAKEN, NOTHING_TAKEN, PARTLY_TAKEN = 0, 1, 3
KILLED = -signal.SIGKILL


@dataclass
class SyncCounts:
    syncs: int = 0
    killed: int = 0
    taken: int = 0


@dataclass
class NightlyLists:
    publisher: Publisher
    environ: Mapping[str, str]
    log: Path
    rng: random.Random
    quick: bool
    """Ends after one run that was killed: to start one costs more than a second."""
    counts: SyncCounts = field(default_factory=SyncCounts)
    violations: list[Violation] = field(default_factory=list[Violation])
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._is_enough():
            publication = self.publisher.publish()
            self._wait([self._start(publication) for _ in range(self._copies())], self._kill_after_s())
            self._over.wait(self.rng.uniform(0, 2))

    def _is_enough(self) -> bool:
        """A run without PostgreSQL ends before it can be killed, so a short torture repeats it."""
        return self.counts.killed > 0 or self.counts.syncs == MOST if self.quick else self._over.is_set()

    def stop(self) -> None:
        self._over.set()

    def take_everybody(self) -> None:
        """One undisturbed run with all people on the lists."""
        process = self._start(self.publisher.publish(everybody=True), disturbed=False)
        self._wait([process])
        if process.returncode != TAKEN:
            self.violations.append(Violation("an undisturbed run that did not take its lists", self._last_line()))

    def _copies(self) -> int:
        return 1 if self.quick else self.rng.choice((1, 1, 1, 2))

    def _kill_after_s(self) -> float:
        """Before its start has ended, in its middle, or never."""
        return self.rng.uniform(0.5, 4) if not self.quick and self.rng.random() < 0.2 else LONGEST_S

    def _start(self, publication: Publication, *, disturbed: bool = True) -> "subprocess.Popen[bytes]":
        environ = {**self.environ, "ROSTER_SOURCES": publication.sources}
        if disturbed:
            environ["FAILPOINTS"] = self._failpoint()
        self.counts.syncs += 1
        command = [sys.executable, "-m", "app", "roster", "sync"]
        return processes.spawn(command, env=environ, cwd=ROOT, log=self.log)

    def _failpoint(self) -> str:
        if self.quick:
            # When lists are taken and archives written, and before anybody has followed.
            return "sql.committed=kill@7"
        if self.rng.random() < 0.4:
            return ""
        place = self.rng.choice(("sql.statement", *PLACES))
        if self.rng.random() < 0.2:
            # Once in a run, and short: whoever ends a task holds its row, and matchers wait for it.
            return f"{place}=pause:{1 / PLACES[place]}:{self.rng.uniform(0.5, 2):.1f}"
        # Rather late, when people follow.
        return f"{place}=kill@{round(self.rng.triangular(1, PLACES[place], PLACES[place]))}"

    def _wait(self, started: "Sequence[subprocess.Popen[bytes]]", kill_after_s: float = LONGEST_S) -> None:
        until = time.monotonic() + kill_after_s
        for process in started:
            try:
                process.wait(max(until - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                if kill_after_s == LONGEST_S:
                    self.violations.append(Violation("a run that does not end", self._last_line()))
            self._count(process.returncode)

    def _count(self, code: int) -> None:
        self.counts.killed += code == KILLED
        self.counts.taken += code == TAKEN
        if code not in (TAKEN, NOTHING_TAKEN, PARTLY_TAKEN, KILLED):
            self.violations.append(Violation("a run that ended in a way of its own", f"{code}: {self._last_line()}"))

    def _last_line(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else ""

    def tracebacks(self) -> list[Violation]:
        lines = self.log.read_text(errors="replace").splitlines()
        return [Violation("a run that broke off with a traceback", line) for line in lines if "Traceback" in line]
