"""Child processes in their own sessions, and processes that an earlier, killed start left behind."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Escalation = Sequence[tuple[signal.Signals, float]]


def spawn(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | str,
    log: Path | None,
    stdin: int = subprocess.DEVNULL,
) -> "subprocess.Popen[bytes]":
    """Starts a child in its own session. Ctrl-C in the terminal does not reach it, so the caller stops its children in
    the right order."""
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(log.open("ab")) if log else None
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=output,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )


def end(process: "subprocess.Popen[bytes]", escalation: Escalation) -> bool:
    """Sends one signal after the other until the child has ended; True if the first signal was enough."""
    for index, (number, patience_s) in enumerate(escalation):
        if process.poll() is None:
            process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience_s)
            return index == 0
    process.wait()
    return False


def running_in(folder: Path, name: str) -> list[int]:
    """Processes called `name` whose working directory is `folder`. Unlike a pid file, this cannot be stale."""
    wanted = str(folder.resolve())
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if str((entry / "cwd").readlink()) == wanted and (entry / "comm").read_text().strip() == name:
                found.append(int(entry.name))
    return found


def running_with(variable: str, value: str) -> list[int]:
    """Processes of this user that were started with `variable=value` in their environment."""
    wanted = f"{variable}={value}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_strangers(pids: Iterable[int], escalation: Escalation) -> None:
    """Like `end`, for processes that are not our children."""
    left = set(pids)
    for number, patience_s in escalation:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + patience_s
        while left and time.monotonic() < until:
            left = {pid for pid in left if is_alive(pid)}
            time.sleep(0.02)
        if not left:
            return


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ready(port: int, host: str = "127.0.0.1") -> bool:
    """True if the API at this address says that it is ready."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
