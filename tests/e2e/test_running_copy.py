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


def test_ctrl_c_drains_the_roles_then_stops_the_stores_and_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "copy") as copy:
        copy.wait_until_ready()
        assert copy.get("/readyz") == 200
        assert len(copy.stores()) > 1
        assert copy.stop(signal.SIGINT) == 0
        said = copy.text()
        assert said.index("drain_finished") < said.index("Redis … stopped") < said.index("PostgreSQL … stopped")
        assert copy.stores() == copy.roles() == []


def test_token_is_all_that_scripts_app_prints_and_it_opens_the_api(tmp_path: Path) -> None:
    with running(tmp_path / "copy") as copy:
        copy.wait_until_ready()
        printed = copy.app("token", "--admin").stdout
        assert printed.count("\n") == 1
        assert copy.get("/me", printed.strip()) == 200
        assert copy.get("/me", "x" + printed.strip()) == 401


def test_settings_of_the_start_reach_the_copy_and_its_tools_but_are_not_kept(tmp_path: Path) -> None:
    with running(tmp_path / "copy", OFFER_TTL_S="7") as copy:
        copy.wait_until_ready()
        env_file = copy.folder / "env"
        assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
        assert environment.read(env_file, with_given=True)["OFFER_TTL_S"] == "7"
        assert "OFFER_TTL_S" not in environment.read(env_file, with_given=False)


def test_killed_role_comes_back(tmp_path: Path) -> None:
    with running(tmp_path / "copy") as copy:
        copy.wait_until_ready()
        for name in ("api", "matcher", "delivery"):
            kill_and_wait_for_the_next(copy, name)
        eventually(lambda: copy.get("/readyz") == 200)


def test_everything_killed_starts_again_with_its_data(tmp_path: Path) -> None:
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


def test_stores_that_a_killed_start_left_running_are_in_nobody_s_way(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    with running(folder) as copy:
        copy.wait_until_ready()
        port = copy.port
        copy.process.kill()
        copy.process.wait()
        with running(folder, port) as successor:
            successor.wait_until_ready()
            assert successor.get("/readyz") == 200
        assert copy.stores() == copy.roles() == []


def test_two_copies_side_by_side_and_none_twice(tmp_path: Path) -> None:
    with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
        one.wait_until_ready()
        two.wait_until_ready()
        token = one.app("token", "--admin").stdout.strip()
        assert (one.get("/me", token), two.get("/me", token)) == (200, 401)
        said = refused_start(one.folder, processes.free_port())
        assert "already running" in said
        assert f"kill {one.process.pid}" in said
        assert one.get("/readyz") == 200
        assert one.stop() == 0
        assert two.get("/readyz") == 200


def test_port_that_is_taken_is_said_before_anything_starts(tmp_path: Path) -> None:
    with running(tmp_path / "one") as one:
        one.wait_until_ready()
        assert f"port {one.port}" in refused_start(tmp_path / "two", one.port)
        assert not (tmp_path / "two" / "postgres").exists()


def test_app_without_a_copy_says_what_to_do(tmp_path: Path) -> None:
    done = scripts_app(tmp_path / "nowhere", "token", "--admin")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "scripts/run" in done.stderr
