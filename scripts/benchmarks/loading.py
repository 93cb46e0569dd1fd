"""Filling tables faster than rows would come in by themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.bench import Connection, fetch, run

PLAIN_INDEXES = """
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
FROM pg_index i
WHERE i.indrelid = ANY(%s::regclass[]) AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""


@contextmanager
def without_indexes(conn: Connection, *tables: str) -> Iterator[None]:
    """Indexes are built once, when everything is there; what is generated does not need its foreign keys checked."""
    indexes = fetch(conn, PLAIN_INDEXES, [list(tables)])
    for name, _ in indexes:
        run(conn, f"DROP INDEX {name}")
    run(conn, "SET session_replication_role = replica")
    run(conn, "SET synchronous_commit = off")
    yield
    run(conn, "RESET session_replication_role")
    run(conn, "RESET synchronous_commit")
    for _, definition in indexes:
        run(conn, definition)
