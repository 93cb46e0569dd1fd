"""Each test of matching ends with a check of the promises."""

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg.errors import DeadlockDetected
from sqlalchemy import Engine, event, text
from sqlalchemy.engine import ExceptionContext

from app.api.services import Services
from app.db.database import Database
from tests.support.matching import NO_LIMITS, Neighbourhood, broken_promises


@pytest.fixture
def environ() -> dict[str, Any]:
    return dict(NO_LIMITS)


@pytest.fixture
def town(services: Services) -> Iterator[Neighbourhood]:
    built = Neighbourhood(services)
    yield built
    built.close()


@pytest.fixture
def broken_on_purpose() -> set[str]:
    """Names of promises that the test itself breaks. Tests override this."""
    return set()


@pytest.fixture(scope="session")
def deadlocks() -> Iterator[list[BaseException]]:
    """The deadlocks that any engine of this process has met."""
    met: list[BaseException] = []

    def note(context: ExceptionContext) -> None:
        if isinstance(context.original_exception, DeadlockDetected):
            met.append(context.original_exception)

    event.listen(Engine, "handle_error", note)
    yield met
    event.remove(Engine, "handle_error", note)


@pytest.fixture(autouse=True)
def promises_hold(services: Services, broken_on_purpose: set[str], deadlocks: list[BaseException]) -> Iterator[None]:
    before = _deadlocks_of_processes(services.db)
    deadlocks.clear()
    yield
    with services.db.transaction() as conn:
        broken = broken_promises(conn)
    assert {name: rows for name, rows in broken.items() if name not in broken_on_purpose} == {}
    assert deadlocks == [], "transactions deadlocked"
    assert _deadlocks_of_processes(services.db) == before, "transactions of another process deadlocked"


def _deadlocks_of_processes(db: Database) -> int:
    """The count of PostgreSQL, without our own open connections: a server process reports when it ends."""
    with db.transaction() as conn:
        counted = conn.execute(text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))
        return counted.scalar_one()
