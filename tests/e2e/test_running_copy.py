"""scripts/run and scripts/app as a new user runs them: real processes, each copy in its own folder."""

import http.client
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from machine import environment, processes
from machine.running_copy import MARK, OWNER_URL

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 90.0
EMPTY = ("--empty",)

# The settings of a copy come from the test, not from the environment of the tests.
CALLER = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "USER") if name in os.environ} | {
    "API_WORKERS": "1"
}


class Copy:
    """A copy that was started with scripts/run."""

    def __init__(self, folder: Path, port: int, settings: dict[str, str], demo: Sequence[str]) -> None:
        self.folder = folder
        self.port = port
        self.printed = folder.with_suffix(f".{port}.out")
        with self.printed.open("wb") as output:
            self.process = subprocess.Popen(
                scripts_run(folder, port, demo),
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
        """The pid of a role: the process of its name that leads its session."""
        for pid in self.roles():
            try:
                if Path(f"/proc/{pid}/comm").read_text() == f"{name}\n" and os.getsid(pid) == pid:
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
        """Kills every process of the copy, as a power cut does; only its files stay."""
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
def running(folder: Path, port: int | None = None, demo: Sequence[str] = EMPTY, **settings: str) -> Iterator[Copy]:
    copy = Copy(folder, port or processes.free_port(), settings, demo)
    try:
        yield copy
    finally:
        if copy.process.poll() is None:
            copy.stop()
        if copy.stores() or copy.roles():
            copy.kill_everything()


def eventually(condition: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "the condition was not met in time"
        time.sleep(0.02)


def scripts_run(folder: Path, port: int, demo: Sequence[str] = EMPTY) -> list[str]:
    return [str(ROOT / "scripts" / "run"), "--dir", str(folder), "--port", str(port), *demo]


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
def shared_copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """One copy for all tests that do not change it, because a start takes ten seconds of processor time. The demo
    people live in it, and stop with it."""
    folder = tmp_path_factory.mktemp("shared") / "copy"
    with running(folder, demo=("--live", "--pace", "10"), OFFER_TTL_S="7") as copy:
        yield copy.wait_until_ready()
        assert copy.stop(signal.SIGINT) == 0
        assert copy.roles() == []


def test_scripts_app_prints_only_the_token_and_the_api_accepts_it(shared_copy: Copy) -> None:
    printed = shared_copy.app("token", "--admin").stdout
    assert printed.count("\n") == 1
    assert shared_copy.get("/me", printed.strip()) == 200
    assert shared_copy.get("/me", "x" + printed.strip()) == 401


def test_settings_of_a_start_apply_to_the_copy_and_its_tools_but_are_not_saved(shared_copy: Copy) -> None:
    env_file = shared_copy.folder / "env"
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    assert environment.read(env_file, with_given=True)["OFFER_TTL_S"] == "7"
    assert "OFFER_TTL_S" not in environment.read(env_file, with_given=False)


def test_only_the_migration_knows_the_password_of_the_owner(shared_copy: Copy) -> None:
    owner = environment.store_from(environment.read(shared_copy.folder / "env", with_given=False)[OWNER_URL])
    assert owner is not None
    known = [Path(f"/proc/{pid}/environ").read_text() for pid in shared_copy.roles()]
    assert known
    assert not any(owner.password in text for text in known)


def test_demo_people_live_on_while_roles_are_killed(shared_copy: Copy) -> None:
    eventually(lambda: "accepts." in shared_copy.text())
    for name in ("api", "matcher", "delivery"):
        kill_and_wait_for_the_next(shared_copy, name)
    eventually(lambda: shared_copy.get("/readyz") == 200)
    presses = shared_copy.text().count("presses the button")
    eventually(lambda: shared_copy.text().count("presses the button") > presses and "has helped." in shared_copy.text())


def test_a_second_start_of_the_same_copy_is_refused(shared_copy: Copy) -> None:
    printed = refused_start(shared_copy.folder, processes.free_port())
    assert "already running" in printed
    assert f"kill {shared_copy.process.pid}" in printed
    assert shared_copy.get("/readyz") == 200


def test_a_port_in_use_is_reported_before_anything_starts(shared_copy: Copy, tmp_path: Path) -> None:
    assert f"port {shared_copy.port}" in refused_start(tmp_path / "two", shared_copy.port)
    assert not (tmp_path / "two" / "postgres").exists()


def test_a_second_copy_is_killed_and_taken_over_with_its_data_while_the_first_runs_on(
    shared_copy: Copy, tmp_path: Path
) -> None:
    """In one test, because each start costs ten seconds of processor time."""
    folder = tmp_path / "copy"
    with running(folder) as copy:
        copy.wait_until_ready()
        token = copy.app("token", "--admin").stdout.strip()
        addresses = environment.read(folder / "env", with_given=False)
        assert len(copy.stores()) > 1
        assert (shared_copy.get("/me", token), copy.get("/me", token)) == (401, 200)
        copy.kill_everything()
    with running(folder) as copy:
        copy.wait_until_ready()
        assert copy.get("/me", token) == 200
        again = environment.read(folder / "env", with_given=False)
        kept = ("DATABASE_URL", "REDIS_URL", "AUTH_SECRET")
        assert [again[name] for name in kept] == [addresses[name] for name in kept]
        # Now only scripts/run is killed, and its roles and stores keep running.
        copy.process.kill()
        copy.process.wait()
        with running(folder, copy.port) as successor:
            successor.wait_until_ready()
            assert (successor.get("/readyz"), successor.get("/me", token)) == (200, 200)
            assert successor.stop(signal.SIGINT) == 0
            assert_ended_in_order(successor.text())
        assert copy.stores() == copy.roles() == []
    assert shared_copy.get("/readyz") == 200


def assert_ended_in_order(printed: str) -> None:
    places = [printed.index(line) for line in ("drain_finished", "Redis … stopped", "PostgreSQL … stopped")]
    assert places == sorted(places)


def test_scripts_app_without_a_copy_prints_what_to_do(tmp_path: Path) -> None:
    done = scripts_app(tmp_path / "nowhere", "token", "--admin")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "scripts/run" in done.stderr
