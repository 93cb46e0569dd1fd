"""The roles as real processes, several of each, and a supervisor that starts again what died."""

import contextlib
import http.client
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from machine import processes
from machine.steps import ROOT

from tests.torture.windows import Window

RESTART_AFTER_S = 0.3
NOTICED_AFTER_S = 1.0
HIT = re.compile(r"failpoint (?P<act>\w+) (?P<place>\S+) at (?P<at>[0-9.]+) for (?P<seconds>[0-9.]+) s")
STARTED = {"api": "api_listening", "matcher": "matcher_started", "delivery": "delivery_started"}

# Passed so often that few passages may end a process.
EVERYWHERE = {"sql.statement": 0.0005, "sql.commit": 0.002, "sql.committed": 0.002}
PLACES: dict[str, tuple[str, ...]] = {
    "api": (
        *EVERYWHERE,
        "press.committed",
        "first_offer.before_commit",
        "first_offer.committed",
        "deed.before_commit",
        "deed.committed",
        "redis.untold",
        "redis.told",
        "follow_up.shown",
        "follow_up.before_commit",
        "follow_up.committed",
    ),
    "matcher": (
        *EVERYWHERE,
        "ticker.claimed",
        "due.taken",
        "advance.listed",
        "advance.before_commit",
        "advance.committed",
        "redis.untold",
        "redis.told",
        "follow_up.shown",
        "follow_up.before_commit",
        "follow_up.committed",
        "rebuild.begun",
        "rebuild.unfinished",
        "compare.missed",
    ),
    "delivery": (*EVERYWHERE, "delivery.claimed", "delivery.sent", "delivery.recording"),
}


@dataclass
class Member:
    role: str
    name: str
    environ: Mapping[str, str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None
    wanted: bool = True
    started: int = 0
    due_at: float = 0.0
    seen: int = 0

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def family(self) -> list[int]:
        """The process and all that it forked."""
        found = [self.process.pid] if self.process is not None and self.alive else []
        for parent in found:
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    found += [int(child) for child in children.read_text().split()]
        return found

    def send(self, number: signal.Signals) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def is_up(self) -> bool:
        """It has said that it started since it was last started."""
        if not self.alive:
            return False
        with self.log.open("rb") as log:
            log.seek(self.seen)
            return STARTED[self.role].encode() in log.read()


@dataclass
class Crew:
    members: Sequence[Member]
    rng: random.Random
    armed: bool = True
    """Whether members get failpoints with their next start."""
    delivery_armed: bool = True
    deaths_noted: list[Window] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, *roles: str) -> list[Member]:
        return [member for member in self.members if member.role in roles]

    @property
    def deaths(self) -> int:
        return sum(max(member.started - 1, 0) for member in self.members)

    def run(self) -> None:
        while not self._stop.wait(0.05):
            self.tend()

    def tend(self) -> None:
        with self._lock:
            for member in self.members:
                if member.process is not None and member.process.poll() is not None:
                    # Whatever is left of its family would hold its port.
                    member.send(signal.SIGKILL)
                    self.deaths_noted.append(Window(f"{member.role} died", time.time() - NOTICED_AFTER_S, time.time()))
                    member.process = None
                    member.due_at = time.monotonic() + RESTART_AFTER_S
                if member.process is None and member.wanted and member.due_at <= time.monotonic():
                    self._start(member)

    def _start(self, member: Member) -> None:
        environ = dict(member.environ)
        if self.armed and (member.role != "delivery" or self.delivery_armed):
            environ["FAILPOINTS"] = self._failpoints(member.role)
        member.seen = member.log.stat().st_size if member.log.exists() else 0
        command = [sys.executable, "-m", "app", member.role]
        member.process = processes.spawn(command, env=environ, cwd=ROOT, log=member.log)
        member.started += 1

    def _failpoints(self, role: str) -> str:
        if self.rng.random() < 0.3:
            return ""
        chosen = self.rng.sample(PLACES[role], 2)
        return ",".join(self._fault(place) for place in chosen)

    def _fault(self, place: str) -> str:
        if self.rng.random() < 0.3:
            return f"{place}=pause:{EVERYWHERE.get(place, 0.05)}:{self.rng.uniform(0.5, 4):.1f}"
        return f"{place}=kill:{EVERYWHERE.get(place) or self.rng.choice((0.02, 0.05, 0.2))}"

    def all_down(self) -> None:
        with self._lock:
            for member in self.members:
                member.wanted = False
                member.send(signal.SIGKILL)
        self._wait(lambda member: not member.alive)

    def all_up(self) -> None:
        with self._lock:
            for member in self.members:
                member.wanted, member.due_at = True, 0.0
        self._wait(Member.is_up)

    def disarm(self) -> None:
        """Everybody starts once more, without failpoints."""
        self.armed = False
        self.all_down()
        self.all_up()

    def _wait(self, done: Callable[[Member], bool], patience_s: float = 90.0) -> None:
        until = time.monotonic() + patience_s
        while not all(done(member) for member in self.members):
            self.tend()
            if time.monotonic() > until:
                raise TimeoutError("the roles did not come up, or go down, in time")
            time.sleep(0.05)

    def stop(self) -> None:
        self._stop.set()
        self.all_down()

    def failpoints_hit(self) -> dict[str, int]:
        """How often a process died or stood still at each place."""
        return dict(Counter(f"failpoint {hit['act']} {hit['place']}" for _, hit in self._hits()))

    def pauses(self) -> list[Window]:
        """When a thread of a role stood still at a failpoint."""
        started = time.time() - time.monotonic()
        return [
            Window(f"{member.role} stood still", began := started + float(hit["at"]), began + float(hit["seconds"]))
            for member, hit in self._hits()
            if hit["act"] == "pause"
        ]

    def _hits(self) -> Iterator[tuple[Member, re.Match[str]]]:
        for member in self.members:
            for line in _lines(member.log):
                if hit := HIT.match(line):
                    yield member, hit

    def errors(self) -> list[str]:
        """Lines in which a role says that something failed which it did not expect."""
        return [
            f"{member.name}: {line.strip()[:400]}"
            for member in self.members
            for line in _lines(member.log)
            if any(word in line for word in ("level=error", "level=critical", "Traceback"))
        ]


def _lines(path: Path) -> Iterator[str]:
    if path.exists():
        with path.open(errors="replace") as file:
            yield from file


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
