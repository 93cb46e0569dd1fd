"""Runs no-ops on one pool, in a process that has imported little else, and prints how many a second.

A process of its own for each: loky gives a task to a worker several times more slowly in a process that has imported
the application.
"""

import concurrent.futures
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import loky
import pebble

from app.foundation.logs import configure_logs
from app.jobs.engine.embedded import EmbeddedEngine
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.task import Task, TaskType
from benchmarks import jobs_work

CORES = len(os.sched_getaffinity(0))
SCRIPT = str(Path(jobs_work.__file__))
WARM_UP = 200

Act = Callable[[int], None]
"""Submits so many no-ops one by one and fetches their results in that order."""


def task(task_type: TaskType, work: str, *arguments: Any) -> Task:
    return Task.create(SCRIPT, {"work": work, "arguments": list(arguments)}, task_type, max_retries=0)


@contextmanager
def _ours(task_type: TaskType, number: int) -> Iterator[Act]:
    options = EngineOptions(io_workers=1, io_threads=4, cpu_workers=CORES, input_capacity=number)

    def act(count: int) -> None:
        ids = [engine.submit_task(task(task_type, "nothing", n)) for n in range(count)]
        for id_ in ids:
            assert engine.get_result(id_, 60).is_success

    with EmbeddedEngine(options) as engine:
        yield act


@contextmanager
def _futures(pool: Any, submit: Callable[..., Any]) -> Iterator[Act]:
    def act(count: int) -> None:
        asked = [submit(jobs_work.nothing, n) for n in range(count)]
        assert [future.result(60) for future in asked] == list(range(count))

    with pool:
        yield act


def _pebble(_number: int) -> AbstractContextManager[Act]:
    pool = pebble.ProcessPool(CORES)
    return _futures(pool, lambda function, *arguments: pool.schedule(function, arguments))


def _executor(make: Callable[[], Any]) -> Callable[[int], AbstractContextManager[Act]]:
    def open_pool(_number: int) -> AbstractContextManager[Act]:
        pool = make()
        return _futures(pool, pool.submit)

    return open_pool


POOLS: dict[str, Callable[[int], AbstractContextManager[Act]]] = {
    "cpu": partial(_ours, TaskType.CPU_BOUND),
    "io": partial(_ours, TaskType.IO_BOUND),
    "loky": _executor(lambda: loky.ProcessPoolExecutor(CORES, timeout=None)),
    "processes": _executor(lambda: concurrent.futures.ProcessPoolExecutor(CORES)),
    "threads": _executor(lambda: concurrent.futures.ThreadPoolExecutor(CORES)),
    "pebble": _pebble,
}


def no_ops_a_second(pool: str, number: int) -> float:
    with POOLS[pool](number) as act:
        act(min(WARM_UP, number))
        began = time.perf_counter()
        act(number)
        return number / (time.perf_counter() - began)


if __name__ == "__main__":
    configure_logs("ERROR", False)
    print(no_ops_a_second(sys.argv[1], int(sys.argv[2])))
