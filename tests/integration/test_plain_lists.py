"""Lists arrive in PostgreSQL as the driver would send them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from app.db.database import Database

LISTS: list[tuple[str, list[Any]]] = [
    ("bigint", [1, -(2**62), None]),
    ("float8", [0.1, 1e-300, None, 3.0]),
    ("uuid", [UUID(int=7), None, UUID("01900003-0000-7000-8000-000000000162")]),
    ("text", ["a,b", 'q"u\\', "ş", "NULL", None]),
    ("boolean", [True, None, False]),
    ("timestamptz", [datetime(2026, 3, 12, 9, tzinfo=UTC), None, datetime(2026, 3, 12, 9, 0, 0, 123456, tzinfo=UTC)]),
    ("timestamptz", [datetime(2026, 3, 12, 9, tzinfo=ZoneInfo("Europe/Istanbul"))]),
    ("timestamp", [datetime(2026, 3, 12, 9, 0, 0, 123456), None]),  # noqa: DTZ001
    ("bigint", []),
    ("uuid", [None]),
]


@pytest.mark.parametrize(("kind", "values"), LISTS)
def test_list_arrives_as_it_was_sent(db: Database, kind: str, values: list[Any]) -> None:
    statement = text(f"SELECT CAST(:values AS {kind}[])")
    with db.reading() as conn:
        for _ in range(3):  # The driver prepares a statement that it runs again.
            assert conn.execute(statement, {"values": values}).scalar_one() == values


def test_type_of_the_elements_is_sent(db: Database) -> None:
    """Without a cast, the types of the parameters decide which operator is meant."""
    names = ["ids", "numbers", "shares", "times", "local_times"]
    statement = text(f"SELECT {', '.join(f'pg_typeof(:{name})::text' for name in names)}")
    moment = datetime(2026, 3, 12, 9, tzinfo=UTC)
    lists: list[list[Any]] = [[UUID(int=7)], [1], [0.5], [moment], [moment.replace(tzinfo=None)]]
    values = dict(zip(names, lists, strict=True))
    with db.reading() as conn:
        types = conn.execute(statement, values).one()
    assert tuple(types) == (
        "uuid[]",
        "bigint[]",
        "double precision[]",
        "timestamp with time zone[]",
        "timestamp without time zone[]",
    )
