"""Records at the driver the statements that the application sends to PostgreSQL."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from app.db import plain_statements

COMMIT = "COMMIT"


@dataclass(frozen=True)
class SentStatement:
    statement: str
    values: Mapping[str, Any]
    autocommitted: bool = False
    """Whether it ran outside of a transaction, autocommitted."""


@contextmanager
def captured() -> Iterator[list[SentStatement]]:
    """The statements of this thread in order, with `COMMIT` at the end of each transaction.

    Without those that have no parameters: the checks of the pool, which other implementations do not need."""
    taken: list[SentStatement] = []
    thread = threading.get_ident()
    execute: Any = psycopg.Cursor.execute
    commit = psycopg.Connection.commit
    find_prepared = plain_statements.find_prepared

    def execute_and_record(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        if threading.get_ident() == thread and isinstance(query, str) and params:
            taken.append(SentStatement(query, dict(params), self.connection.autocommit))
        return execute(self, query, params, **options)

    def commit_and_record(self: Any) -> None:
        if threading.get_ident() == thread and taken and taken[-1].statement != COMMIT and not taken[-1].autocommitted:
            taken.append(SentStatement(COMMIT, {}))
        commit(self)

    # Prepared statements would go past the cursor.
    plain_statements.find_prepared = lambda *_, **__: None
    psycopg.Cursor.execute = execute_and_record  # type: ignore[method-assign]
    psycopg.Connection.commit = commit_and_record  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        plain_statements.find_prepared = find_prepared
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]
        psycopg.Connection.commit = commit  # type: ignore[method-assign]
