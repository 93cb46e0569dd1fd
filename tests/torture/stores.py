"""The stores of a run, which can be killed and restarted: PostgreSQL with fsync, Redis with an adjustable clock."""

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import redis
from machine import packages, processes, throwaway
from machine.account import Account, store_account
from machine.postgres import Postgres
from machine.redis import Redis
from psycopg import sql

PREFIX = "yaninda-torture-"
MARK = "YANINDA_TORTURE"
"""Set in the environment of every process of a run, so that those that a killed run left can be found."""
SETTINGS = {"fsync": "on", "synchronous_commit": "on", "log_min_duration_statement": "-1"}
SKEW_SOURCE = Path(__file__).with_name("skewed_clock.c")


class SkewedClock:
    """A wall clock that can be set wrong while a process runs. Needs a C compiler; without one `works` is false."""

    def __init__(self, folder: Path, name: str) -> None:
        self._library = folder / "skewed_clock.so"
        self._file = folder / f"{name}.skew"
        self._file.write_text("+".ljust(16, "\n"))
        self._file.chmod(0o644)
        compiler = shutil.which("cc")
        if compiler is not None and not self._library.exists():
            subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", self._library, SKEW_SOURCE], check=True)

    @property
    def works(self) -> bool:
        return self._library.exists()

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "SKEW_FILE": str(self._file)} if self.works else {}

    def set_skew(self, seconds: int) -> None:
        with self._file.open("r+") as file:
            file.write(f"{seconds:+d}".ljust(16, "\n"))


@dataclass
class Stores:
    folder: Path
    postgres: Postgres
    redis: Redis
    postgres_port: int
    redis_port: int
    password: str
    redis_clock: SkewedClock
    redis_account: Account
    old_redis: list[Redis] = field(default_factory=list[Redis])
    """The servers before each failover."""

    @property
    def database_url(self) -> str:
        return f"postgresql://torture:{self.password}@127.0.0.1:{self.postgres_port}/torture"

    def redis_url(self, port: int | None = None) -> str:
        return f"redis://:{self.password}@127.0.0.1:{port or self.redis_port}/0"

    def connect(self, patience_s: float = 60.0, **options: Any) -> "psycopg.Connection[Any]":
        """Retries while PostgreSQL is starting."""
        until = time.monotonic() + patience_s
        while True:
            try:
                return psycopg.connect(self.database_url, autocommit=True, connect_timeout=5, **options)
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def redis_client(self) -> Any:
        return redis.Redis.from_url(self.redis_url(), decode_responses=True, socket_timeout=30)

    # ---- faults ----

    def kill_postgres(self) -> None:
        process = self.postgres.process
        assert process is not None
        process.kill()
        process.wait()

    def kill_postgres_at_once(self) -> None:
        """Kills every process of PostgreSQL, as a power failure does: no backend finishes its commit."""
        assert self.postgres.process is not None
        for pid in (self.postgres.process.pid, *processes.running_in(self.postgres.data, "postgres")):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.postgres.process.wait()

    def restart_postgres(self, how: signal.Signals) -> None:
        process = self.postgres.process
        assert process is not None
        process.send_signal(how)
        process.wait(60)
        self.start_postgres()

    def slow_commits(self, microseconds: int) -> None:
        with self.connect() as conn:
            conn.execute("ALTER SYSTEM SET commit_siblings = 0")
            conn.execute(sql.SQL("ALTER SYSTEM SET commit_delay = {}").format(microseconds))
            conn.execute("SELECT pg_reload_conf()")

    def start_postgres(self) -> None:
        # Backends end when they notice that their postmaster is gone. `start_again` ends those that are left, because
        # two servers must not use the same data.
        until = time.monotonic() + 5
        while processes.running_in(self.postgres.data, "postgres") and time.monotonic() < until:
            time.sleep(0.02)
        self.postgres.start_again()
        self.connect().close()

    def kill_redis(self) -> None:
        process = self.redis.process
        assert process is not None
        process.kill()
        process.wait()

    def start_redis(self, *, empty: bool) -> None:
        if empty:
            for path in self.redis.folder.iterdir():
                if path.name.startswith(("appendonly", "dump.rdb")):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.redis.start_again()
        self._wait_for_redis()

    def start_empty_replica(self) -> None:
        """Starts a replica that never reached its primary, and makes it `redis`. It takes no writes until promoted."""
        number = len(self.old_redis) + 1
        replica = Redis(self.folder / f"redis-{number}", self.redis_account, self.folder / f"redis-{number}.log")
        port = processes.free_port()
        replica.start(port, self.password)
        self.old_redis.append(self.redis)
        self.redis, self.redis_port = replica, port
        with closing(self.redis_client()) as client:
            client.replicaof("127.0.0.1", 1)

    def promote_replica(self) -> None:
        with closing(self.redis_client()) as client:
            client.replicaof("NO", "ONE")

    def kill_old_redis(self) -> None:
        process = self.old_redis[-1].process
        if process is not None:
            process.kill()
            process.wait()

    def _wait_for_redis(self) -> None:
        client = self.redis_client()
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with suppress(redis.ConnectionError, redis.BusyLoadingError):
                client.ping()
                break
            time.sleep(0.02)
        client.close()


@contextmanager
def stores() -> Iterator[Stores]:
    packages.ensure_stores()
    with throwaway.folder(PREFIX, _end_processes, keep=bool(os.environ.get("TORTURE_KEEP"))) as folder:
        account = store_account(folder)
        clock = SkewedClock(folder, "redis")
        skewed = [f"{name}={value}" for name, value in clock.environment.items()]
        wrong = replace(account, prefix=(*account.prefix, "env", *skewed)) if skewed else account
        postgres = Postgres(folder / "postgres", account, folder / "postgres.log", settings=SETTINGS)
        server = Redis(folder / "redis", wrong, folder / "redis.log")
        password = secrets.token_urlsafe(18)
        made = Stores(folder, postgres, server, processes.free_port(), processes.free_port(), password, clock, wrong)
        try:
            postgres.create("torture", password, "torture", superuser=True)
            postgres.start(made.postgres_port)
            server.start(made.redis_port, password)
            yield made
        finally:
            _end_processes(folder)
            for one in (*made.old_redis, made.redis):
                _end_store(one)
            postgres.stop()


def _end_store(server: Redis) -> None:
    if server.process is not None and server.process.poll() is None:
        server.process.send_signal(signal.SIGCONT)
    server.stop()


def _end_processes(folder: Path) -> None:
    left = processes.running_with(MARK, str(folder))
    processes.end_strangers(left, ((signal.SIGKILL, 5.0),))
