"""Every test here ends with a look at the promises, whatever it was about."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from app.bootstrap import Services
from app.db import Database
from tests.support.matching import Neighbourhood, broken_promises


@pytest.fixture
def town(services: Services) -> Iterator[Neighbourhood]:
    built = Neighbourhood(services)
    yield built
    built.close()


@pytest.fixture(autouse=True)
def promises_hold(services: Services) -> Iterator[None]:
    before = _deadlocks(services.db)
    yield
    with services.db.transaction() as conn:
        assert broken_promises(conn) == {}
    assert _deadlocks(services.db) == before, "transactions deadlocked"


def _deadlocks(db: Database) -> int:
    # PostgreSQL's processes report what they counted when they end, at the latest.
    db.engine.dispose()
    with db.transaction() as conn:
        counted = conn.execute(text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))
        return counted.scalar_one()
