"""A database that accepts connections but does not answer: calls end at their time limit and work again later."""

import time
from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from app.db.database import Database, DatabaseUnavailable
from app.db.watchdog import answer_by
from app.settings.settings import Settings
from tests.support.silent_gate import SilentGate, silent_gate


@pytest.fixture
def gate(settings: Settings) -> Iterator[SilentGate]:
    url = make_url(settings.database_url)
    with silent_gate(url.host or "127.0.0.1", url.port or 5432) as made:
        yield made


@pytest.fixture
def frozen(settings: Settings, gate: SilentGate) -> Iterator[Database]:
    url = make_url(settings.database_url).set(host="127.0.0.1", port=gate.port)
    database = Database(url.render_as_string(hide_password=False), pool_size=2, call_limit_s=0.5, connect_timeout_s=1)
    yield database
    gate.speak()
    database.close()


def seconds_of_a_failing_call(database: Database) -> float:
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable), database.transaction() as conn:
        conn.execute(text("SELECT 1"))
    return time.monotonic() - began


def test_statement_without_an_answer_is_ended_and_the_next_one_works(frozen: Database, gate: SilentGate) -> None:
    frozen.now()
    with pytest.raises(DatabaseUnavailable), frozen.transaction() as conn:
        conn.execute(text("SELECT 1"))
        gate.fall_silent()
        conn.execute(text("SELECT 2"))
    assert seconds_of_a_failing_call(frozen) < 10, "a new connection waited longer than its limit"
    gate.speak()
    assert frozen.now() is not None


def test_commit_without_an_answer_is_ended(frozen: Database, gate: SilentGate) -> None:
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable), frozen.transaction() as conn:
        conn.execute(text("SELECT 1"))
        gate.fall_silent()
    assert time.monotonic() - began < 10


def test_dead_idle_connection_is_replaced(frozen: Database, settings: Settings) -> None:
    with frozen.transaction() as conn:
        pid = conn.execute(text("SELECT pg_backend_pid()")).scalar_one()
        record = conn.connection
        assert record is not None
    other = Database(settings.database_url, pool_size=1)
    with other.transaction() as conn:
        conn.execute(text("SELECT pg_terminate_backend(CAST(:pid AS int))"), {"pid": pid})
    other.close()
    for pooled in frozen.engine.pool._pool.queue:  # pyright: ignore
        pooled.info["idle_since"] = 0.0
    assert frozen.now() is not None


def test_request_past_its_time_limit_starts_no_statement(frozen: Database) -> None:
    token = answer_by.set(time.monotonic() - 1)
    try:
        with pytest.raises(DatabaseUnavailable):
            frozen.now()
    finally:
        answer_by.reset(token)
    assert frozen.now() is not None
