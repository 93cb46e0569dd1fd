"""The supervisor, with small real child processes that record their starts in a file."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.cli.supervisor import decide_restart

PATIENCE_S = 20.0

# Children append "<role> <pid>" to the journal when they are ready for signals.
JOURNAL = "import os, sys; open(sys.argv[1], 'a').write(f'{sys.argv[2]} {os.getpid()}\\n'); "
OBEDIENT = "import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); "
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
WAITING = "threading.Event().wait()"

SUPERVISE = """
import json, os, sys
from functools import partial
from app.cli.supervisor import run_supervisor
runs = {name: partial(os.execv, command[0], command) for name, command in json.loads(sys.argv[1]).items()}
sys.exit(run_supervisor(runs, drain_s=float(sys.argv[2])))
"""


KILLED, ENDED = -signal.SIGKILL, 1


@pytest.mark.parametrize(
    ("quick_deaths", "lived_s", "exit_code", "after_s", "then"),
    [
        (0, 0.1, ENDED, 0.2, 1),
        (1, 0.1, ENDED, 0.4, 2),
        (2, 0.1, ENDED, 0.8, 3),
        (5, 0.1, ENDED, 6.4, 6),
        (6, 0.1, ENDED, 10.0, 7),
        (5000, 0.1, ENDED, 10.0, 5001),
        (6, 4.9, ENDED, 10.0, 7),
        (6, 5.0, ENDED, 0.2, 1),
        (0, 3600.0, ENDED, 0.2, 1),
        (0, 0.1, KILLED, 0.2, 1),
        (5000, 0.1, KILLED, 0.5, 5001),
    ],
)
def test_delay_doubles_with_each_quick_death_but_stays_short_after_a_kill(
    quick_deaths: int, lived_s: float, exit_code: int, after_s: float, then: int
) -> None:
    decision = decide_restart(quick_deaths, lived_s, exit_code)
    assert (decision.after_s, decision.quick_deaths) == (pytest.approx(after_s), then)


def role(name: str, journal: Path, before: str = OBEDIENT, then: str = WAITING) -> list[str]:
    """Imports everything before it signs the journal: Python drops an exit that is raised inside an import."""
    return [sys.executable, "-c", f"import sys, threading; {before}{JOURNAL}{then}", str(journal), name]


@contextmanager
def supervised(commands: dict[str, list[str]], drain_s: float = PATIENCE_S) -> Iterator["subprocess.Popen[bytes]"]:
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISE, json.dumps(commands), str(drain_s)])
    try:
        yield supervisor
    finally:
        for _ in range(2):  # The second SIGTERM kills children that ignore the first.
            if supervisor.poll() is None:
                supervisor.send_signal(signal.SIGTERM)
        supervisor.wait(timeout=PATIENCE_S)


def eventually(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "the condition was not met in time"
        time.sleep(0.01)


def starts(journal: Path, name: str) -> list[int]:
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [int(line.split()[1]) for line in lines if line.split()[0] == name]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_sigterm_drains_every_role_and_exits_with_zero(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with supervised({name: role(name, journal) for name in ("a", "b")}) as supervisor:
        eventually(lambda: bool(starts(journal, "a") and starts(journal, "b")))
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(timeout=PATIENCE_S) == 0
    assert not any(is_alive(pid) for pid in starts(journal, "a") + starts(journal, "b"))


def test_killed_role_is_started_again_and_the_others_keep_running(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with supervised({name: role(name, journal) for name in ("a", "b")}):
        eventually(lambda: bool(starts(journal, "a") and starts(journal, "b")))
        os.kill(starts(journal, "a")[0], signal.SIGKILL)
        eventually(lambda: len(starts(journal, "a")) == 2)
        assert len(starts(journal, "b")) == 1
        assert is_alive(starts(journal, "b")[0])


def test_role_that_ends_is_started_again_each_time(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with supervised({"a": role("a", journal, then="pass")}):
        eventually(lambda: len(starts(journal, "a")) >= 3)


def test_role_that_ignores_sigterm_is_killed_after_the_drain(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    commands = {"stubborn": role("stubborn", journal, before=STUBBORN), "b": role("b", journal)}
    with supervised(commands, drain_s=0.5) as supervisor:
        eventually(lambda: bool(starts(journal, "stubborn") and starts(journal, "b")))
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(timeout=PATIENCE_S) == 1
    assert not is_alive(starts(journal, "stubborn")[0])


def test_second_signal_ends_the_drain(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with supervised({"stubborn": role("stubborn", journal, before=STUBBORN)}, drain_s=3600) as supervisor:
        eventually(lambda: bool(starts(journal, "stubborn")))
        supervisor.send_signal(signal.SIGTERM)
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.wait(timeout=PATIENCE_S) == 1
    assert not is_alive(starts(journal, "stubborn")[0])


def test_roles_do_not_outlive_a_killed_supervisor(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with supervised({"a": role("a", journal)}) as supervisor:
        eventually(lambda: bool(starts(journal, "a")))
        supervisor.kill()
        eventually(lambda: not is_alive(starts(journal, "a")[0]))


def test_workers_of_a_killed_role_do_not_outlive_it(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    worker = role("worker", journal, before=STUBBORN)
    forking = f"import subprocess; subprocess.Popen({worker!r}); " + WAITING
    with supervised({"a": role("a", journal, then=forking)}):
        eventually(lambda: bool(starts(journal, "worker")))
        os.kill(starts(journal, "a")[0], signal.SIGKILL)
        eventually(lambda: not is_alive(starts(journal, "worker")[0]))


def test_a_role_does_not_receive_ctrl_c_from_the_terminal(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with supervised({"a": role("a", journal)}) as supervisor:
        eventually(lambda: bool(starts(journal, "a")))
        pid = starts(journal, "a")[0]
        assert os.getsid(pid) == pid != os.getsid(supervisor.pid)
