"""A PostgreSQL and a Redis for tests. They do not survive a power cut, and are deleted at the end."""

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
from machine.postgres import NOT_DURABLE, Postgres
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
        postgres = Postgres(home / "postgres", account, home / "postgres.log", settings=NOT_DURABLE)
        redis = Redis(home / "redis", account, home / "redis.log", durable=False, databases=64)
        try:
            say("Test stores … starting a private PostgreSQL and Redis")
            yield start(postgres, redis, "tester")
        finally:
            redis.stop()
            postgres.stop()


def start(postgres: Postgres, redis: Redis, user: str) -> Addresses:
    """Creates and starts both on free ports, with a random password."""
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
    """A folder for stores, deleted at the end. First it cleans up after owners of such folders that were killed: for
    each folder, `end_processes` ends the processes that use it, then the stores in it are stopped."""
    _sweep(prefix, end_processes)
    created = Path(tempfile.mkdtemp(prefix=prefix))
    created.chmod(0o711)
    lock = os.open(created, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield created
    finally:
        end_processes(created)
        if not keep:
            shutil.rmtree(created, ignore_errors=True)
        os.close(lock)  # Without a message: the last line of a test run has to be the number of tests.


def _sweep(prefix: str, end_processes: Callable[[Path], None]) -> None:
    """Skips folders that are in use: their owners hold a lock."""
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
            for redis_folder in left.glob("redis*/"):
                Redis(redis_folder, account, left / "redis.log").end_leftovers()
            shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(descriptor)
