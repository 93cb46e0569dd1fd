"""Several real processes of each role, and a supervisor that restarts those that died."""

import contextlib
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

from tests.torture.fault_windows import Window

RESTART_AFTER_S = 0.3
NOTICED_AFTER_S = 1.0
HIT = re.compile(r"failpoint (?P<act>\w+) (?P<place>\S+) at (?P<at>[0-9.]+) for (?P<seconds>[0-9.]+) s")
STARTED = {"api": "api_listening", "matcher": "matcher_started", "delivery": "delivery_started"}

# Probabilities per passage. Low, because these places are passed very often.
FREQUENT = {"sql.statement": 0.0005, "sql.commit": 0.002, "sql.committed": 0.002}
OF_EVENTS = {"events.before_sequence": 0.002, "events.sequenced": 0.002}
RARELY = FREQUENT | OF_EVENTS
FAILPOINTS: dict[str, tuple[str, ...]] = {
    "api": (
        *FREQUENT,
        "press.committed",
        "deed.before_commit",
        "deed.committed",
        "redis.untold",
        "redis.told",
        "follow_up.shown",
        "follow_up.before_commit",
        "follow_up.committed",
        *OF_EVENTS,
    ),
    "matcher": (
        *FREQUENT,
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
    "delivery": (*FREQUENT, "delivery.claimed", "delivery.sent", "delivery.recording"),
}


@dataclass
class Instance:
    role: str
    name: str
    environ: Mapping[str, str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None
    wanted: bool = True
    started: int = 0
    due_at: float = 0.0
    log_offset: int = 0

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def pids(self) -> list[int]:
        """Ids of the process and of all its descendants."""
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
        """True if the process has logged since its last start that it is ready."""
        if not self.alive:
            return False
        with self.log.open("rb") as log:
            log.seek(self.log_offset)
            return STARTED[self.role].encode() in log.read()


@dataclass
class Roles:
    instances: Sequence[Instance]
    rng: random.Random
    armed: bool = True
    """Whether instances get failpoints at their next start."""
    arm_delivery: bool = True
    death_windows: list[Window] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, *roles: str) -> list[Instance]:
        return [instance for instance in self.instances if instance.role in roles]

    @property
    def deaths(self) -> int:
        return sum(max(instance.started - 1, 0) for instance in self.instances)

    def run(self) -> None:
        while not self._stop.wait(0.05):
            self.restart_dead()

    def restart_dead(self) -> None:
        with self._lock:
            for instance in self.instances:
                if instance.process is not None and instance.process.poll() is not None:
                    # A child that is left would keep the port.
                    instance.send(signal.SIGKILL)
                    self.death_windows.append(
                        Window(f"{instance.role} died", time.time() - NOTICED_AFTER_S, time.time())
                    )
                    instance.process = None
                    instance.due_at = time.monotonic() + RESTART_AFTER_S
                if instance.process is None and instance.wanted and instance.due_at <= time.monotonic():
                    self._start(instance)

    def _start(self, instance: Instance) -> None:
        environ = dict(instance.environ)
        if self.armed and (instance.role != "delivery" or self.arm_delivery):
            environ["FAILPOINTS"] = self._failpoints(instance.role)
        instance.log_offset = instance.log.stat().st_size if instance.log.exists() else 0
        command = [sys.executable, "-m", "app", instance.role]
        instance.process = processes.spawn(command, env=environ, cwd=ROOT, log=instance.log)
        instance.started += 1

    def _failpoints(self, role: str) -> str:
        if self.rng.random() < 0.3:
            return ""
        chosen = self.rng.sample(FAILPOINTS[role], 2)
        return ",".join(self._fault(place) for place in chosen)

    def _fault(self, place: str) -> str:
        if self.rng.random() < 0.3:
            return f"{place}=pause:{RARELY.get(place, 0.05)}:{self.rng.uniform(0.5, 4):.1f}"
        return f"{place}=kill:{RARELY.get(place) or self.rng.choice((0.02, 0.05, 0.2))}"

    def all_down(self) -> None:
        with self._lock:
            for instance in self.instances:
                instance.wanted = False
                instance.send(signal.SIGKILL)
        self._wait(lambda instance: not instance.alive)

    def all_up(self) -> None:
        with self._lock:
            for instance in self.instances:
                instance.wanted, instance.due_at = True, 0.0
        self._wait(Instance.is_up)

    def disarm(self) -> None:
        """Restarts every instance without failpoints."""
        self.armed = False
        self.all_down()
        self.all_up()

    def _wait(self, done: Callable[[Instance], bool], patience_s: float = 90.0) -> None:
        until = time.monotonic() + patience_s
        while not all(done(instance) for instance in self.instances):
            self.restart_dead()
            if time.monotonic() > until:
                raise TimeoutError("the roles did not start, or stop, in time")
            time.sleep(0.05)

    def stop(self) -> None:
        self._stop.set()
        self.all_down()

    def failpoints_hit(self) -> dict[str, int]:
        """How often a process was killed or paused at each failpoint."""
        return dict(Counter(f"failpoint {hit['act']} {hit['place']}" for _, hit in self._hits()))

    def pauses(self) -> list[Window]:
        """When a thread of a role was paused at a failpoint."""
        started = time.time() - time.monotonic()
        return [
            Window(f"{instance.role} paused", began := started + float(hit["at"]), began + float(hit["seconds"]))
            for instance, hit in self._hits()
            if hit["act"] == "pause"
        ]

    def _hits(self) -> Iterator[tuple[Instance, re.Match[str]]]:
        for instance in self.instances:
            for line in _lines(instance.log):
                if hit := HIT.match(line):
                    yield instance, hit

    def errors(self) -> list[str]:
        """Log lines of level error or critical, and tracebacks."""
        return [
            f"{instance.name}: {line.strip()[:400]}"
            for instance in self.instances
            for line in _lines(instance.log)
            if any(word in line for word in ("level=error", "level=critical", "Traceback"))
        ]


def _lines(path: Path) -> Iterator[str]:
    if path.exists():
        with path.open(errors="replace") as file:
            yield from file
