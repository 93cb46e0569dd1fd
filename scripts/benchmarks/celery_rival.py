"""The rival of the matcher's ticker: a Celery task with an ETA for each offer. It uses the same Redis and database and
runs the same statements. The Celery worker imports this file.
"""

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from celery import Celery
from machine import processes
from machine.steps import tail

from benchmarks import roles
from benchmarks.bench import MATCHER_OPTIONS, Bench
from benchmarks.replay import Due, Template

BROKER_DATABASE = 1
"""Number of the broker's database on the same Redis."""

app: Any = Celery("rival")
app.conf.update(
    broker_url=os.environ.get("RIVAL_BROKER", "memory://"),
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)


class Connections:
    """Two connections for each process of the pool, kept open: one with transactions, one with autocommit."""

    def __init__(self) -> None:
        self._opened: tuple[Any, Any] | None = None
        self._template: Template | None = None

    def settle(self, due: Due) -> None:
        if self._opened is None or self._template is None:
            url = os.environ["RIVAL_DATABASE"]
            self._opened = (
                psycopg.connect(url, options=MATCHER_OPTIONS),
                psycopg.connect(url, options=MATCHER_OPTIONS, autocommit=True),
            )
            self._template = pickle.loads(Path(os.environ["RIVAL_TEMPLATE"]).read_bytes())
        assert self._template is not None
        self._template.run(*self._opened, [due], datetime.now(UTC) + timedelta(hours=10))


connections = Connections()


@app.task(name="settle")
def settle(task_id: str, asked: int, left: list[int]) -> None:
    connections.settle(Due(UUID(task_id), asked, left))


@contextmanager
def worker(bench: Bench, database: str, template: Template) -> Iterator[Callable[[datetime, Due], None]]:
    """Runs a worker with the default pool, one process per core. Yields a function that schedules a task."""
    file = bench.folder / "celery-template"
    file.write_bytes(pickle.dumps(template))
    broker = f"{bench.redis_server.rpartition('/')[0]}/{BROKER_DATABASE}"
    environment = {**os.environ, "RIVAL_BROKER": broker, "RIVAL_DATABASE": bench.url(database)}
    environment |= {"RIVAL_TEMPLATE": str(file)}
    log = bench.folder / f"celery-{database}.log"
    command = [
        sys.executable,
        "-m",
        "celery",
        "--app",
        "benchmarks.celery_rival",
        "--quiet",
        "worker",
        "--loglevel=INFO",
    ]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    process = processes.spawn(command, env=environment, cwd=bench.folder, log=log)
    try:
        roles.eventually(lambda: " ready." in log.read_text(errors="replace") or process.poll() is not None)
        if process.poll() is not None:
            raise RuntimeError(f"the Celery worker ended unexpectedly:\n{tail(log)}")
        app.conf.broker_url = broker
        with app.producer_pool.acquire(block=True) as producer:

            def apply_at(moment: datetime, due: Due) -> None:
                settle.apply_async((str(due.task_id), due.asked, list(due.left)), eta=moment, producer=producer)

            yield apply_at
    finally:
        processes.end(process, roles.STOP)
