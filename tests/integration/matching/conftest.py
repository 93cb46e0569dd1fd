"""Every test here ends with a look at the promises, whatever it was about."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.db.database import Database
from tests.support.matching import Neighbourhood, broken_promises


@pytest.fixture
def town(services: Services) -> Iterator[Neighbourhood]:
    built = Neighbourhood(services)
    yield built
    built.close()


@pytest.fixture
def broken_on_purpose() -> set[str]:
    """Tests override this where keeping a promise is not the service's to decide."""
    return set()


@pytest.fixture(autouse=True)
def promises_hold(services: Services, broken_on_purpose: set[str]) -> Iterator[None]:
    before = _deadlocks(services.db)
    yield
    with services.db.transaction() as conn:
        broken = broken_promises(conn)
    assert {name: rows for name, rows in broken.items() if name not in broken_on_purpose} == {}
    assert _deadlocks(services.db) == before, "transactions deadlocked"


def _deadlocks(db: Database) -> int:
    # PostgreSQL's processes report what they counted when they end, at the latest.
    db.engine.dispose()
    with db.transaction() as conn:
        counted = conn.execute(text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))
        return counted.scalar_one()
