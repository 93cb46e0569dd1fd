"""A cluster whose parts die in the middle of a task. Its processes are real."""

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client
from machine.processes import free_port

from app.cli import run_jobs_cluster
from app.jobs.cluster.dask_engine import DaskEngine, DaskOptions
from app.jobs.cluster.tls_files import TlsFiles, make_certificates
from app.jobs.engine.engine import EngineHealth, Finished
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.result import ResultStatus
from app.jobs.engine.task import Task, TaskType
from app.settings.engine_address import ClusterMisconfigured
from app.settings.settings import load_settings
from tests.support.cluster import ROOT, Cluster
from tests.support.pages import blocks
from tests.support.processes import is_alive
from tests.support.serving import eventually
from tests.torture.stores import SkewedClock

PAGE = ROOT / "docs" / "jobs-cluster.md"
DEEDS = str(ROOT / "tests" / "support" / "script_deeds.py")
WAIT_S = 60
wait_until = partial(eventually, patience_s=WAIT_S)
SETTINGS = {
    "PATH": os.environ["PATH"],
    "DATABASE_URL": "postgresql://nobody@127.0.0.1/nothing",
    "REDIS_URL": "redis://127.0.0.1/0",
    "AUTH_SECRET": "0123456789-0123456789-0123456789-abc",
}
OPTIONS = EngineOptions(io_workers=1, io_threads=2, cpu_workers=1, cancel_grace_s=1.5, backoff_s=(0.01,))


def job_of(task_id: str) -> str:
    return task_id.partition(".")[0]


class Ends:
    """Counts how often each end is told."""

    def __init__(self) -> None:
        self.told: dict[str, list[Finished]] = {}

    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None: ...

    def finished(self, finished: Finished) -> None:
        self.told.setdefault(finished.result.task_id, []).append(finished)


class Waiting:
    """A task that runs until it is told to go on. Each run leaves the id of its process."""

    def __init__(self, folder: Path, name: str = "task", task_type: TaskType = TaskType.IO_BOUND) -> None:
        self._began, self._go_on = folder / f"{name}-began", folder / f"{name}-go-on"
        params = {"deed": "wait_for_file", "began": str(self._began), "go_on": str(self._go_on), "value": name}
        self.task = Task.create(DEEDS, params, task_type, max_retries=0)

    def runs(self) -> list[int]:
        return [int(line) for line in self._began.read_text().splitlines()] if self._began.exists() else []

    def begins(self, number: int = 1) -> int:
        """The process of this run, when it has begun."""
        wait_until(lambda: len(self.runs()) >= number)
        return self.runs()[number - 1]

    def go_on(self) -> None:
        self._go_on.touch()


def claims_of(job: str, waiting: Waiting) -> list[Task]:
    """One job that is claimed twice: the fence is part of the id of its task."""
    return [replace(waiting.task, id=f"{job}.{fence}") for fence in (1, 2)]


@contextlib.contextmanager
def opened(engine: DaskEngine) -> Iterator[DaskEngine]:
    try:
        yield engine
    finally:
        engine.shutdown(0)


