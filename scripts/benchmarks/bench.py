"""`Bench`, which every measurement gets: the stores, the sizes, and helpers to connect."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
import redis
from psycopg import sql
from sqlalchemy.engine import make_url

from app.api.services import Services
from app.bootstrap.build_services import build_services
from app.cli.migrate import upgrade
from app.db.database import Database, psycopg_url
from app.settings.settings import Settings

SECRET = "a-secret-for-benchmarks-that-is-long-enough-0123456789"
TIME_ZONE = "Europe/Istanbul"
# The options of the application, so that PostgreSQL plans for all implementations alike.
OPTIONS = "-c jit=off -c max_parallel_workers_per_gather=0 -c timezone=UTC"
MATCHER_OPTIONS = OPTIONS + " -c plan_cache_mode=force_generic_plan"

Connection = psycopg.Connection[tuple[Any, ...]]


def say(text: str) -> None:
    print(f"    {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Bench:
    server_url: str
    redis_server: str
    pgbench: str
    quick: bool
    flame: Path | None = None
    """Where `ceiling` draws what the api does in a press."""

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    @property
    def redis_url(self) -> str:
        return self.redis_server

    @property
    def folder(self) -> Path:
        """For files of a measurement; removed together with the stores."""
        return Path(os.environ["YANINDA_BENCH"])

    # ---- databases ----

    def url(self, database: str) -> str:
        server = make_url(psycopg_url(self.server_url))
        return server.set(database=database, drivername="postgresql").render_as_string(hide_password=False)

    def create(self, database: str) -> None:
        """An empty database with the application's schema."""
        self._maintain("CREATE DATABASE {} TEMPLATE template0", database)
        migrated = Database(self.url(database), pool_size=1, statement_timeout_ms=0)
        upgrade(migrated.engine)
        migrated.close()

    def copy(self, template: str, database: str) -> None:
        self._maintain("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", database, template)

    def drop(self, *databases: str) -> None:
        for database in databases:
            self._maintain("DROP DATABASE IF EXISTS {} WITH (FORCE)", database)

    def databases(self) -> frozenset[str]:
        with psycopg.connect(self.server_url) as conn:
            return frozenset(row[0] for row in conn.execute("SELECT datname FROM pg_database").fetchall())

    def _maintain(self, statement: LiteralString, *names: str) -> None:
        with psycopg.connect(self.server_url, autocommit=True) as conn:
            conn.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    @contextmanager
    def connect(self, database: str, *, autocommit: bool = True, options: str = OPTIONS) -> Iterator[Connection]:
        with psycopg.connect(self.url(database), autocommit=autocommit, options=options) as conn:
            yield conn

    @contextmanager
    def database(self, name: str) -> Iterator[Database]:
        """The application's `Database`, without its statement timeout."""
        db = Database(self.url(name), pool_size=2, statement_timeout_ms=0)
        try:
            yield db
        finally:
            db.close()

    @contextmanager
    def services(self, database: str, **settings: Any) -> Iterator[Services]:
        values: dict[str, Any] = {
            "database_url": self.url(database),
            "redis_url": self.redis_url,
            "auth_secret": SECRET,
            "log_level": "ERROR",
        }
        built = build_services(Settings(**(values | settings)), role="bench", pool_size=2)
        try:
            yield built
        finally:
            built.close()

    # ---- redis ----

    @contextmanager
    def redis(self) -> Iterator[Any]:
        """A client of an emptied Redis."""
        client: Any = redis.Redis.from_url(self.redis_url, decode_responses=True, socket_timeout=600)
        client.flushdb()
        try:
            yield client
        finally:
            client.close()

    def versions(self) -> tuple[str, str, str]:
        with psycopg.connect(self.server_url) as conn:
            found: Any = conn.execute(
                "SELECT current_setting('server_version'),"
                " (SELECT default_version FROM pg_available_extensions WHERE name = 'postgis')"
            ).fetchone()
        with self.redis() as client:
            return found[0].split()[0], found[1], client.info("server")["redis_version"]


def fetch(conn: Connection, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
    return conn.execute(cast(LiteralString, statement), values).fetchall()


def run(conn: Connection, statement: str, values: Any = None) -> None:
    conn.execute(cast(LiteralString, statement), values)


def load_average() -> float:
    return os.getloadavg()[0]
