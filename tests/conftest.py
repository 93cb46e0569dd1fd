"""Fixtures with real stores: one PostgreSQL database and one Redis database for each test worker."""

import json
import os
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import settings as hypothesis_settings
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url

from app.api.services import Services
from app.bootstrap.build_services import build_services, services_on
from app.db.database import Database, psycopg_url
from app.db.grants import grant_to
from app.delivery.plans import shipped_plans
from app.settings.settings import Settings
from tests.support import cleaning, template
from tests.support.kept_database import POOL_SIZE, KeptDatabase

TESTS = Path(__file__).parent
SECRET = "a-secret-for-tests-that-is-long-enough-0123456789"
LONGEST = (
    "e2e/test_torture_short.py",
    "e2e/test_running_copy.py",
    "e2e/test_bench.py",
    "e2e/test_docs_in_use.py",
    "model/test_matching_model.py",
    "e2e/test_outages.py",
    "e2e/test_jobs_role.py",
    "e2e/test_job_cluster.py",
    "contract/test_openapi_conformance.py",
    "e2e/test_scenarios.py",
    "integration/delivery/test_many_deaths.py",
    "e2e/test_pages_together.py",
)
"""The files that take longer than half a minute, the longest first."""

STORES_WITHIN_S = 600
"""So long because packages may have to be installed first."""

# Its own limit for one example fails tests on a machine that is busy with the others.
hypothesis_settings.register_profile("suite", deadline=None)
hypothesis_settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """xdist cuts the list into one piece for each worker. Each piece begins with its share of the longest files, so
    that nobody begins a test of a minute when the others have finished."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path.relative_to(TESTS).as_posix(), []).append(item)
    longest = [files.pop(file) for file in LONGEST if file in files]
    others = list(chain(*files.values()))
    rest, dealt = len(items), []
    for worker in range(workers):
        begin = list(chain(*longest[worker::workers]))
        fill = max(rest // (workers - worker) - len(begin), 0)
        piece = begin + others[:fill]
        del others[:fill]
        rest -= len(piece)
        dealt += piece
    items[:] = dealt


def worker_number() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def _required(variable: str) -> str:
    if file := os.environ.get("TEST_STORES"):
        os.environ.update(_addresses(Path(file)))
    value = os.environ.get(variable)
    if not value:
        pytest.exit(
            f"{variable} is not set: run scripts/test, which starts the stores that the tests need.", returncode=2
        )
    return value


def _addresses(file: Path) -> dict[str, str]:
    """`scripts/test` starts the stores while tests are collected, and writes their addresses when they are ready."""
    give_up = time.monotonic() + STORES_WITHIN_S
    while not file.exists():
        if time.monotonic() > give_up:
            pytest.exit("The stores did not start.", returncode=2)
        time.sleep(0.02)
    return json.loads(file.read_text())


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """A migrated database for this worker, copied from a template that the first worker makes."""
    server = make_url(psycopg_url(_required("TEST_DATABASE_URL")))
    name = f"yaninda_test_{worker_number()}_{os.getpid()}"
    maintenance = create_engine(server, isolation_level="AUTOCOMMIT")
    with maintenance.connect() as conn:
        template.copy(conn, server, name)
    yield server.set(database=name, drivername="postgresql").render_as_string(hide_password=False)
    with maintenance.connect() as conn:
        conn.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    maintenance.dispose()


APPLICATION = "yaninda_app_of_tests"
"""A role as the service has it outside of tests. It is one for all workers, because roles belong to the server."""


@pytest.fixture(scope="session")
def application_url(database_url: str) -> str:
    """The worker's database, as the role of the service instead of the superuser that owns everything in tests."""
    url = make_url(database_url)
    server = create_engine(psycopg_url(_required("TEST_DATABASE_URL")))
    with server.begin() as conn:
        # Workers have databases of their own, and locks belong to a database.
        conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": template.ONE_AT_A_TIME})
        known = conn.execute(text("SELECT FROM pg_roles WHERE rolname = :name"), {"name": APPLICATION}).first()
        if known is None:
            conn.execute(text(f"CREATE ROLE {APPLICATION} LOGIN PASSWORD '{url.password}'"))
    server.dispose()
    owner = create_engine(url)
    with owner.begin() as conn:
        grant_to(conn, APPLICATION)
    owner.dispose()
    return url.set(username=APPLICATION).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def redis_url() -> str:
    return f"{_required('TEST_REDIS_URL').rstrip('/').rsplit('/', 1)[0]}/{worker_number()}"


@pytest.fixture
def environ() -> dict[str, Any]:
    """Additional settings. Tests override or parametrize this fixture."""
    return {}


@pytest.fixture
def settings(database_url: str, redis_url: str, environ: dict[str, Any]) -> Settings:
    values: dict[str, Any] = {"database_url": database_url, "redis_url": redis_url, "auth_secret": SECRET}
    return Settings(**(values | environ))


@pytest.fixture(scope="session")
def cleaner(database_url: str) -> Iterator[Engine]:
    """Kept open, because to connect takes longer than to clean. It pings first, as tests restart the server."""
    engine = create_engine(psycopg_url(database_url), pool_pre_ping=True)
    yield engine
    engine.dispose()


@pytest.fixture
def clean_stores(settings: Settings, cleaner: Engine) -> None:
    with cleaner.begin() as conn:
        cleaning.empty(conn)
        shipped_plans.install_shipped(conn)
    client = redis.Redis.from_url(settings.redis_url)
    client.flushdb()
    client.close()


@pytest.fixture(scope="session")
def kept_database(database_url: str) -> Iterator[KeptDatabase]:
    database = KeptDatabase(database_url, pool_size=POOL_SIZE)
    yield database
    database.end()


@pytest.fixture
def services(settings: Settings, clean_stores: None, kept_database: KeptDatabase) -> Iterator[Services]:
    if kept_database.suits(settings):
        built = services_on(kept_database, kept_database, settings, POOL_SIZE)
    else:
        built = build_services(settings, role="test", pool_size=POOL_SIZE)
    yield built
    built.close()


@pytest.fixture
def db(services: Services) -> Database:
    return services.db
