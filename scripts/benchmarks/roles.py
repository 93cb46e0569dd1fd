"""Starts roles of the service, as an operator would, and modules of the benchmarks."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from machine import processes
from machine.processes import Escalation
from machine.steps import ROOT, tail

from benchmarks.bench import SECRET, Bench

PATIENCE_S = 120.0
STOP: Escalation = ((processes.signal.SIGTERM, 30.0), (processes.signal.SIGKILL, 5.0))


@contextmanager
def role(bench: Bench, name: str, database: str, **settings: str) -> Iterator[int]:
    """Runs a role; yields its pid. Fails if the role ends before the block does."""
    with started(bench, name, database, **settings) as process:
        yield process.pid
        if process.poll() is not None:
            raise RuntimeError(f"the role {name} ended unexpectedly with {process.returncode}")


@contextmanager
def started(bench: Bench, name: str, database: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a role that the block may kill; yields its process."""
    environment = {**os.environ, "DATABASE_URL": bench.url(database), "REDIS_URL": bench.redis_url}
    environment |= {"AUTH_SECRET": SECRET, "LOG_LEVEL": "INFO", "OFFER_TTL_S": "36000"} | settings
    log = bench.folder / f"{name}-{time.time_ns()}.log"
    process = processes.spawn([sys.executable, "-m", "app", name], env=environment, cwd=ROOT, log=log)
    try:
        event = {
            "matcher": "matcher_started",
            "delivery": "delivery_started",
            "api": "api_listening",
            "jobs": "jobs_started",
        }[name]
        eventually(lambda: event in log.read_text(errors="replace") or process.poll() is not None, poll_s=0.005)
        if process.poll() is not None:
            raise RuntimeError(f"the role {name} ended unexpectedly:\n{tail(log)}")
        yield process
    finally:
        processes.end(process, STOP)


@contextmanager
def module(bench: Bench, name: str, database: str, *arguments: str, ready: str = "ready", **more: str) -> Iterator[str]:
    """Runs a module of this folder as a process; yields the line in which it printed that it is ready."""
    with started_module(bench, name, database, *arguments, ready=ready, **more) as (_, line):
        yield line


@contextmanager
def started_module(
    bench: Bench, name: str, database: str, *arguments: str, ready: str = "ready", **more: str
) -> Iterator[tuple[int, str]]:
    """As `module`; yields its pid too."""
    environment = {**os.environ, "DATABASE_URL": bench.url(database), "REDIS_URL": bench.redis_url} | more
    log = bench.folder / f"{name}-{time.time_ns()}.log"
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    process = processes.spawn(command, env=environment, cwd=ROOT, log=log)
    try:
        eventually(lambda: _line_with(log, ready) or process.poll() is not None, poll_s=0.01)
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended unexpectedly:\n{tail(log)}")
        yield process.pid, _line_with(log, ready)
    finally:
        processes.end(process, STOP)


def _line_with(log: Path, word: str) -> str:
    lines = log.read_text(errors="replace").splitlines(keepends=True)
    return next((line for line in lines if word in line and line.endswith("\n")), "")


@contextmanager
def api(bench: Bench, database: str, **settings: str) -> Iterator[tuple[int, int]]:
    """Runs the api role; yields its pid and port when it is ready."""
    port = processes.free_port()
    with role(bench, "api", database, **({"PORT": str(port), "API_WORKERS": "2"} | settings)) as pid:
        eventually(lambda: processes.is_ready(port))
        yield pid, port


@contextmanager
def bare_presses(bench: Bench, database: str, workers: int = 2) -> Iterator[tuple[int, int]]:
    """Runs the least SQL behind bare Flask routes. As `api`."""
    port = processes.free_port()
    settings = {"PORT": str(port), "API_WORKERS": str(workers), "AUTH_SECRET": SECRET}
    with started_module(bench, "bare_presses", database, ready="api_listening", **settings) as (pid, _):
        eventually(lambda: processes.is_ready(port))
        yield pid, port


def eventually(condition: Callable[[], object], patience_s: float = PATIENCE_S, poll_s: float = 0.05) -> None:
    until = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"the condition was not met within {patience_s:.0f} s")
        time.sleep(poll_s)


def process_tree(pid: int) -> list[int]:
    """The ids of a process and of all its descendants."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def memory_mb(pid: int, field: str) -> float:
    """Sum over the process tree of `Rss`, of `Pss` (a shared page is divided among its users), or of `VmHWM` (peak)."""
    total_kb = 0
    for one in process_tree(pid):
        file = "status" if field.startswith("Vm") else "smaps_rollup"
        found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{one}/{file}").read_text(), re.MULTILINE)
        total_kb += int(found[1]) if found else 0
    return total_kb / 1024


def processor_s(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def kill_tree(pid: int) -> None:
    for one in process_tree(pid):
        os.kill(one, processes.signal.SIGKILL)