def worker_of(cluster: Cluster, script: int) -> "subprocess.Popen[bytes]":
    """The worker of the cluster that started the process of a script."""
    ancestors = {process.pid for process in psutil.Process(script).parents()}
    [worker] = [worker for worker in cluster.workers if worker.pid in ancestors]
    return worker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests: each brings back what it has killed."""
    with Cluster(tmp_path_factory.mktemp("cluster"), OPTIONS) as cluster:
        yield cluster


@pytest.fixture
def ends() -> Ends:
    return Ends()


@pytest.fixture
def engine(cluster: Cluster, ends: Ends, request: pytest.FixtureRequest) -> Iterator[DaskEngine]:
    engine = cluster.engine(ends, key_of=job_of, worker_lease_s=getattr(request, "param", 20.0))
    yield engine
    engine.shutdown(0)


def test_a_task_goes_on_elsewhere_when_its_worker_is_killed(
    cluster: Cluster, engine: DaskEngine, ends: Ends, tmp_path: Path
) -> None:
    waiting = Waiting(tmp_path)
    engine.submit_task(waiting.task)
    script = waiting.begins()
    worker = worker_of(cluster, script)
    worker.kill()
    worker.wait()
    assert waiting.begins(2) != script
    wait_until(lambda: not is_alive(script))
    waiting.go_on()
    assert engine.get_result(waiting.task.id, WAIT_S).data["value"] == "task"
    # The death of a machine is no failure of the task, which may not be retried.
    assert [finished.tries for finished in ends.told[waiting.task.id]] == [1]
    cluster.workers[cluster.workers.index(worker)] = cluster.start_worker()


@pytest.mark.parametrize("engine", [4.0], indirect=True)
def test_tasks_run_again_when_the_scheduler_is_killed_and_comes_back(
    cluster: Cluster, engine: DaskEngine, ends: Ends, tmp_path: Path
) -> None:
    """When no worker runs them any more, also one that has not noticed; tasks that were not handed over run at once."""
    waiting = Waiting(tmp_path)
    engine.submit_task(waiting.task)
    script = waiting.begins()
    cluster.scheduler.kill()
    cluster.scheduler.wait()
    wait_until(lambda: engine.status().health is EngineHealth.LOST)
    # Two of them might run at once otherwise.
    wait_until(lambda: not is_alive(script))
    assert engine.free == {"io_bound": 0, "cpu_bound": 0}
    while_away = engine.submit_task(Task.create(DEEDS, {"deed": "answer", "value": "while away"}))
    cluster.start_scheduler()
    assert engine.get_result(while_away, WAIT_S).data["value"] == "while away"
    assert waiting.runs() == [script]
    waiting.begins(2)
    waiting.go_on()
    assert engine.get_result(waiting.task.id, WAIT_S).data["value"] == "task"
    assert engine.status().health is EngineHealth.RUNNING
    assert [len(ends.told[id_]) for id_ in (waiting.task.id, while_away)] == [1, 1]
    wait_until(lambda: cluster.connected_workers(engine) == 2)


CLIENT = """
import sys, time
from pathlib import Path
from app.cli import run_jobs_cluster
from app.jobs.cluster.dask_engine import DaskEngine, DaskOptions
from app.jobs.cluster.tls_files import TlsFiles
from app.jobs.engine.task import Task
if __name__ == "__main__":
    address, folder, script, began = sys.argv[1:]
    engine = DaskEngine(DaskOptions(address, TlsFiles.of(Path(folder)).security()))
    engine.submit_task(Task.create(script, {"deed": "wait_for_file", "began": began, "go_on": "/nowhere/never"}))
    time.sleep(600)
