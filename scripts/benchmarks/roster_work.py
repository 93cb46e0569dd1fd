"""Whole runs of the roster in processes of their own, as the job does them."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

from app.db.database import Database
from app.roster.service import apply_people
from app.roster.sync.comparison import Rules, Step
from app.roster.sync.guards import GuardLimits
from app.roster.sync.whole_run import WholeRun
from benchmarks import roles
from benchmarks.bench import Bench, Connection, fetch, run
from benchmarks.roster_files import KIND, Night, reading

RULES = Rules(GuardLimits(100, 0, 0, 100, 100, 10_000, 100, 100), retention_days=30)
"""Nothing is held back."""
PROCESSES = os.cpu_count() or 1

TABLE = f"roster_rows_{KIND.document_type}"
SIZES = f"""
SELECT pg_table_size('{TABLE}') / 1e6, pg_indexes_size('{TABLE}') / 1e6, pg_total_relation_size('roster_changes') / 1e6,
       (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = '{TABLE}')
"""


@contextmanager
def long_database(url: str) -> Iterator[Database]:
    db = Database(url, pool_size=2, statement_timeout_ms=0, call_limit_s=3600)
    try:
        yield db
    finally:
        db.close()


def whole_run(bench: Bench, database: str, night: Night) -> tuple[float, float]:
    """Its seconds, and the MB of the process that reads and of those that parse: the peak of each."""
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.SimpleQueue()
    process = spawn.Process(target=_sync, args=(bench.url(database), night, answers))
    process.start()
    process.join()
    require_success(process)
    return answers.get()


@contextmanager
def beside(target: Callable[..., None], *arguments: Any) -> Iterator[BaseProcess]:
    """A process that works while the block does."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.terminate()
        process.join()


def require_success(process: BaseProcess) -> None:
    if process.exitcode:
        raise AssertionError(f"the process ended with exit code {process.exitcode}")


def _sync(url: str, night: Night, answers: Any) -> None:
    peak_mb = 0.0

    def note_memory(*_: object) -> None:
        nonlocal peak_mb
        peak_mb = max(peak_mb, roles.memory_mb(os.getpid(), "VmHWM"))

    began = time.perf_counter()
    sync(url, night, note_memory)
    answers.put((time.perf_counter() - began, peak_mb))


def sync(url: str, night: Night, step: Step = lambda *_: None) -> None:
    with long_database(url) as db:
        whole = WholeRun(db, RULES, reading(PROCESSES), step)
        report = whole.sync([KIND], {KIND.source.name: night.files}, dry_run=False)
    assert report.kinds, report.to_dict()


def follow(bench: Bench, database: str) -> None:
    """Brings the people of the queue to their rows."""
    with bench.services(database) as services:
        apply_people(services.db, services.matching, KIND)


def empty_queue(conn: Connection) -> None:
    """As people would have, after their commit."""
    run(conn, "DELETE FROM roster_to_apply")


def sizes(conn: Connection) -> tuple[float, float, float, int]:
    """MB of rows, of their indexes and of changes; and how many rows are dead."""
    run(conn, "SELECT pg_stat_clear_snapshot()")
    table, indexes, changes, dead = fetch(conn, SIZES)[0]
    return float(table), float(indexes), float(changes), dead
