"""The job engine on a cluster of this machine, beside bare dask."""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from distributed import Client, LocalCluster

from app.jobs.engine.engine import Engine
from app.jobs.engine.options import EngineOptions
from app.jobs.engine.task import TaskType
from benchmarks import jobs_work
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.figures import Spread, spread
from benchmarks.job_pools import task
from benchmarks.report import Row, Section
from tests.support.cluster import Cluster

THREADS = 8
WAIT_S = 0.1
TITLE = (
    f"job-cluster: tasks on dask.distributed with one and two workers of {THREADS} io threads, scripts in processes"
    " of their own, TLS; floor: functions on a bare LocalCluster of as many processes and threads, without TLS"
)

Submit = Callable[[str, int, float], None]
"""Runs so many tasks of this work and waits for all of them."""


def measure(bench: Bench) -> Section:
    rows: list[Row] = []
    with keeping(lambda: Section("job-cluster", TITLE, rows)):
        for workers in (1, 2):
            say(f"job-cluster: {workers} workers")
            with TemporaryDirectory() as folder:
                options = EngineOptions(io_workers=1, io_threads=THREADS, cpu_workers=1)
                with Cluster(Path(folder), options, workers) as cluster:
                    engine = cluster.engine(input_capacity=100_000)
                    ours = _figures(
                        bench, lambda work, number, value, engine=engine: _on_engine(engine, work, number, value)
                    )
                    engine.shutdown(0)
            with (
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=THREADS,
                    processes=True,
                    dashboard_address=":0",
                    silence_logs=50,
                ) as bare,
                Client(bare) as client,
            ):
                floor = _figures(
                    bench, lambda work, number, value, client=client: _on_client(client, work, number, value)
                )
            name = f"{workers} worker{'s' if workers > 1 else ''}"
            ideal_s = bench.size(480, 32) * WAIT_S / (workers * THREADS)
            rows += [
                Row(f"no-ops a second, {name}", ours[0], floor[0], more_is_better=True),
                Row(f"one no-op, ms, {name}", ours[1], floor[1]),
                Row(
                    f"share of the ideal, tasks of {WAIT_S * 1e3:.0f} ms, {name}",
                    ideal_s / ours[2],
                    ideal_s / floor[2],
                    more_is_better=True,
                ),
            ]
    return Section("job-cluster", TITLE, rows)


def _figures(bench: Bench, submit: Submit) -> tuple[float, Spread, float]:
    number = bench.size(2_000, 50)
    submit("nothing", 50, 1)
    alone: list[float] = []
    for _ in range(bench.size(50, 5)):
        began = time.perf_counter()
        submit("nothing", 1, 1)
        alone.append((time.perf_counter() - began) * 1e3)
    began = time.perf_counter()
    submit("nothing", number, 1)
    per_s = number / (time.perf_counter() - began)
    began = time.perf_counter()
    submit("wait", bench.size(480, 32), WAIT_S)
    return per_s, spread(alone), time.perf_counter() - began


def _on_engine(engine: Engine, work: str, number: int, value: float) -> None:
    ids = engine.submit_batch([task(TaskType.IO_BOUND, work, value) for _ in range(number)])
    assert all(result.is_success for result in engine.as_completed(ids, 300))


def _on_client(client: Client, work: str, number: int, value: float) -> None:
    client.gather(client.map(getattr(jobs_work, work), [value] * number, pure=False))
