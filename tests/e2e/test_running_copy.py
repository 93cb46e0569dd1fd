"""scripts/run and scripts/app as a new user meets them: real processes in a folder of their own."""

import http.client
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from machine import environment, processes
from machine.running_copy import MARK

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 90.0

# What steers a copy must come from the test and not from the shell it runs in.
CALLER = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "USER") if name in os.environ}


class Copy:
    """A copy that was started with scripts/run."""

    def __init__(self, folder: Path, port: int, settings: dict[str, str]) -> None:
        self.folder = folder
        self.port = port
        self.printed = folder.with_suffix(f".{port}.out")
        with self.printed.open("wb") as output:
            self.process = subprocess.Popen(
                scripts_run(folder, port),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**CALLER, **settings},
                start_new_session=True,
            )

    def text(self) -> str:
        return self.printed.read_text(errors="replace")

    def wait_until_ready(self) -> "Copy":
        eventually(lambda: "Ready: " in self.text() or self.process.poll() is not None)
        assert self.process.poll() is None, self.text()
        return self

    def get(self, path: str, token: str = "") -> int | None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def app(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return scripts_app(self.folder, *arguments)

    def roles(self) -> list[int]:
        return processes.running_with(MARK, str(self.folder))

    def role(self, name: str) -> int | None:
        """The pid of a role: of those that carry its command line the one that leads its session."""
        for pid in self.roles():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[1:4] == [b"-m", b"app", name.encode()] and os.getsid(pid) == pid:
                    return pid
            except (FileNotFoundError, ProcessLookupError):
                continue
        return None

    def stores(self) -> list[int]:
        return [
            *processes.running_in(self.folder / "postgres" / "data", "postgres"),
            *processes.running_in(self.folder / "redis", "redis-server"),
        ]

    def kill_everything(self) -> None:
        """What a power cut leaves behind: files, and no process."""
        self.process.kill()
        self.process.wait()
        for pid in [*self.roles(), *self.stores()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        eventually(lambda: not self.roles() and not self.stores())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)


@contextmanager
def running(folder: Path, port: int | None = None, **settings: str) -> Iterator[Copy]:
    copy = Copy(folder, port or processes.free_port(), settings)
    try:
        yield copy
    finally:
        if copy.process.poll() is None:
            copy.stop()
        if copy.stores() or copy.roles():
            copy.kill_everything()


def eventually(what: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < until, "did not happen in time"
        time.sleep(0.02)


def scripts_run(folder: Path, port: int) -> list[str]:
    return [str(ROOT / "scripts" / "run"), "--dir", str(folder), "--port", str(port), "--empty"]


def refused_start(folder: Path, port: int) -> str:
    done = subprocess.run(
        scripts_run(folder, port),
        env=CALLER,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert "What to do: " in done.stderr
    return done.stderr


def scripts_app(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(ROOT / "scripts" / "app"), "--dir", str(folder), *arguments]
    return subprocess.run(command, env=CALLER, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def kill_and_wait_for_the_next(copy: Copy, name: str) -> None:
    eventually(lambda: copy.role(name))
    killed = copy.role(name)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: copy.role(name) not in (None, killed))


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """One copy for all tests that leave it as it was, because a start takes ten seconds of processor time."""
    with running(tmp_path_factory.mktemp("standing") / "copy", OFFER_TTL_S="7") as copy:
        yield copy.wait_until_ready()


def test_token_is_all_that_scripts_app_prints_and_it_opens_the_api(standing: Copy) -> None:
    printed = standing.app("token", "--admin").stdout
    assert printed.count("\n") == 1
    assert standing.get("/me", printed.strip()) == 200
    assert standing.get("/me", "x" + printed.strip()) == 401


def test_settings_of_the_start_reach_the_copy_and_its_tools_but_are_not_kept(standing: Copy) -> None:
    env_file = standing.folder / "env"
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    assert environment.read(env_file, with_given=True)["OFFER_TTL_S"] == "7"
    assert "OFFER_TTL_S" not in environment.read(env_file, with_given=False)


def test_killed_role_comes_back(standing: Copy) -> None:
    for name in ("api", "matcher", "delivery"):
        kill_and_wait_for_the_next(standing, name)
    eventually(lambda: standing.get("/readyz") == 200)


def test_no_copy_is_started_twice(standing: Copy) -> None:
    said = refused_start(standing.folder, processes.free_port())
    assert "already running" in said
    assert f"kill {standing.process.pid}" in said
    assert standing.get("/readyz") == 200


def test_port_that_is_taken_is_said_before_anything_starts(standing: Copy, tmp_path: Path) -> None:
    assert f"port {standing.port}" in refused_start(tmp_path / "two", standing.port)
    assert not (tmp_path / "two" / "postgres").exists()


def test_two_copies_side_by_side_and_ctrl_c_ends_one_of_them_in_order(standing: Copy, tmp_path: Path) -> None:
    token = standing.app("token", "--admin").stdout.strip()
    with running(tmp_path / "two") as two:
        two.wait_until_ready()
        assert two.get("/readyz") == 200
        assert len(two.stores()) > 1
        assert (standing.get("/me", token), two.get("/me", token)) == (200, 401)
        assert two.stop(signal.SIGINT) == 0
        said = two.text()
        assert said.index("drain_finished") < said.index("Redis … stopped") < said.index("PostgreSQL … stopped")
        assert two.stores() == two.roles() == []
    assert standing.get("/readyz") == 200


def test_a_copy_of_which_all_or_a_part_was_killed_starts_again_with_its_data(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    with running(folder) as copy:
        copy.wait_until_ready()
        token = copy.app("token", "--admin").stdout.strip()
        addresses = environment.read(folder / "env", with_given=False)
        copy.kill_everything()
    with running(folder) as copy:
        copy.wait_until_ready()
        assert copy.get("/me", token) == 200
        again = environment.read(folder / "env", with_given=False)
        kept = ("DATABASE_URL", "REDIS_URL", "AUTH_SECRET")
        assert [again[name] for name in kept] == [addresses[name] for name in kept]
        # Now the start alone is killed, and its roles and stores go on.
        copy.process.kill()
        copy.process.wait()
        with running(folder, copy.port) as successor:
            successor.wait_until_ready()
            assert (successor.get("/readyz"), successor.get("/me", token)) == (200, 200)
        assert copy.stores() == copy.roles() == []


def test_app_without_a_copy_says_what_to_do(tmp_path: Path) -> None:
    done = scripts_app(tmp_path / "nowhere", "token", "--admin")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "scripts/run" in done.stderr