"""


def test_nothing_runs_on_for_an_engine_that_was_killed(cluster: Cluster, engine: DaskEngine, tmp_path: Path) -> None:
    began = tmp_path / "began"
    arguments = [cluster.address, str(cluster.folder / "tls"), DEEDS, str(began)]
    client = subprocess.Popen([sys.executable, "-c", CLIENT, *arguments], cwd=ROOT)
    try:
        wait_until(lambda: began.exists() and began.read_text().endswith("\n"))
    finally:
        client.kill()
        client.wait()
    script = int(began.read_text())
    wait_until(lambda: not is_alive(script))
    wait_until(lambda: engine.free == {"io_bound": 4, "cpu_bound": 2})


def test_engines_that_claim_the_same_job_share_one_run(
    cluster: Cluster, engine: DaskEngine, ends: Ends, tmp_path: Path
) -> None:
    """The first was stopped for so long that its lease ran out, and does not disturb the second when it goes on."""
    waiting = Waiting(tmp_path)
    first, second = claims_of("job", waiting)
    stopped_ends = Ends()
    stopped = cluster.engine(stopped_ends, key_of=job_of)
    stopped.submit_task(first)
    waiting.begins()
    engine.submit_task(second)
    wait_until(lambda: engine.metrics().active_threads == 1)
    stopped.extend_lease(time.monotonic() + 0.1)
    wait_until(lambda: not stopped.pending_tasks())
    assert not stopped.cancel(first.id)
    assert stopped.shutdown(0) == []
    waiting.go_on()
    assert engine.get_result(second.id, WAIT_S).task_id == second.id
    assert len(waiting.runs()) == 1
    assert stopped_ends.told == {} and len(ends.told[second.id]) == 1


def test_an_engine_that_claims_its_own_job_again_before_it_has_let_go_shares_the_run(
    engine: DaskEngine, tmp_path: Path
) -> None:
    waiting = Waiting(tmp_path)
    first, second = claims_of("own", waiting)
    engine.submit_task(first)
    waiting.begins()
    engine.submit_task(second)
    assert engine.get_result(first.id, WAIT_S).status is ResultStatus.CANCELLED
    waiting.go_on()
    assert engine.get_result(second.id, WAIT_S).is_success
    assert len(waiting.runs()) == 1


def test_a_job_that_is_claimed_again_while_it_is_stopped_runs_again(
    engine: DaskEngine, ends: Ends, tmp_path: Path
) -> None:
    """On the same worker, though the one that dask would choose has nothing to do: there it would run beside the
    first."""
    elsewhere, again = (Waiting(tmp_path, name, TaskType.CPU_BOUND) for name in ("elsewhere", "again"))
    first, second = claims_of("again", again)
    engine.submit_task(elsewhere.task)
    elsewhere.begins()
    engine.submit_task(first)
    script = again.begins()
    elsewhere.go_on()
    assert engine.get_result(elsewhere.task.id, WAIT_S).is_success
    wait_until(lambda: " ".join(engine.status().components.values()).count("cpu 1 of 1") == 1)
    engine.extend_lease(time.monotonic())
    wait_until(lambda: "cpu 1 of 1" not in " ".join(engine.status().components.values()))
    assert is_alive(script), "it has its grace"
    engine.submit_task(second)
    again.begins(2)
    assert not is_alive(script)
    again.go_on()
    assert engine.get_result(second.id, WAIT_S).status is ResultStatus.SUCCESS
    assert first.id not in ends.told


def test_what_one_engine_cancels_goes_on_for_another_that_has_claimed_it(
    cluster: Cluster, engine: DaskEngine, tmp_path: Path
) -> None:
    waiting = Waiting(tmp_path)
    first, second = claims_of("both", waiting)
    with opened(cluster.engine(key_of=job_of)) as other:
        other.submit_task(first)
        waiting.begins()
        engine.submit_task(second)
        wait_until(lambda: engine.metrics().active_threads == 1)
        time.sleep(0.2)
        other.cancel(first.id)
        assert other.get_result(first.id, WAIT_S).status is ResultStatus.CANCELLED
    waiting.go_on()
    assert engine.get_result(second.id, WAIT_S).is_success
    assert len(waiting.runs()) == 1


@pytest.mark.usefixtures("engine")
def test_a_clock_that_is_set_makes_no_worker_seem_silent(cluster: Cluster) -> None:
    """Nor does it make a silent worker seem to answer: dask itself compares times of the wall clock."""

    async def lost(dask_scheduler: Any, shift_s: float, silent_s: float) -> list[str]:
        for ws in dask_scheduler.workers.values():
            ws.last_seen += shift_s
        first = next(iter(dask_scheduler.workers))
        dask_scheduler._heard_at[first] -= silent_s
        before = {*dask_scheduler.workers}
        await dask_scheduler.check_worker_ttl()
        return [*before - {*dask_scheduler.workers}]

    with Client(cluster.address, security=cluster.tls.security()) as client:
        assert client.run_on_scheduler(lost, shift_s=-3600, silent_s=0) == []
        assert len(client.run_on_scheduler(lost, shift_s=3600, silent_s=100)) == 1
    with opened(cluster.engine()):
        """The worker has connected again."""


def test_a_waiting_task_moves_to_a_worker_that_is_free(engine: DaskEngine, tmp_path: Path) -> None:
    """It was given to a worker whose only thread for its type is taken by a task that goes on for hours."""
    hours, minutes = (Waiting(tmp_path, name, TaskType.CPU_BOUND) for name in ("hours", "minutes"))
    engine.submit_batch([hours.task, minutes.task])
    hours.begins()
    minutes.begins()
    waiting = engine.submit_batch(
        [Task.create(DEEDS, {"deed": "answer", "value": n}, TaskType.CPU_BOUND) for n in range(2)]
    )
    wait_until(lambda: "cpu 2 of 1" in " ".join(engine.status().components.values()))
    minutes.go_on()
    assert [result.data["value"] for result in engine.as_completed([minutes.task.id, *waiting], WAIT_S)]
    assert engine.pending_tasks().keys() == {hours.task.id}
    hours.go_on()
    assert engine.get_result(hours.task.id, WAIT_S).is_success


def test_a_worker_that_is_asked_to_stop_finishes_its_task(cluster: Cluster, engine: DaskEngine, tmp_path: Path) -> None:
    leaving = cluster.start_worker(OPTIONS, drain_s=WAIT_S)
    cluster.workers.append(leaving)
    wait_until(lambda: engine.free == {"io_bound": 6, "cpu_bound": 3})
    several = [Waiting(tmp_path, str(n)) for n in range(6)]
    engine.submit_batch([waiting.task for waiting in several])
    scripts = [waiting.begins() for waiting in several]
    behind = engine.submit_batch([Task.create(DEEDS, {"deed": "answer"}) for _ in range(3)])
    wait_until(lambda: " ".join(engine.status().components.values()).count("io 3 of 2") == 3)
    leaving.send_signal(signal.SIGTERM)
    left = [waiting for waiting, pid in zip(several, scripts, strict=True) if worker_of(cluster, pid) is leaving]
    for waiting in several:
        if waiting not in left:
            waiting.go_on()
    assert all(result.is_success for result in engine.as_completed(behind, WAIT_S))
    wait_until(lambda: engine.pending_tasks().keys() == {waiting.task.id for waiting in left})
    assert leaving.poll() is None and len(left) == 2
    for waiting in left:
        waiting.go_on()
    assert all(result.is_success for result in engine.as_completed([waiting.task.id for waiting in left], WAIT_S))
    assert leaving.wait(WAIT_S) == 0
    assert [len(waiting.runs()) for waiting in several] == [1] * 6
    cluster.workers.remove(leaving)


def greeting(port: int, files: TlsFiles | None) -> bytes:
    """What a server of dask says first, to whoever may connect."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if files is not None:
        context.load_cert_chain(files.certificate, files.key)
    with socket.create_connection(("127.0.0.1", port), 5) as plain, context.wrap_socket(plain) as connection:
        return connection.recv(100)


