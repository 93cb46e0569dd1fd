"""`serve`: one child process per role. It restarts a role that dies; SIGTERM drains them all.

Roles are processes, not threads: a busy thread in the same interpreter made the matcher seconds late.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from app.foundation.parent import end_with_parent
from app.ops.shared_metrics import shared_metrics
from app.settings.settings import Settings

log = structlog.get_logger(__name__)

ROLES = ("api", "matcher", "delivery", "jobs")

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0
HEALTHY_AFTER_S = 30.0

# A role may use all of DRAIN_S, so the supervisor waits a little longer before it kills the role.
EXTRA_DRAIN_S = 2.0

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
_AWAITED = _STOP | {signal.SIGCHLD}


@dataclass(frozen=True)
class Restart:
    """The delay before a dead role is restarted, and the role's number of quick deaths in a row."""

    after_s: float
    quick_deaths: int


def decide_restart(quick_deaths: int, lived_s: float) -> Restart:
    """The delay doubles with every quick death. A role that lived long enough starts from the shortest delay again."""
    before = 0 if lived_s >= HEALTHY_AFTER_S else quick_deaths
    return Restart(min(FIRST_DELAY_S * 2 ** min(before, 16), LONGEST_DELAY_S), before + 1)


@dataclass
class _Role:
    name: str
    command: Sequence[str]
    on_end: Callable[[int], None]
    """Called with the pid of a process that ended."""
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    due_at: float = 0.0
    quick_deaths: int = 0

    def start(self) -> None:
        supervisor = os.getpid()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: _prepare_child(supervisor),
        )
        self.started_at = time.monotonic()
        log.info("role_started", role=self.name, pid=self.process.pid)

    def reap(self) -> int | None:
        """The exit code of a role that has ended, returned once. The rest of its process group is killed."""
        if self.process is None:
            return None
        pid = self.process.pid
        # WNOWAIT keeps the pid reserved, so that `kill` reaches the group of this role and no other. Workers that
        # outlive a killed role would keep its port.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        self.kill()
        exit_code = self.process.wait()
        self.on_end(pid)
        self.process = None
        return exit_code

    def terminate(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


def _prepare_child(supervisor: int) -> None:
    """Runs between fork and exec."""
    # If the supervisor is SIGKILLed, its roles have to end; otherwise they would run beside those of its successor.
    end_with_parent(signal.SIGTERM)
    if os.getppid() != supervisor:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def run_supervisor(
    commands: Mapping[str, Sequence[str]],
    *,
    drain_s: float,
    policy: Callable[[int, float], Restart] = decide_restart,
    on_end: Callable[[int], None] = lambda pid: None,
) -> int:
    """Supervises until SIGTERM or SIGINT. Returns 0 after a clean drain, 1 if a role had to be killed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    roles = [_Role(name, command, on_end) for name, command in commands.items()]
    try:
        _keep_running(roles, policy)
        return _drain(roles, drain_s)
    finally:
        for role in roles:
            role.kill()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _keep_running(roles: Sequence[_Role], policy: Callable[[int, float], Restart]) -> None:
    while True:
        for role in roles:
            if role.process is None and role.due_at <= time.monotonic():
                role.start()
        waiting = [role.due_at - time.monotonic() for role in roles if role.process is None]
        if _await_signal(min(waiting, default=LONGEST_DELAY_S)) in _STOP:
            return
        for role in roles:
            if (exit_code := role.reap()) is not None:
                restart = policy(role.quick_deaths, time.monotonic() - role.started_at)
                role.quick_deaths = restart.quick_deaths
                role.due_at = time.monotonic() + restart.after_s
                log.warning("role_died", role=role.name, exit_code=exit_code, restart_after_s=restart.after_s)


def _drain(roles: Sequence[_Role], drain_s: float) -> int:
    log.info("drain_started", drain_s=drain_s)
    until = time.monotonic() + drain_s
    clean = True
    for role in roles:
        role.terminate()
    while True:
        for role in roles:
            if (exit_code := role.reap()) is not None:
                log.info("role_stopped", role=role.name, exit_code=exit_code)
        if not any(role.process for role in roles):
            break
        # A second signal means that the operator does not want to wait.
        if _await_signal(until - time.monotonic()) in _STOP or time.monotonic() >= until:
            for role in roles:
                if role.process is not None:
                    clean = False
                    log.error("role_killed", role=role.name, pid=role.process.pid)
                    role.kill()
            until = float("inf")
    log.info("drain_finished", clean=clean)
    return 0 if clean else 1


def _await_signal(timeout_s: float) -> int | None:
    received = signal.sigtimedwait(_AWAITED, min(max(timeout_s, 0.0), 60.0))
    return received.si_signo if received is not None else None


def main(settings: Settings, _argv: Sequence[str] = ()) -> int:
    commands = {role: [sys.executable, "-m", "app", role] for role in ROLES}
    with shared_metrics(settings) as directory:
        return run_supervisor(
            commands, drain_s=settings.drain_s + EXTRA_DRAIN_S, on_end=lambda pid: _forget_gauges(pid, directory)
        )


def _forget_gauges(pid: int, directory: str) -> None:
    """Removes the live gauges of a process that has ended."""
    for path in Path(directory).glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)
