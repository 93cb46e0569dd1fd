"""A PostgreSQL and a Redis for tests: careless about power cuts, gone without a trace afterwards."""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from machine import packages, processes
from machine.account import store_account
from machine.postgres import CARELESS, Postgres
from machine.redis import Redis
from machine.steps import say

PREFIX = "yaninda-test-"


@dataclass(frozen=True)
class Addresses:
    database_url: str
    redis_url: str


@contextmanager
def stores() -> Iterator[Addresses]:
    packages.ensure_stores()
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    folder.chmod(0o711)
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    account = store_account(folder)
    postgres = Postgres(folder / "postgres", account, folder / "postgres.log", settings=CARELESS)
    redis = Redis(folder / "redis", account, folder / "redis.log", durable=False, databases=64)
    try:
        say("Test stores … starting a PostgreSQL and a Redis of their own")
        password = secrets.token_urlsafe(18)
        postgres.create("tester", password, "maintenance", superuser=True)
        postgres_port, redis_port = processes.free_port(), processes.free_port()
        postgres.start(postgres_port)
        redis.start(redis_port, password)
        yield Addresses(
            f"postgresql://tester:{password}@127.0.0.1:{postgres_port}/maintenance",
            f"redis://:{password}@127.0.0.1:{redis_port}/0",
        )
    finally:
        redis.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)  # Silently: the last line a test run prints is the one that counts the tests.


def _sweep() -> None:
    """Remove what a test run that was killed left behind; one that still runs holds its lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.geteuid():
            continue
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            account = store_account(folder)
            Postgres(folder / "postgres", account, folder / "postgres.log").end_leftovers()
            Redis(folder / "redis", account, folder / "redis.log").end_leftovers()
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
