"""Real stores for whoever asks for them: one database and one Redis database for each test worker."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from app.api.services import Services
from app.bootstrap.services import build_services
from app.cli.migrate import upgrade
from app.db.database import Database, psycopg_url
from app.delivery.plans import shipped
from app.settings.settings import Settings

SECRET = "a-secret-for-tests-that-is-long-enough-0123456789"


def worker_number() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def _required(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        pytest.exit(f"{variable} is not set: run scripts/test, which starts the stores the tests need.", returncode=2)
    return value


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """A freshly migrated database of this worker's own."""
    server = make_url(psycopg_url(_required("TEST_DATABASE_URL")))
    name = f"yaninda_test_{worker_number()}_{os.getpid()}"
    maintenance = create_engine(server, isolation_level="AUTOCOMMIT")
    with maintenance.connect() as conn:
        conn.execute(text(f'CREATE DATABASE "{name}" TEMPLATE template0'))
    url = server.set(database=name, drivername="postgresql").render_as_string(hide_password=False)
    engine = create_engine(psycopg_url(url))
    upgrade(engine)
    engine.dispose()
    yield url
    with maintenance.connect() as conn:
        conn.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    maintenance.dispose()


@pytest.fixture(scope="session")
def redis_url() -> str:
    return f"{_required('TEST_REDIS_URL').rstrip('/').rsplit('/', 1)[0]}/{worker_number()}"


@pytest.fixture
def environ() -> dict[str, Any]:
    """Tests override this fixture, or parametrize it, to run with other settings."""
    return {}


@pytest.fixture
def settings(database_url: str, redis_url: str, environ: dict[str, Any]) -> Settings:
    values: dict[str, Any] = {"database_url": database_url, "redis_url": redis_url, "auth_secret": SECRET}
    return Settings(**(values | environ))


@pytest.fixture
def clean_stores(settings: Settings) -> None:
    engine = create_engine(psycopg_url(settings.database_url))
    with engine.begin() as conn:
        tables = conn.execute(
            text(
                "SELECT string_agg(quote_ident(relname), ', ') FROM pg_class WHERE relkind = 'r'"
                " AND relnamespace = 'public'::regnamespace AND relname NOT IN ('spatial_ref_sys', 'alembic_version')"
            )
        ).scalar_one()
        conn.execute(text(f"TRUNCATE {tables} RESTART IDENTITY CASCADE"))
        shipped.install_shipped(conn)
    engine.dispose()
    client = redis.Redis.from_url(settings.redis_url)
    client.flushdb()
    client.close()


@pytest.fixture
def services(settings: Settings, clean_stores: None) -> Iterator[Services]:
    built = build_services(settings, role="test", pool_size=60)
    yield built
    built.close()


@pytest.fixture
def db(services: Services) -> Database:
    return services.db
