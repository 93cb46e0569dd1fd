"""A PostgreSQL and a Redis for tests: careless about power cuts, gone without a trace afterwards."""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
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
    with folder(PREFIX) as home:
        account = store_account(home)
        postgres = Postgres(home / "postgres", account, home / "postgres.log", settings=CARELESS)
        redis = Redis(home / "redis", account, home / "redis.log", durable=False, databases=64)
        try:
            say("Test stores … starting a PostgreSQL and a Redis of their own")
            yield start(postgres, redis, "tester")
        finally:
            redis.stop()
            postgres.stop()


def start(postgres: Postgres, redis: Redis, user: str) -> Addresses:
    """New ones, on free ports and with a password that nobody knows."""
    password = secrets.token_urlsafe(18)
    postgres.create(user, password, "maintenance", superuser=True)
    postgres_port, redis_port = processes.free_port(), processes.free_port()
    postgres.start(postgres_port)
    redis.start(redis_port, password)
    return Addresses(
        f"postgresql://{user}:{password}@127.0.0.1:{postgres_port}/maintenance",
        f"redis://:{password}@127.0.0.1:{redis_port}/0",
    )


@contextmanager
def folder(
    prefix: str, end_processes: Callable[[Path], None] = lambda _: None, *, keep: bool = False
) -> Iterator[Path]:
    """A folder for stores, gone at the end. What killed owners of such folders left behind goes first: the processes
    that `end_processes` finds by a folder, then stores that run in it."""
    _sweep(prefix, end_processes)
    made = Path(tempfile.mkdtemp(prefix=prefix))
    made.chmod(0o711)
    lock = os.open(made, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield made
    finally:
        end_processes(made)
        if not keep:
            shutil.rmtree(made, ignore_errors=True)
        os.close(lock)  # Silently: the last line a test run prints is the one that counts the tests.


def _sweep(prefix: str, end_processes: Callable[[Path], None]) -> None:
    """One that is still in use is locked by its owner."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if left.is_symlink() or not left.is_dir() or left.stat().st_uid != os.geteuid():
            continue
        descriptor = os.open(left, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            account = store_account(left)
            end_processes(left)
            Postgres(left / "postgres", account, left / "postgres.log").end_leftovers()
            for one in left.glob("redis*/"):
                Redis(one, account, left / "redis.log").end_leftovers()
            shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(descriptor)
