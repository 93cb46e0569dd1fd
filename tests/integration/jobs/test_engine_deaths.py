"""What runs when an engine is stopped, killed, or loses its lease."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from app.jobs.engine.embedded import EmbeddedEngine
from app.jobs.engine.engine import Finished
from app.jobs.engine.errors import ResultTimeout, UnknownTask
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.result import ResultStatus
from app.jobs.engine.task import Task, TaskType
from tests.support.processes import is_alive
from tests.support.serving import eventually

ROOT = Path(__file__).parents[3]
DEEDS = str(ROOT / "tests" / "support" / "script_deeds.py")
WAIT_S = 30
wait_until = partial(eventually, patience_s=WAIT_S)


def deed(name: str, **params: Any) -> Task:
    return Task.create(DEEDS, {"deed": name, **params}, TaskType.IO_BOUND, max_retries=0)


class Program:
    """An engine in a process of its own."""

    def __init__(self, lease_s: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.engine_program", str(lease_s)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.read()

    def submit(self, task: Task) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(task.to_dict()) + "\n")
        self.process.stdin.flush()

    def has_printed(self) -> bool:
        return bool(select.select([self.process.stdout], [], [], 0.1)[0])

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], WAIT_S)[0], "it printed nothing"
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Iterator[Program]:
    program = Program(getattr(request, "param", 0))
    yield program
    program.process.send_signal(signal.SIGCONT)
    program.process.kill()
    program.process.communicate()


def begun(path: Path) -> int:
    """The pid of the worker in which the script waits."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text().splitlines()[-1])


@pytest.mark.parametrize("deaf", [False, True])
def test_workers_end_with_an_engine_that_is_killed(program: Program, tmp_path: Path, deaf: bool) -> None:
    began = tmp_path / "began"
    program.submit(deed("wait_for_file", began=str(began), go_on=str(tmp_path / "never")))
    worker = begun(began)
    if deaf:
        program.submit(deed("stuck_in_c", began=str(tmp_path / "stuck")))
        wait_until((tmp_path / "stuck").exists)
    program.process.kill()
    wait_until(lambda: not is_alive(worker))


@pytest.mark.parametrize("program", [1.0], indirect=True)
@pytest.mark.parametrize("name", ["wait_for_file", "stuck_in_c", "stop_timers"])
def test_the_scripts_of_a_stopped_engine_end_with_its_lease(program: Program, tmp_path: Path, name: str) -> None:
    """Another engine may run them from then on. The stopped one cannot do anything, so the kernel does it."""
    began = tmp_path / "began"
    program.submit(deed("wait_for_file", began=str(began), go_on=str(tmp_path / "never")))
    worker = begun(began)
    if name != "wait_for_file":
        program.submit(deed(name, began=str(tmp_path / "neighbour")))
        wait_until((tmp_path / "neighbour").exists)
    program.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: not is_alive(worker))


@pytest.mark.parametrize("program", [1.0], indirect=True)
def test_an_engine_that_was_stopped_for_longer_than_its_lease_blames_no_task(program: Program, tmp_path: Path) -> None:
    """It drops the task, or runs it again if the lease was extended before it noticed."""
    began = tmp_path / "began"
    program.submit(deed("wait_for_file", began=str(began), go_on=str(tmp_path / "never")))
    worker = begun(began)
    program.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: not is_alive(worker))
    program.process.send_signal(signal.SIGCONT)
    # What it is given before it notices is dropped, too.
    while not program.has_printed():
        program.submit(deed("answer"))
    assert program.read()["status"] == "SUCCESS"


def test_a_lease_that_nobody_extends_ends_every_task(tmp_path: Path) -> None:
    with EmbeddedEngine(EngineOptions(io_workers=1, io_threads=1)) as engine:
        began = tmp_path / "began"
        running = engine.submit_task(deed("wait_for_file", began=str(began), go_on=str(tmp_path / "never")))
        waiting = engine.submit_task(deed("answer"))
        worker = begun(began)
        engine.extend_lease(time.monotonic() + 0.3)
        for id_ in (running, waiting):
            with pytest.raises(UnknownTask):
                engine.get_result(id_, WAIT_S)
        assert not is_alive(worker)
        assert engine.pending_tasks() == {}
        late = engine.submit_task(deed("answer"))
        with pytest.raises(ResultTimeout):
            engine.get_result(late, 0.3)
        engine.extend_lease(time.monotonic() + 60)
        assert engine.get_result(late, WAIT_S).is_success


class Holding:
    """A listener that holds the engine, as a stop of its process does."""

    def __init__(self) -> None:
        self.reports = 0
        self.may_go_on = Event()
        self.may_go_on.set()

    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None:
        self.reports += 1
        self.may_go_on.wait(WAIT_S)

    def finished(self, finished: Finished) -> None: ...


def test_a_task_that_was_cancelled_after_its_lease_does_not_begin_again(tmp_path: Path) -> None:
    """Though the lease is extended before the engine notices that the worker has ended."""
    holding, began = Holding(), tmp_path / "began"
    with EmbeddedEngine(EngineOptions(io_workers=1, io_threads=1), holding) as engine:
        id_ = engine.submit_task(deed("report_and_wait", began=str(began)))
        worker = begun(began)
        engine.extend_lease(time.monotonic() + 2)
        before = holding.reports
        wait_until(lambda: holding.reports > before + 1)
        holding.may_go_on.clear()
        wait_until(lambda: not is_alive(worker))
        engine.cancel(id_)
        engine.extend_lease(time.monotonic() + 60)
        holding.may_go_on.set()
        assert engine.get_result(id_, WAIT_S).status is ResultStatus.CANCELLED
        assert began.read_text() == f"{worker}\n"


def test_a_worker_that_is_killed_from_outside_loses_no_task(tmp_path: Path) -> None:
    """With several tasks in the worker none is to blame, so no try is counted."""
    go_on = tmp_path / "go_on"
    with EmbeddedEngine(EngineOptions(io_workers=1, io_threads=4)) as engine:
        began = [tmp_path / str(n) for n in range(4)]
        ids = engine.submit_batch(
            [deed("wait_for_file", began=str(path), go_on=str(go_on), value=n) for n, path in enumerate(began)]
        )
        wait_until(lambda: all(path.exists() and path.read_text() for path in began))
        os.kill(begun(began[0]), signal.SIGKILL)
        wait_until(lambda: any(len(path.read_text().splitlines()) > 1 for path in began))
        go_on.touch()
        assert [engine.get_result(id_, WAIT_S).data["value"] for id_ in ids] == [0, 1, 2, 3]


def test_the_death_of_the_fork_server_ends_no_task(tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    with EmbeddedEngine(EngineOptions(io_workers=2, io_threads=2)) as engine:
        began = [tmp_path / str(n) for n in range(4)]
        ids = engine.submit_batch([deed("wait_for_file", began=str(path), go_on=str(go_on)) for path in began])
        wait_until(lambda: all(path.exists() and path.read_text() for path in began))
        server = int(Path(f"/proc/{begun(began[0])}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: any(len(path.read_text().splitlines()) > 1 for path in began))
        go_on.touch()
        assert all(engine.get_result(id_, WAIT_S).is_success for id_ in ids)
