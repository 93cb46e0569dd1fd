"""The rival of the delivery queue: a Celery task for each notification, on the same Redis. The Celery workers import
this file.

With Celery's defaults a task leaves the queue before it starts, so a worker that dies loses the tasks it has taken.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any
from uuid import UUID

from celery import Celery
from machine import processes
from machine.steps import tail

from benchmarks import bare_worker, roles
from benchmarks.bench import Bench

BROKER_DATABASE = 1
END: processes.Escalation = ((processes.signal.SIGTERM, 3.0), (processes.signal.SIGKILL, 5.0))

app: Any = Celery("delivery_rival")
app.conf.update(
    broker_url=os.environ.get("RIVAL_BROKER", "memory://"),
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)
own = threading.local()


@app.task(name="record")
def record(id_: str) -> None:
    """Records a notification as sent without sending it."""
    if not hasattr(own, "conn"):
        own.conn = bare_worker.connect()
    own.conn.execute(bare_worker.ACK, {"ids": [UUID(id_)]})


@app.task(name="post")
def post(type_: str, id_: str, body: str) -> None:
    if not hasattr(own, "http"):
        own.http = HTTPConnection(os.environ["RIVAL_HOST"], timeout=bare_worker.PATIENCE_S)
    try:
        bare_worker.send(own.http, type_, id_, body)
    except (OSError, HTTPException):
        own.http.close()


def broker(bench: Bench) -> str:
    return f"{bench.redis_server.rpartition('/')[0]}/{BROKER_DATABASE}"


@contextmanager
def producer(bench: Bench) -> Iterator[Any]:
    app.conf.broker_url = broker(bench)
    with app.producer_pool.acquire(block=True) as opened:
        yield opened


@contextmanager
def worker(
    bench: Bench, database: str, *options: str, queue: str = "celery", host: str = ""
) -> Iterator[Callable[[], None]]:
    """Starts a worker. Yields a function that waits until it is ready."""
    environment = {**os.environ, "RIVAL_BROKER": broker(bench), "DATABASE_URL": bench.url(database)}
    environment["RIVAL_HOST"] = host
    log = bench.folder / f"celery-{database}-{queue}.log"
    command = [sys.executable, "-m", "celery", "--app", "benchmarks.delivery_rival", "--quiet", "worker"]
    command += ["--loglevel=INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    process = processes.spawn([*command, "-Q", queue, *options], env=environment, cwd=bench.folder, log=log)

    def wait() -> None:
        roles.eventually(lambda: " ready." in log.read_text(errors="replace") or process.poll() is not None)
        if process.poll() is not None:
            raise RuntimeError(f"the Celery worker ended unexpectedly:\n{tail(log)}")

    try:
        yield wait
    finally:
        processes.end(process, END)
