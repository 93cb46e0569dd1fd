"""A PostgreSQL and a Redis for measuring: set up as one would for real, gone without a trace afterwards."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from machine import packages, processes, throwaway
from machine.account import store_account
from machine.postgres import Postgres
from machine.redis import Redis
from machine.steps import say

PREFIX = "yaninda-bench-"
MARK = "YANINDA_BENCH"
"""In the environment of every process of a run, so that those of a killed one are found."""

# Durable, unlike the stores of the tests: a commit that does not reach the disk costs nothing and proves nothing.
REALISTIC = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "effective_cache_size": "4GB",
    "maintenance_work_mem": "512MB",
    "wal_buffers": "16MB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "30min",
    "random_page_cost": "1.1",
    "track_commit_timestamp": "on",
    "log_min_duration_statement": "-1",
}


@dataclass(frozen=True)
class Stores:
    folder: Path
    database_url: str
    redis_url: str
    pgbench: str


@contextmanager
def stores() -> Iterator[Stores]:
    packages.ensure_stores()
    with throwaway.folder(PREFIX, _end_processes) as folder:
        account = store_account(folder)
        postgres = Postgres(folder / "postgres", account, folder / "postgres.log", settings=REALISTIC)
        redis = Redis(folder / "redis", account, folder / "redis.log", databases=16)
        try:
            say("Stores … starting a PostgreSQL and a Redis of their own")
            at = throwaway.start(postgres, redis, "bench")
            yield Stores(folder, at.database_url, at.redis_url, postgres.program("pgbench"))
        finally:
            _end_processes(folder)
            redis.stop()
            postgres.stop()


def _end_processes(folder: Path) -> None:
    left = processes.running_with(MARK, str(folder))
    processes.end_strangers(left, ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)))