def answer_to_plain_text(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 5) as plain:
        plain.sendall(b"GET /info HTTP/1.1\r\n\r\n")
        return plain.recv(100)


def listening_ports(process: "subprocess.Popen[bytes]") -> list[int]:
    connections = psutil.Process(process.pid).net_connections("inet")
    return [connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN]


@pytest.mark.usefixtures("engine")
def test_nobody_connects_without_a_certificate_of_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """Neither to the scheduler nor to a worker, and neither has another port, such as that of a dashboard."""
    others = make_certificates(tmp_path / "others")
    for process in (cluster.scheduler, *cluster.workers):
        [port] = listening_ports(process)
        assert greeting(port, cluster.tls)
        for files in (None, others):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                greeting(port, files)
        with contextlib.suppress(ConnectionError):
            assert answer_to_plain_text(port) == b""


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_an_engine_with_other_certificates_gets_nowhere(cluster: Cluster, tmp_path: Path, scheme: str) -> None:
    options: dict[str, Any] = {"security": make_certificates(tmp_path / "others").security()}
    engine = DaskEngine(DaskOptions(f"{scheme}://127.0.0.1:{cluster.port}", **options))
    id_ = engine.submit_task(Task.create(DEEDS, {"deed": "answer"}))
    time.sleep(1.0)
    assert engine.status().health is EngineHealth.LOST
    assert [task.id for task in engine.shutdown(0)] == [id_]


