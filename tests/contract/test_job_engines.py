"""What every engine promises for every script, good or bad."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from app.jobs.engine.embedded import EmbeddedEngine
from app.jobs.engine.engine import Engine, EngineHealth, Finished
from app.jobs.engine.errors import EngineStopped, InputFull, ResultTimeout, UnknownTask
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.result import Result, ResultStatus
from app.jobs.engine.task import Task, TaskType
from tests.support.cluster import Cluster
from tests.support.processes import is_alive
from tests.support.serving import eventually

DEEDS = str(Path(__file__).parents[1] / "support" / "script_deeds.py")
WAIT_S = 60
wait_until = partial(eventually, patience_s=WAIT_S)
IO, CPU = TaskType.IO_BOUND, TaskType.CPU_BOUND
MB = 1024 * 1024

OPTIONS = EngineOptions(
    io_workers=2,
    io_threads=4,
    cpu_workers=2,
    worker_memory_bytes=256 * MB,
    input_capacity=50,
    cancel_grace_s=0.3,
    artifact_bytes=100_000,
    artifacts_bytes=150_000,
    backoff_s=(0.01,),
)
SMALL = EngineOptions(io_workers=1, io_threads=1, cpu_workers=1, cancel_grace_s=0.3, backoff_s=(3600.0,))


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.ends: dict[str, Finished] = {}
        self.reports: list[tuple[str, int, int | None, str]] = []

    def progressed(self, task_id: str, done: int, total: int | None, note: str) -> None:
        self.reports.append((task_id, done, total, note))

    def finished(self, finished: Finished) -> None:
        assert finished.result.task_id not in self.ends, "told twice"
        self.ends[finished.result.task_id] = finished


def deed(
    name: str, task_type: TaskType = IO, *, retries: int = 0, timeout_s: float | None = None, **params: Any
) -> Task:
    return Task.create(DEEDS, {"deed": name, **params}, task_type, retries, timeout_s)


@pytest.fixture(scope="module")
def listener() -> Listener:
    return Listener()


class OpenEngine(Protocol):
    def __call__(self, listener: Listener | None = None, *, results_kept: int = 10_000) -> Engine: ...


@dataclass
class Kind:
    """How engines of one kind are opened: one that runs many tasks at once, and one that runs one of each type."""

    large: OpenEngine
    small: OpenEngine


@pytest.fixture(scope="module", params=("embedded", "dask"))
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kind]:
    if request.param == "embedded":
        yield Kind(
            lambda listener=None, **kept: EmbeddedEngine(replace(OPTIONS, **kept), listener),
            lambda listener=None, **kept: EmbeddedEngine(replace(SMALL, **kept), listener),
        )
        return
    half = replace(OPTIONS, io_threads=OPTIONS.io_threads // 2, cpu_workers=OPTIONS.cpu_workers // 2)
    with (
        Cluster(tmp_path_factory.mktemp("large"), half, 2) as large,
        Cluster(tmp_path_factory.mktemp("small"), SMALL, 1) as small,
    ):
        yield Kind(
            lambda listener=None, **kept: large.engine(listener, input_capacity=OPTIONS.input_capacity, **kept),
            lambda listener=None, **kept: small.engine(listener, **kept),
        )


@pytest.fixture(scope="module")
def engine(kind: Kind, listener: Listener) -> Iterator[Engine]:
    """One for all tests: each must leave it in working order, as the next test shows."""
    engine = kind.large(listener)
    yield engine
    engine.shutdown(0)


@contextmanager
def opened(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        engine.shutdown(0)


def result_of(engine: Engine, task: Task) -> Result:
    return engine.get_result(engine.submit_task(task, wait_s=WAIT_S), WAIT_S)


def test_one_task_from_its_creation_to_its_result(engine: Engine) -> None:
    """The first walk-through of the seed."""
    task = Task.create(script_path=DEEDS, params={"deed": "answer", "value": 42}, task_type=TaskType.IO_BOUND)
    task_id = engine.submit_task(task)
    assert task_id == task.id
    result = engine.get_result(task_id, timeout=30)
    assert result.status is ResultStatus.SUCCESS
    assert (result.data["value"], result.data["task_id"]) == (42, task_id)
    assert result.data["worker_id"] in {"io-0", "io-1"}
    assert result.started_at and result.completed_at and result.started_at <= result.completed_at


def test_five_tasks_at_once_are_fetched_in_the_order_of_submission(engine: Engine) -> None:
    """The second walk-through of the seed: the results come in another order, and none is lost."""
    task_ids = [
        engine.submit_task(
            Task.create(script_path=DEEDS, params={"deed": "sleep", "s": 0.02 * (5 - i), "value": i}, task_type=IO)
        )
        for i in range(5)
    ]
    assert [engine.get_result(task_id).data["value"] for task_id in task_ids] == [0, 1, 2, 3, 4]


def test_results_come_as_they_complete(engine: Engine) -> None:
    slow, quick = deed("sleep", s=0.4, value="slow"), deed("sleep", s=0.0, value="quick")
    ids = engine.submit_batch([slow, quick])
    assert [result.data["value"] for result in engine.as_completed(ids, WAIT_S)] == ["quick", "slow"]


def test_a_cpu_task_runs_in_the_cpu_group(engine: Engine) -> None:
    assert result_of(engine, deed("answer", CPU)).data["worker_id"] in {"cpu-0", "cpu-1"}


def test_a_task_is_pending_until_it_has_a_result(engine: Engine) -> None:
    task = deed("sleep", s=0.1)
    engine.submit_task(task)
    assert engine.pending_tasks()[task.id] == task
    engine.get_result(task.id, WAIT_S)
    assert task.id not in engine.pending_tasks()


def test_a_result_is_handed_out_once(engine: Engine) -> None:
    result = result_of(engine, deed("answer"))
    with pytest.raises(UnknownTask):
        engine.get_result(result.task_id, 1)


def test_waiting_for_a_result_has_a_limit(engine: Engine) -> None:
    task_id = engine.submit_task(deed("sleep", s=0.3))
    with pytest.raises(ResultTimeout):
        engine.get_result(task_id, 0.01)
    assert engine.get_result(task_id, WAIT_S).is_success


BAD_ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "exit_process": ({}, "exit code 3"),
    "segfault": ({}, "SIGSEGV"),
    "stuck_in_c": ({"timeout_s": 0.3}, "longer than 0.3 s"),
    "stuck_and_deaf": ({"timeout_s": 0.3}, "longer than 0.3 s"),
    "eat_memory": ({"megabytes": 400}, "more than 256 MB of memory"),
    "return_set": ({}, "not JSON"),
    "return_nan": ({}, "not JSON"),
    "return_much": ({}, "leave it as an artifact"),
    "fork": ({}, "forked"),
    "raise_error": ({"text": "Öğrenci yok"}, "ValueError: Öğrenci yok (script_deeds.py, line"),
    "raise_exit": ({}, "SystemExit: 5"),
    "promise_artifact": ({}, "never.txt was not written"),
    "raise_speechless": ({}, "Speechless: (it has no text)"),
    "close_streams_and_raise": ({}, "ValueError: into no stream"),
    "return_half_a_pair": ({}, "not JSON"),
    "return_nested": ({"levels": 102}, "nested deeper than 100"),
    "report_odd_progress": ({"done": "five"}, "ValueError: invalid literal"),
    "leave_unreadable_artifact": ({}, "memory cannot be read (OSError)"),
    "break_artifacts": ({}, "exit code 70"),
    "unheard_of": ({}, "KeyError: 'unheard_of'"),
}


@pytest.mark.parametrize("task_type", TaskType)
@pytest.mark.parametrize("name", BAD_ENDS)
def test_a_bad_script_fails_with_the_reason_and_leaves_a_clean_worker(
    engine: Engine, listener: Listener, name: str, task_type: TaskType
) -> None:
    params, reason = BAD_ENDS[name]
    result = result_of(engine, deed(name, task_type, **params))
    assert result.status is ResultStatus.FAILED
    assert reason in str(result.error)
    assert result.data is None
    assert listener.ends[result.task_id].tries == 1
    assert result_of(engine, deed("answer", task_type)).is_success


def test_a_worker_in_which_a_task_failed_is_not_used_again(engine: Engine) -> None:
    result_of(engine, deed("leave_state_and_fail", CPU))
    result_of(engine, deed("leave_state_and_fail", CPU))
    assert result_of(engine, deed("leave_state", CPU)).data == 1


@pytest.mark.parametrize("name", ["leave_thread", "replace_streams", "leave_folder"])
def test_a_worker_in_which_something_was_left_is_not_used_again(engine: Engine, name: str) -> None:
    assert result_of(engine, deed(name, CPU)).is_success
    assert result_of(engine, deed(name, CPU)).is_success
    assert result_of(engine, deed("leave_state", CPU)).data == 1


@pytest.mark.parametrize("value", [{1}, float("nan"), b"x"])
def test_parameters_that_are_not_json_fail_the_task_alone(engine: Engine, value: object) -> None:
    assert "parameters are not JSON" in str(result_of(engine, deed("answer", value=value)).error)
    assert result_of(engine, deed("answer")).is_success


def test_a_listener_that_fails_loses_no_result() -> None:
    class Failing:
        def progressed(self, *_report: object) -> None:
            raise LookupError

        def finished(self, _finished: Finished) -> None:
            raise LookupError

    with EmbeddedEngine(EngineOptions(cpu_workers=1), Failing()) as engine:
        assert result_of(engine, deed("report_progress", steps=3)).is_success


@pytest.mark.parametrize("path", ["/nowhere/script.py", DEEDS.replace(".py", ".txt")])
def test_a_script_that_is_not_there_fails(engine: Engine, path: str) -> None:
    assert "cannot be read" in str(result_of(engine, Task.create(path, {})).error)


def test_a_script_that_is_no_python_fails(engine: Engine, tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("def run(:")
    assert "is not Python" in str(result_of(engine, Task.create(str(script), {})).error)
    script.write_text("x = 1")
    assert "no function run" in str(result_of(engine, Task.create(str(script), {})).error)


def test_wrong_parameters_are_named_and_not_tried_again(engine: Engine, listener: Listener, tmp_path: Path) -> None:
    script = tmp_path / "declared.py"
    script.write_text(
        "from pydantic import BaseModel\n"
        "class Declared(BaseModel):\n    month: str\n    k: int\n"
        "def run(params: Declared, context): return params.k\n"
    )
    assert result_of(engine, Task.create(str(script), {"month": "2026-10", "k": 5})).data == 5
    result = result_of(engine, Task.create(str(script), {"k": "viele"}))
    assert "month: Field required" in str(result.error)
    assert "k: Input should be a valid integer" in str(result.error)
    assert listener.ends[result.task_id].tries == 1


@pytest.mark.parametrize("name", ["print_much", "print_from_c"])
def test_of_a_flood_of_output_the_end_is_kept(engine: Engine, listener: Listener, name: str) -> None:
    result = result_of(engine, deed(name, CPU, megabytes=50))
    assert result.is_success
    output = listener.ends[result.task_id].output
    assert output.endswith("the end\n")
    assert 60_000 < len(output.encode()) < 200_000


def test_output_before_a_death_is_kept(engine: Engine, listener: Listener) -> None:
    result = result_of(engine, deed("print_and", text="almost done", then="stuck_and_deaf", timeout_s=0.6))
    assert "almost done" in listener.ends[result.task_id].output


@pytest.mark.parametrize("culprit", ["exit_process", "segfault", "eat_memory", "stuck_in_c"])
def test_neighbours_of_a_bad_script_are_not_blamed(
    engine: Engine, listener: Listener, culprit: str, tmp_path: Path
) -> None:
    """All threads of all workers are busy, so that the bad script shares its worker."""
    go_on = tmp_path / "go_on"
    neighbours = [deed("wait_for_file", began=str(tmp_path / str(n)), go_on=str(go_on), value=n) for n in range(7)]
    ids = engine.submit_batch(neighbours)
    wait_until(lambda: all((tmp_path / str(n)).exists() and (tmp_path / str(n)).read_text() for n in range(7)))
    bad = deed(culprit, timeout_s=0.5, megabytes=400)
    engine.submit_task(bad)
    wait_until(lambda: any(len((tmp_path / str(n)).read_text().splitlines()) > 1 for n in range(7)))
    go_on.touch()
    results = [engine.get_result(id_, WAIT_S) for id_ in ids]
    assert [result.data["value"] for result in results] == list(range(7))
    assert {listener.ends[id_].tries for id_ in ids} == {1}
    assert engine.get_result(bad.id, WAIT_S).status is ResultStatus.FAILED


def test_a_failed_task_is_tried_again(engine: Engine, listener: Listener, tmp_path: Path) -> None:
    result = result_of(engine, deed("fail_times", retries=3, file=str(tmp_path / "tries"), times=2))
    assert result.data["tries"] == 3
    assert listener.ends[result.task_id].tries == 3


def test_a_crash_is_tried_again_and_given_up_after_the_last_retry(
    engine: Engine, listener: Listener, tmp_path: Path
) -> None:
    retried = result_of(engine, deed("crash_times", retries=2, file=str(tmp_path / "a"), times=2))
    assert retried.is_success
    given_up = result_of(engine, deed("crash_times", retries=2, file=str(tmp_path / "b"), times=9))
    assert "exit code 3" in str(given_up.error)
    assert listener.ends[given_up.task_id].tries == 3
    assert (tmp_path / "b").read_text() == "xxx"


def test_what_cannot_get_better_is_not_tried_again(engine: Engine, listener: Listener) -> None:
    result = result_of(engine, deed("return_set", retries=3))
    assert listener.ends[result.task_id].tries == 1


def test_a_copy_of_the_worker_has_no_say(engine: Engine) -> None:
    for _ in range(3):
        assert result_of(engine, deed("fork_unseen")).data == "original"


def test_programs_that_a_script_started_end_with_its_worker(engine: Engine, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    assert not result_of(engine, deed("start_program", pid_file=str(pid_file))).is_success
    pid = int(pid_file.read_text())
    wait_until(lambda: not is_alive(pid))


def test_a_script_that_writes_into_all_files_of_its_worker_fails_alone(engine: Engine) -> None:
    assert not result_of(engine, deed("write_into_socket", timeout_s=5.0)).is_success
    assert result_of(engine, deed("answer")).is_success


def test_progress_is_reported(engine: Engine, listener: Listener) -> None:
    task = deed("report_progress", steps=1000)
    result_of(engine, task)
    mine = [report for report in listener.reports if report[0] == task.id]
    assert mine[-1] == (task.id, 1000, 1000, "çalışıyor")
    assert len(mine) < 100


def test_numbers_of_any_type_are_progress(engine: Engine, listener: Listener) -> None:
    task = deed("report_decimal_progress")
    assert result_of(engine, task).is_success
    assert [report for report in listener.reports if report[0] == task.id] == [(task.id, 2, 2**63 - 1, "note")]


def test_a_result_may_be_nested(engine: Engine) -> None:
    assert result_of(engine, deed("return_nested", levels=100)).is_success


def test_a_script_may_forget_its_module(engine: Engine) -> None:
    assert result_of(engine, deed("forget_own_module")).data == "forgotten"


def test_a_death_is_noticed_though_a_copy_of_the_worker_lives(engine: Engine, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    try:
        assert "exit code 3" in str(result_of(engine, deed("die_and_leave_copy", pid_file=str(pid_file))).error)
    finally:
        os.kill(int(pid_file.read_text()), signal.SIGKILL)


def test_programs_that_print_without_end_do_not_keep_the_engine(engine: Engine, tmp_path: Path) -> None:
    pid_file = tmp_path / "pids"
    assert "while they print" in str(result_of(engine, deed("leave_floods", CPU, pid_file=str(pid_file))).error)
    assert result_of(engine, deed("answer", CPU)).is_success
    for pid in pid_file.read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def test_artifacts_are_kept(engine: Engine, listener: Listener) -> None:
    result = result_of(engine, deed("leave_artifacts", files={"a.csv": 10, "b.html": 100_000}))
    assert result.data == "left"
    kept = {artifact.name: len(artifact.content) for artifact in listener.ends[result.task_id].artifacts}
    assert kept == {"a.csv": 10, "b.html": 100_000}


def test_artifacts_of_a_worker_that_died_are_removed(engine: Engine, tmp_path: Path) -> None:
    path_file = tmp_path / "path"
    assert "exit code 3" in str(result_of(engine, deed("die_with_artifact", path_file=str(path_file))).error)
    wait_until(lambda: not Path(path_file.read_text()).parent.exists())


@pytest.mark.parametrize("files", [{"a": 100_001}, {"a": 90_000, "b": 90_000}])
def test_artifacts_have_a_limit(engine: Engine, listener: Listener, files: dict[str, int]) -> None:
    result = result_of(engine, deed("leave_artifacts", files=files))
    assert "100,000 for one, 150,000 for all" in str(result.error)
    assert listener.ends[result.task_id].artifacts == ()


@pytest.mark.parametrize("file_name", ["../x", "a/b", "", ".hidden", "x" * 101, "ş"])
def test_an_artifact_has_a_plain_name(engine: Engine, file_name: str) -> None:
    assert "no name for an artifact" in str(result_of(engine, deed("escape_artifact", file_name=file_name)).error)


def test_a_waiting_task_is_cancelled_at_once(engine: Engine, tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    busy = engine.submit_batch(
        [deed("wait_for_file", CPU, began=str(tmp_path / "began"), go_on=str(go_on)) for _ in range(2)]
    )
    waiting = engine.submit_task(deed("answer", CPU))
    assert engine.cancel(waiting)
    assert engine.get_result(waiting, WAIT_S).status is ResultStatus.CANCELLED
    go_on.touch()
    assert all(result.is_success for result in engine.as_completed(busy, WAIT_S))


def test_a_script_that_asks_stops_when_it_is_cancelled(engine: Engine, tmp_path: Path) -> None:
    task = deed("wait_for_cancel", began=str(tmp_path / "began"))
    engine.submit_task(task)
    wait_until((tmp_path / "began").exists)
    assert engine.cancel(task.id)
    assert engine.get_result(task.id, WAIT_S).status is ResultStatus.CANCELLED


def test_a_script_that_does_not_ask_is_killed_when_it_is_cancelled(engine: Engine, tmp_path: Path) -> None:
    task = deed("wait_for_file", retries=3, began=str(tmp_path / "began"), go_on=str(tmp_path / "never"))
    engine.submit_task(task)
    wait_until((tmp_path / "began").exists)
    engine.cancel(task.id)
    assert engine.get_result(task.id, WAIT_S).status is ResultStatus.CANCELLED


def test_a_task_between_two_tries_can_be_cancelled(kind: Kind) -> None:
    with opened(kind.small()) as engine:
        id_ = engine.submit_task(deed("raise_error", retries=1))
        wait_until(lambda: engine.metrics().retried)
        engine.cancel(id_)
        assert engine.get_result(id_, WAIT_S).status is ResultStatus.CANCELLED


def test_nobody_can_cancel_an_unknown_task(engine: Engine) -> None:
    assert not engine.cancel("nothing")


def test_a_full_queue_refuses_and_counts(engine: Engine, tmp_path: Path) -> None:
    before = engine.metrics()
    with pytest.raises(InputFull):
        engine.submit_batch([deed("answer") for _ in range(OPTIONS.input_capacity + 1)])
    after = engine.metrics()
    assert after.input_dropped - before.input_dropped == OPTIONS.input_capacity + 1
    assert after.pending == before.pending


def test_a_producer_may_wait_for_room(engine: Engine) -> None:
    ids = [engine.submit_task(deed("answer", value=n), wait_s=WAIT_S) for n in range(3 * OPTIONS.input_capacity)]
    assert [engine.get_result(id_, WAIT_S).data["value"] for id_ in ids] == list(range(len(ids)))


def test_many_callers_each_get_their_own_results(engine: Engine) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for n in range(10):
            value = f"{number}-{n}"
            result = result_of(engine, deed("answer", value=value))
            if result.data["value"] != value:
                wrong.append(result)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_counters_agree(engine: Engine) -> None:
    before = engine.metrics()
    result_of(engine, deed("answer"))
    after = engine.metrics()
    assert (after.input_put, after.output_put, after.output_got) == (
        before.input_put + 1,
        before.output_put + 1,
        before.output_got + 1,
    )
    assert after.active_threads == 0


def test_the_status_names_every_component(engine: Engine) -> None:
    result_of(engine, deed("answer"))
    status = engine.status()
    assert status.health is EngineHealth.RUNNING
    assert {"input", "output"} < status.components.keys()


def test_results_that_nobody_fetches_are_dropped_in_the_end(kind: Kind) -> None:
    with opened(kind.small(results_kept=2)) as engine:
        ids = engine.submit_batch([deed("answer", value=n) for n in range(4)])
        wait_until(lambda: not engine.pending_tasks())
        with pytest.raises(UnknownTask):
            engine.get_result(ids[0], 1)
        assert [engine.get_result(id_, 1).data["value"] for id_ in ids[2:]] == [2, 3]


def test_a_result_that_somebody_waits_for_is_kept(kind: Kind) -> None:
    with opened(kind.small(results_kept=0)) as engine:
        ids = engine.submit_batch([deed("sleep", s=0.05, value=n) for n in range(4)])
        assert [result.data["value"] for result in engine.as_completed(ids, WAIT_S)] == [0, 1, 2, 3]


def test_running_tasks_finish_and_waiting_ones_are_given_back_on_shutdown(kind: Kind, tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    engine = kind.small()
    running = deed("wait_for_file", began=str(tmp_path / "began"), go_on=str(go_on), value="finished")
    waiting = deed("answer")
    engine.submit_batch([running, waiting])
    wait_until((tmp_path / "began").exists)
    threading.Timer(0.05, go_on.touch).start()
    given_back = engine.shutdown(WAIT_S)
    assert given_back == [waiting]
    assert engine.get_result(running.id, 0).data["value"] == "finished"
    with pytest.raises(EngineStopped):
        engine.submit_task(deed("answer"))
    assert engine.status().health is EngineHealth.STOPPED


def test_what_does_not_finish_in_time_is_given_back_on_shutdown(kind: Kind, tmp_path: Path) -> None:
    engine = kind.small()
    task = deed("wait_for_file", began=str(tmp_path / "began"), go_on=str(tmp_path / "never"))
    engine.submit_task(task)
    wait_until((tmp_path / "began").exists)
    assert engine.shutdown(0.05) == [task]
    worker = int((tmp_path / "began").read_text())
    wait_until(lambda: not is_alive(worker))


def test_the_tests_leave_no_worker_busy(engine: Engine) -> None:
    wait_until(lambda: engine.metrics().active_threads == 0)
    assert engine.pending_tasks() == {}


def test_a_script_that_stops_by_an_error_is_cancelled(engine: Engine, tmp_path: Path) -> None:
    task = deed("raise_when_cancelled", retries=3, began=str(tmp_path / "began"))
    engine.submit_task(task)
    wait_until((tmp_path / "began").exists)
    engine.cancel(task.id)
    assert engine.get_result(task.id, WAIT_S).status is ResultStatus.CANCELLED


def test_a_worker_in_which_a_task_failed_has_a_successor_while_others_go_on_in_it(tmp_path: Path) -> None:
    go_on = tmp_path / "go_on"
    with EmbeddedEngine(EngineOptions(io_workers=1, io_threads=2)) as engine:
        busy = engine.submit_task(deed("wait_for_file", began=str(tmp_path / "began"), go_on=str(go_on)))
        wait_until((tmp_path / "began").exists)
        assert not result_of(engine, deed("leave_state_and_fail")).is_success
        assert result_of(engine, deed("leave_state")).data == 1
        go_on.touch()
        assert engine.get_result(busy, WAIT_S).is_success


def test_a_task_ends_although_no_worker_can_be_started() -> None:
    with EmbeddedEngine(EngineOptions(cpu_workers=1, resources=Unloadable())) as engine:
        result = result_of(engine, deed("answer", CPU, retries=3))
    assert "no worker could be started" in str(result.error)


class Unloadable:
    """Reaches the worker, but cannot be unpacked there."""

    def __call__(self) -> Any:
        raise AssertionError

    def __reduce__(self) -> Any:
        return (exit, (9,))


def test_an_engine_says_when_it_cannot_go_on(tmp_path: Path) -> None:
    engine = EmbeddedEngine(EngineOptions(io_workers=1))
    try:
        assert engine.is_whole()
        engine.submit_task(deed("wait_for_file", began=str(tmp_path / "began"), go_on=str(tmp_path / "never")))
        wait_until((tmp_path / "began").exists)
        assert engine.is_whole()
    finally:
        engine.shutdown(0)
