"""The service's own processes, as an operator would start them."""

import http.client
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
    """The pid of a running role."""
    with started(bench, name, database, **settings) as process:
        yield process.pid
        if process.poll() is not None:
            raise RuntimeError(f"the role {name} ended by itself with {process.returncode}")


@contextmanager
def started(bench: Bench, name: str, database: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running role that may be killed."""
    environment = {**os.environ, "DATABASE_URL": bench.url(database), "REDIS_URL": bench.redis_url}
    environment |= {"AUTH_SECRET": SECRET, "LOG_LEVEL": "INFO", "OFFER_TTL_S": "36000"} | settings
    log = bench.folder / f"{name}-{time.time_ns()}.log"
    process = processes.spawn([sys.executable, "-m", "app", name], env=environment, cwd=ROOT, log=log)
    try:
        word = {"matcher": "matcher_started", "delivery": "delivery_started", "api": "api_listening"}[name]
        eventually(lambda: word in log.read_text(errors="replace") or process.poll() is not None, nap_s=0.005)
        if process.poll() is not None:
            raise RuntimeError(f"the role {name} ended by itself:\n{tail(log)}")
        yield process
    finally:
        processes.end(process, STOP)


@contextmanager
def module(bench: Bench, name: str, database: str, *arguments: str, ready: str = "ready", **more: str) -> Iterator[str]:
    """A process of the benchmarks' own, a module of this folder; what it said in the line that tells it is ready."""
    environment = {**os.environ, "DATABASE_URL": bench.url(database), "REDIS_URL": bench.redis_url} | more
    log = bench.folder / f"{name}-{time.time_ns()}.log"
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    process = processes.spawn(command, env=environment, cwd=ROOT, log=log)
    try:
        eventually(lambda: _said(log, ready) or process.poll() is not None, nap_s=0.01)
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended by itself:\n{tail(log)}")
        yield _said(log, ready)
    finally:
        processes.end(process, STOP)


def _said(log: Path, word: str) -> str:
    lines = log.read_text(errors="replace").splitlines(keepends=True)
    return next((line for line in lines if word in line and line.endswith("\n")), "")


@contextmanager
def api(bench: Bench, database: str, **settings: str) -> Iterator[tuple[int, int]]:
    """Pid and port of an API that is ready."""
    port = processes.free_port()
    with role(bench, "api", database, PORT=str(port), API_WORKERS="2", **settings) as pid:
        eventually(lambda: _is_ready(port))
        yield pid, port


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def eventually(what: Callable[[], object], patience_s: float = PATIENCE_S, nap_s: float = 0.05) -> None:
    until = time.monotonic() + patience_s
    while not what():
        if time.monotonic() > until:
            raise TimeoutError("this did not happen in time")
        time.sleep(nap_s)


def family(pid: int) -> list[int]:
    """A process and all that it forked."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def memory_mb(pid: int, field: str) -> float:
    """`Rss`, `Pss` (shared pages divided among those who share them), or `VmHWM` (the most it ever was)."""
    total_kb = 0
    for member in family(pid):
        file = "status" if field.startswith("Vm") else "smaps_rollup"
        found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{member}/{file}").read_text(), re.MULTILINE)
        total_kb += int(found[1]) if found else 0
    return total_kb / 1024


def processor_s(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def kill_family(pid: int) -> None:
    for member in family(pid):
        os.kill(member, processes.signal.SIGKILL)
