"""Makes bulk inserts of generated rows fast."""

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
    """Builds indexes once, after the block, and skips checks of foreign keys, which generated rows satisfy."""
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
