"""Runs child processes: the roles of `serve`, or the processes of the api. It restarts one that dies; SIGTERM drains
them all. They are forked after all modules are imported, so they start at once and share the memory of the code.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from app.foundation.parent import end_with_parent, name_process

log = structlog.get_logger(__name__)

ROLES = ("api", "matcher", "delivery", "jobs")
RunRole = Callable[[], int]
"""Runs a role until it ends, and returns its exit code."""

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0
# Urgent messages wait for a role that was killed, however often that happens.
LONGEST_DELAY_AFTER_KILL_S = 0.5
HEALTHY_AFTER_S = 5.0

# A role may use all of DRAIN_S, so the supervisor waits a little longer before it kills the role.
EXTRA_DRAIN_S = 2.0

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
_AWAITED = _STOP | {signal.SIGCHLD}


@dataclass(frozen=True)
class Restart:
    """The delay before a dead role is restarted, and the role's number of quick deaths in a row."""

    after_s: float
    quick_deaths: int


def decide_restart(quick_deaths: int, lived_s: float, exit_code: int) -> Restart:
    """The delay doubles with every quick death, because a role that ends by itself soon cannot start. One that was
    killed by a signal can. A role that lived long enough starts from the shortest delay again."""
    before = 0 if lived_s >= HEALTHY_AFTER_S else quick_deaths
    longest_s = LONGEST_DELAY_AFTER_KILL_S if exit_code < 0 else LONGEST_DELAY_S
    return Restart(min(FIRST_DELAY_S * 2 ** min(before, 16), longest_s), before + 1)


class _InRole(Exception):
    """Leaves the supervisor in the process of a role, which has just been forked."""

    def __init__(self, run: RunRole) -> None:
        self.run = run


@dataclass
class _Role:
    name: str
    run: RunRole
    on_end: Callable[[int], None]
    """Called with the pid of a process that ended."""
    own_group: bool = True
    """If not, whoever kills the group of the supervisor kills this process with it."""
    pid: int | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    quick_deaths: int = 0

    def start(self) -> None:
        """Raises `_InRole` in the process of the role."""
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            if self.own_group:
                os.setsid()
            _become(self.name, supervisor)
            raise _InRole(self.run)
        self.pid = pid
        self.started_at = time.monotonic()
        log.info("role_started", role=self.name, pid=pid)

    def reap(self) -> int | None:
        """The exit code of a role that has ended, returned once. The rest of its process group is killed."""
        pid = self.pid
        if pid is None:
            return None
        # WNOWAIT keeps the pid reserved, so that `kill` reaches the group of this role and no other. Workers that
        # outlive a killed role would keep its port.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        self.kill()
        _, status = os.waitpid(pid, 0)
        self.on_end(pid)
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def terminate(self) -> None:
        if self.pid is not None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if self.own_group else os.kill)(self.pid, signal.SIGKILL)


def _become(name: str, supervisor: int) -> None:
    # If the supervisor is SIGKILLed, its roles have to end; otherwise they would run beside those of its successor.
    end_with_parent(signal.SIGTERM)
    if os.getppid() != supervisor:
        os._exit(1)
    name_process(name)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def run_supervisor(
    runs: Mapping[str, RunRole],
    *,
    drain_s: float,
    policy: Callable[[int, float, int], Restart] = decide_restart,
    on_end: Callable[[int], None] = lambda pid: None,
    before_drain: Callable[[], None] = lambda: None,
    own_groups: bool = True,
) -> int:
    """Supervises until SIGTERM or SIGINT. Returns 0 after a clean drain, 1 if a role had to be killed; and in the
    process of a role its exit code."""
    supervisor = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    roles = [_Role(name, run, on_end, own_groups) for name, run in runs.items()]
    try:
        _keep_running(roles, policy)
        before_drain()
        return _drain(roles, drain_s)
    except _InRole as forked:
        run = forked.run
    finally:
        if os.getpid() == supervisor:
            for role in roles:
                role.kill()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return run()


def _keep_running(roles: Sequence[_Role], policy: Callable[[int, float, int], Restart]) -> None:
    while True:
        for role in roles:
            if role.pid is None and role.due_at <= time.monotonic():
                role.start()
        waiting = [role.due_at - time.monotonic() for role in roles if role.pid is None]
        if _await_signal(min(waiting, default=LONGEST_DELAY_S)) in _STOP:
            return
        for role in roles:
            if (exit_code := role.reap()) is not None:
                restart = policy(role.quick_deaths, time.monotonic() - role.started_at, exit_code)
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
        if not any(role.pid for role in roles):
            break
        # A second signal means that the operator does not want to wait.
        if _await_signal(until - time.monotonic()) in _STOP or time.monotonic() >= until:
            for role in roles:
                if role.pid is not None:
                    clean = False
                    log.error("role_killed", role=role.name, pid=role.pid)
                    role.kill()
            until = float("inf")
    log.info("drain_finished", clean=clean)
    return 0 if clean else 1


def _await_signal(timeout_s: float) -> int | None:
    received = signal.sigtimedwait(_AWAITED, min(max(timeout_s, 0.0), 60.0))
    return received.si_signo if received is not None else None
