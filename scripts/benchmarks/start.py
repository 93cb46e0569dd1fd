"""How long a start takes: of a copy that is there already, and of each role on its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from machine import environment, processes
from machine.account import store_account
from machine.postgres import Postgres
from machine.redis import Redis
from machine.steps import ROOT

from benchmarks import roles
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.figures import spread
from benchmarks.memory import LIBRARIES
from benchmarks.report import Row, Section

DATABASE = "start"
COPY_GOAL_S, API_GOAL_S = 3.0, 1.0
POLL_S = 0.005
TITLE = (
    "start: seconds, median / 99th percentile; a copy: scripts/run until /readyz says 200, where all is installed;"
    " a role: python -m app until it works, the api until /readyz says 200; floor: the stores alone, and an interpreter"
    " that loads the same libraries"
)

Samples = dict[str, list[float]]


def measure(bench: Bench) -> Section:
    rounds = bench.size(7, 1)
    ours: Samples = {}
    floor: Samples = {}
    copy = bench.folder / "copy"
    bench.create(DATABASE)
    say("start: the first start of a copy, which makes its data")
    _start_copy(copy)
    with keeping(lambda: _section(bench, ours, floor)):
        for turn in range(rounds):
            say(f"start: round {turn + 1} of {rounds}")
            for name, (start, start_floor) in _acts(bench, copy).items():
                ours.setdefault(name, []).append(start())
                floor.setdefault(name, []).append(start_floor())
    bench.drop(DATABASE)
    return _section(bench, ours, floor)


def _acts(bench: Bench, copy: Path) -> dict[str, tuple[Callable[[], float], Callable[[], float]]]:
    """By name: ours, and its floor."""
    acts = {name: (partial(_start_role, bench, name), partial(_load_libraries, name)) for name in LIBRARIES}
    return {"copy": (partial(_start_copy, copy), partial(_start_stores, copy)), **acts}


def _section(bench: Bench, ours: Samples, floor: Samples) -> Section:
    goals = {"copy": COPY_GOAL_S, "api": API_GOAL_S}
    rows: list[Row] = []
    for name in floor:
        taken, goal_s = spread(ours[name]), goals.get(name)
        met = None if bench.quick or goal_s is None else taken.p50 < goal_s
        title = "second start of scripts/run" if name == "copy" else f"python -m app {name}"
        rows.append(Row(title, taken, spread(floor[name]), goal=f"<{goal_s:.0f}" if goal_s else "", met=met))
    return Section("start", TITLE, rows)


def _start_copy(folder: Path) -> float:
    port = processes.free_port()
    command = [str(ROOT / "scripts" / "run"), "--dir", str(folder), "--port", str(port)]
    with _running(command, os.environ) as (process, began):
        return _until(lambda: processes.is_ready(port), process, began)


def _start_stores(folder: Path) -> float:
    """As scripts/run does: Redis while PostgreSQL starts."""
    account, log = store_account(folder), folder / "log"
    postgres = Postgres(folder / "postgres", account, log / "postgres.log")
    redis = Redis(folder / "redis", account, log / "redis.log")
    urls = environment.read(folder / "env", with_given=False)
    ports = [environment.store_from(urls[name]) for name in ("DATABASE_URL", "REDIS_URL")]
    assert ports[0] and ports[1]
    try:
        began = time.monotonic()
        postgres.begin_start(ports[0].port)
        redis.start(ports[1].port, ports[1].password)
        postgres.wait_until_ready()
        return time.monotonic() - began
    finally:
        redis.stop()
        postgres.stop()


def _start_role(bench: Bench, name: str) -> float:
    began = time.monotonic()
    starting = roles.api(bench, DATABASE) if name == "api" else roles.role(bench, name, DATABASE)
    with starting:
        return time.monotonic() - began


def _load_libraries(name: str) -> float:
    began = time.monotonic()
    # Without the forks that the floor of the memory has.
    subprocess.run([sys.executable, "-c", LIBRARIES[name].partition(";")[0]], check=True)
    return time.monotonic() - began


@contextmanager
def _running(command: list[str], variables: Mapping[str, str]) -> Iterator[tuple["subprocess.Popen[bytes]", float]]:
    began = time.monotonic()
    process = processes.spawn(command, env=variables, cwd=ROOT, log=Path(os.devnull))
    try:
        yield process, began
    finally:
        processes.end(process, ((processes.signal.SIGINT, 120.0), (processes.signal.SIGKILL, 5.0)))


def _until(is_ready: Callable[[], bool], process: "subprocess.Popen[bytes]", began: float) -> float:
    def ready_or_over() -> bool:
        return is_ready() or process.poll() is not None

    roles.eventually(ready_or_over, poll_s=POLL_S)
    if process.poll() is not None:
        raise RuntimeError(f"the process ended unexpectedly with {process.returncode}")
    return time.monotonic() - began