def test_the_commands_of_jobs_cluster_md_start_a_cluster(tmp_path: Path) -> None:
    [block] = [block for block in blocks(PAGE) if block.mark == "run by"]
    port, folder = free_port(), tmp_path / "jobs-tls"
    commands = "\n".join(block.lines).replace("8786", str(port)).replace(".run/jobs-tls", str(folder))
    stop = "trap 'kill $(jobs -p)' TERM; wait; for job in $(jobs -p); do wait $job || exit $?; done"
    shell = subprocess.Popen(["bash", "-c", f"{commands}\n{stop}"], cwd=ROOT, env=SETTINGS, start_new_session=True)
    try:
        wait_until(lambda: (folder / "cluster.pem").exists())
        with opened(DaskEngine(DaskOptions(f"tls://127.0.0.1:{port}", TlsFiles.of(folder).security()))) as engine:
            wait_until(lambda: Cluster.connected_workers(engine) == 1)
            id_ = engine.submit_task(Task.create(DEEDS, {"deed": "answer", "value": 42}))
            assert engine.get_result(id_, WAIT_S).data["value"] == 42
            shell.terminate()
            wait_until(lambda: engine.status().health is EngineHealth.LOST)
        assert shell.wait(WAIT_S) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "JOBS_ENGINE must be dask://host:port"),
        ({"JOBS_ENGINE": "dask://127.0.0.1:1", "JOBS_TLS_DIR": "/nowhere"}, "JOBS_TLS_DIR has no"),
    ],
)
@pytest.mark.parametrize("role", ["scheduler", "worker"])
def test_a_role_of_the_cluster_says_what_is_missing(settings: dict[str, str], problem: str, role: str) -> None:
    with pytest.raises(ClusterMisconfigured, match=problem):
        run_jobs_cluster.main(load_settings(SETTINGS | settings), [role])


def test_certificates_are_for_their_owner_only_and_are_not_replaced(tmp_path: Path) -> None:
    files = make_certificates(tmp_path / "tls")
    assert {path.stat().st_mode & 0o777 for path in (files.authority, files.certificate, files.key)} == {0o600}
    before = files.key.read_bytes()
    assert run_jobs_cluster.main(load_settings(SETTINGS), ["certificates", str(tmp_path / "tls")]) == 1
    assert files.key.read_bytes() == before


def test_scripts_of_a_worker_that_stands_still_end_before_others_run_them(tmp_path: Path) -> None:
    """Also if the wall clock of all machines was set back before."""
    clock = SkewedClock(tmp_path, "cluster")
    with Cluster(tmp_path, OPTIONS, worker_lost_s=3, lease_s=3, environment=clock.environment) as cluster:
        engine = cluster.engine()
        clock.set_skew(-3600)
        waiting = Waiting(tmp_path)
        engine.submit_task(waiting.task)
        script = waiting.begins()
        worker = worker_of(cluster, script)
        worker.send_signal(signal.SIGSTOP)
        wait_until(lambda: not is_alive(script))
        assert waiting.runs() == [script]
        waiting.begins(2)
        waiting.go_on()
        assert engine.get_result(waiting.task.id, WAIT_S).is_success
        engine.shutdown(0)
