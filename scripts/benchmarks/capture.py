"""What the application really sends to PostgreSQL, taken down at the driver."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

COMMIT = "COMMIT"


@dataclass(frozen=True)
class Sent:
    statement: str
    values: Mapping[str, Any]
    alone: bool = False
    """Outside of any transaction."""


@contextmanager
def captured() -> Iterator[list[Sent]]:
    """Statements of this thread in order, with `COMMIT` at the end of each transaction. The pool's questions whether
    a connection is still alive are left out: they are ours alone."""
    taken: list[Sent] = []
    thread = threading.get_ident()
    execute, commit = psycopg.Cursor.execute, psycopg.Connection.commit

    def execute_and_note(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        if threading.get_ident() == thread and isinstance(query, str) and params:
            taken.append(Sent(query, dict(params), self.connection.autocommit))
        return execute(self, query, params, **options)

    def commit_and_note(self: Any) -> None:
        if threading.get_ident() == thread and taken and taken[-1].statement != COMMIT and not taken[-1].alone:
            taken.append(Sent(COMMIT, {}))
        commit(self)

    psycopg.Cursor.execute = execute_and_note  # type: ignore[method-assign]
    psycopg.Connection.commit = commit_and_note  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]
        psycopg.Connection.commit = commit  # type: ignore[method-assign]
