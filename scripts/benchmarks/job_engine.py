"""How fast the engine of the jobs runs scripts, beside bare pools of processes and threads."""

import concurrent.futures
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import loky

from app.jobs.engine.embedded import EmbeddedEngine
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.task import TaskType
from benchmarks import job_pools, jobs_work
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.figures import spread
from benchmarks.job_pools import CORES, POOLS, task
from benchmarks.report import Row, Section

GOAL_PER_S, GOAL_OVERHEAD_US, GOAL_SPEED_UP = 2_000, 150, 1.8
WAIT_S, WAITING_THREADS = 0.1, 64
TITLE = (
    f"job-engine: tasks of the embedded engine with {CORES} worker processes; floor: bare loky with {CORES} processes,"
    " which starts no script, keeps no output and blames nobody; rival: concurrent.futures.ProcessPoolExecutor"
)

Measured = list[float]


def measure(bench: Bench) -> Section:
    notes = [
        "No-ops are submitted one by one and fetched in the order of submission. The overhead is the time of one task"
        " beyond loky's.",
        "A plain pool of threads serves scripts that only wait best, as the rows show. The engine's threads are in"
        " processes of their own all the same: a script can be killed there, and cannot take the role with it.",
    ]
    rows: list[Row] = []
    with keeping(lambda: Section("job-engine", TITLE, rows, notes)):
        rows += _no_ops(bench)
        rows.append(_speed_up(bench))
        rows += _waiting(bench)
        rows.append(_first_result(bench))
        rows.append(_go_on(bench))
        rows += _memory()
    return Section("job-engine", TITLE, rows, notes)


def _no_ops(bench: Bench) -> list[Row]:
    """Each pool has the machine and a process for itself: threads of idle pools would take turns with it."""
    number, rounds = bench.size(5_000, 200), bench.size(4, 1)
    rates: dict[str, Measured] = {}
    for turn in range(rounds):
        say(f"job-engine: no-ops, round {turn + 1} of {rounds}")
        for name in list(POOLS)[:: -1 if turn % 2 else 1]:
            command = [sys.executable, "-m", job_pools.__name__, name, str(number)]
            printed = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
            rates.setdefault(name, []).append(float(printed))
    best = {name: max(measured) for name, measured in rates.items()}
    overhead_us = 1e6 / best["cpu"] - 1e6 / best["loky"]
    met = None if bench.quick else best["cpu"] >= GOAL_PER_S
    within = None if bench.quick else overhead_us <= GOAL_OVERHEAD_US
    return [
        Row(
            "no-ops a second, cpu group",
            best["cpu"],
            best["loky"],
            best["processes"],
            f"≥{GOAL_PER_S:,}",
            met,
            rates,
            more_is_better=True,
        ),
        Row(
            "no-ops a second, io group (1 process, 4 threads)",
            best["io"],
            best["loky"],
            best["threads"],
            more_is_better=True,
        ),
        Row("no-ops a second, pebble (kills single tasks, too)", best["pebble"], best["loky"], more_is_better=True),
        Row("overhead over loky, µs a task", overhead_us, goal=f"≤{GOAL_OVERHEAD_US}", met=within),
    ]


def _speed_up(bench: Bench) -> Row:
    """Computing tasks on all cores against one."""
    tasks, rounds = bench.size(100, 8), bench.size(20_000, 200)
    took: dict[str, float] = {}
    for workers in (1, 2):
        say(f"job-engine: {tasks} computing tasks on {workers}")
        with EmbeddedEngine(EngineOptions(cpu_workers=workers)) as engine:
            _warm(engine, workers)
            began = time.perf_counter()
            ids = [engine.submit_task(task(TaskType.CPU_BOUND, "compute", rounds)) for _ in range(tasks)]
            assert all(engine.get_result(id_, 300).is_success for id_ in ids)
            took[f"ours {workers}"] = time.perf_counter() - began
        with loky.ProcessPoolExecutor(workers, timeout=None) as bare:
            list(bare.map(jobs_work.nothing, range(workers)))
            began = time.perf_counter()
            list(bare.map(jobs_work.compute, [rounds] * tasks))
            took[f"loky {workers}"] = time.perf_counter() - began
    ours, floor = took["ours 1"] / took["ours 2"], took["loky 1"] / took["loky 2"]
    met = None if bench.quick else ours >= GOAL_SPEED_UP
    return Row(
        f"speed-up of {tasks} computing tasks, 2 workers",
        ours,
        floor,
        goal=f"≥{GOAL_SPEED_UP}",
        met=met,
        facts=took,
        more_is_better=True,
    )


