"""The processor time of each role: what it used, and how long it was ready while other processes had the processor."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, fetch
from benchmarks.cores import threads_of
from benchmarks.roles import process_tree

API, BACKENDS, OTHERS, REDIS, CLIENT = "api", "PostgreSQL's backends", "its other processes", "Redis", "client"
ROLES = (API, BACKENDS, OTHERS, REDIS, CLIENT)
STRANGERS = "other work on the machine"
TICKS = os.sysconf("SC_CLK_TCK")
NO_BACKENDS = ("checkpointer", "background writer", "walwriter", "autovacuum", "logical replication", "archiver")


@dataclass(frozen=True)
class Time:
    used_s: float = 0.0
    waited_s: float = 0.0

    def __add__(self, other: "Time") -> "Time":
        return Time(self.used_s + other.used_s, self.waited_s + other.waited_s)

    def __sub__(self, other: "Time") -> "Time":
        return Time(self.used_s - other.used_s, self.waited_s - other.waited_s)


@dataclass(frozen=True)
class StorePids:
    postmaster: int
    redis: int

    def all(self) -> list[int]:
        return [*process_tree(self.postmaster), self.redis]


def store_pids(bench: Bench, redis: Any) -> StorePids:
    with bench.connect("maintenance") as conn:
        backend = fetch(conn, "SELECT pg_backend_pid()")[0][0]
        return StorePids(int(_stat(backend)[1]), redis.info("server")["process_id"])


@dataclass(frozen=True)
class ProcessorReading:
    by_role: Mapping[str, Mapping[int, Time]]
    reaped: Time
    """Of PostgreSQL's processes that have ended, such as the backends of pgbench."""
    machine: Time
    """Of everything that runs on the machine."""


def read(stores: StorePids, service: int | None) -> ProcessorReading:
    """`service` is the supervisor of the api, or None where there is none."""
    found: dict[str, dict[int, Time]] = {role: {} for role in ROLES}
    reaped = Time(sum(map(int, _stat(stores.postmaster)[13:15])) / TICKS)
    for pid in process_tree(stores.postmaster):
        is_backend = pid != stores.postmaster and not is_of_the_server(_title(pid))
        found[BACKENDS if is_backend else OTHERS][pid] = _time(pid)
    for role, pids in (
        (API, process_tree(service) if service else []),
        (REDIS, [stores.redis]),
        (CLIENT, [os.getpid()]),
    ):
        found[role] = {pid: _time(pid) for pid in pids}
    return ProcessorReading(found, reaped, _machine())


def between(before: ProcessorReading, after: ProcessorReading) -> dict[str, Time]:
    """Processes that were started meanwhile count from their start."""
    found = {role: _between(before.by_role[role], after.by_role[role]) for role in ROLES}
    ended = [one for pid, one in before.by_role[BACKENDS].items() if pid not in after.by_role[BACKENDS]]
    found[BACKENDS] += after.reaped - before.reaped - Time(sum(one.used_s for one in ended))
    found[STRANGERS] = after.machine - before.machine - Time(sum(one.used_s for one in found.values()))
    return found


def _between(before: Mapping[int, Time], after: Mapping[int, Time]) -> Time:
    return sum((one - before.get(pid, Time()) for pid, one in after.items()), Time())


@dataclass
class Spent:
    lasted_s: float = 0.0
    by_role: dict[str, Time] = field(default_factory=dict[str, Time])


@contextmanager
def spent(stores: StorePids, service: int | None) -> Iterator[Spent]:
    """Filled when the block ends."""
    before, found, began = read(stores, service), Spent(), time.perf_counter()
    yield found
    found.lasted_s, found.by_role = time.perf_counter() - began, between(before, read(stores, service))


def _time(pid: int) -> Time:
    """Of all its threads. In nanoseconds, where /proc/PID/stat has ticks of 10 ms."""
    found = Time()
    for thread in threads_of(pid):
        with contextlib.suppress(OSError):
            used, waited, _ = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
            found += Time(int(used) / 1e9, int(waited) / 1e9)
    return found


def _machine() -> Time:
    """What all processors did but idle and wait for disks. In ticks."""
    user, nice, system, _, _, interrupts, soft, stolen = Path("/proc/stat").read_text().split()[1:9]
    return Time(sum(map(int, (user, nice, system, interrupts, soft, stolen))) / TICKS)


def _stat(pid: int) -> Sequence[str]:
    """From the third field of /proc/PID/stat on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def is_of_the_server(title: str) -> bool:
    """Whether PostgreSQL's title of a process tells that it serves no client."""
    return title.partition("postgres: ")[2].startswith(NO_BACKENDS)