def _waiting(bench: Bench) -> list[Row]:
    """Tasks that only wait, 64 at a time: the share of the ideal time."""
    tasks = bench.size(1_000, 64)
    ideal_s = tasks * WAIT_S / WAITING_THREADS
    say(f"job-engine: {tasks} waiting tasks")
    with EmbeddedEngine(EngineOptions(io_workers=2, io_threads=WAITING_THREADS // 2)) as engine:
        _warm(engine, 4, TaskType.IO_BOUND)
        began = time.perf_counter()
        ids = engine.submit_batch([task(TaskType.IO_BOUND, "wait", WAIT_S) for _ in range(tasks)])
        assert all(result.is_success for result in engine.as_completed(ids, 300))
        ours_s = time.perf_counter() - began
    with concurrent.futures.ThreadPoolExecutor(WAITING_THREADS) as threads:
        list(threads.map(jobs_work.wait, [0.0] * WAITING_THREADS))
        began = time.perf_counter()
        list(threads.map(jobs_work.wait, [WAIT_S] * tasks))
        floor_s = time.perf_counter() - began
    name = f"share of the ideal, {tasks:,} tasks of {WAIT_S * 1e3:.0f} ms on {WAITING_THREADS} threads"
    return [Row(f"{name}; floor: bare threads", ideal_s / ours_s, ideal_s / floor_s, more_is_better=True)]


def _first_result(bench: Bench) -> Row:
    say("job-engine: the first result")
    ours: Measured = []
    floor: Measured = []
    for _ in range(bench.size(10, 2)):
        began = time.perf_counter()
        with EmbeddedEngine() as engine:
            engine.get_result(engine.submit_task(task(TaskType.CPU_BOUND, "nothing", 1)), 60)
            ours.append((time.perf_counter() - began) * 1e3)
        began = time.perf_counter()
        with loky.ProcessPoolExecutor(1) as bare:
            bare.submit(jobs_work.nothing, 1).result(60)
            floor.append((time.perf_counter() - began) * 1e3)
    return Row("new engine to its first result, ms", spread(ours), spread(floor))


def _go_on(bench: Bench) -> Row:
    """A script ends its process; how long until the next task of the only worker has its result."""
    say("job-engine: a death, and on")
    ours: Measured = []
    floor: Measured = []
    with EmbeddedEngine(EngineOptions(cpu_workers=1)) as engine:
        _warm(engine, 1)
        for _ in range(bench.size(50, 3)):
            began = time.perf_counter()
            ids = engine.submit_batch([task(TaskType.CPU_BOUND, "die"), task(TaskType.CPU_BOUND, "nothing", 1)])
            assert [engine.get_result(id_, 60).is_success for id_ in ids] == [False, True]
            ours.append((time.perf_counter() - began) * 1e3)
    for _ in range(bench.size(20, 2)):
        bare = loky.get_reusable_executor(1, timeout=600)
        bare.submit(jobs_work.nothing, 1).result(60)
        began = time.perf_counter()
        died = bare.submit(jobs_work.die)
        try:
            died.result(60)
        except loky.process_executor.TerminatedWorkerError:
            bare = loky.get_reusable_executor(1, timeout=600)
        assert bare.submit(jobs_work.nothing, 1).result(60) == 1
        floor.append((time.perf_counter() - began) * 1e3)
    loky.get_reusable_executor().shutdown(kill_workers=True)
    return Row("a script ends its process, to the next result, ms", spread(ours), spread(floor))


def _memory() -> list[Row]:
    """The share of a worker in memory that processes have in common is counted once."""
    with EmbeddedEngine(EngineOptions(cpu_workers=2)) as engine:
        _warm(engine, 2)
        pids = [int(state.rsplit(" ", 1)[1]) for name, state in engine.status().components.items() if "-" in name]
        ours = max(_own_megabytes(pid) for pid in pids)
    with loky.ProcessPoolExecutor(2, timeout=None) as bare:
        list(bare.map(jobs_work.wait, [0.05, 0.05]))
        floor = max(_own_megabytes(pid) for pid in bare._processes)
    return [Row("memory of a worker, MB (its own and its share)", ours, floor)]


def _own_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise LookupError(pid)


def _warm(engine: EmbeddedEngine, tasks: int, task_type: TaskType = TaskType.CPU_BOUND) -> None:
    ids: Sequence[str] = engine.submit_batch([task(task_type, "wait", 0.05) for _ in range(tasks)])
    for id_ in ids:
        engine.get_result(id_, 60)
