"""Whom the removals of a run would hit, for a dry run."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

_REMOVED = text(
    """
    SELECT p.user_id FROM _changes c JOIN roster_people p ON p.identifier = c.identifier
     WHERE p.document_type = :document_type AND p.left_at IS NULL AND c.change_type = :removed
    """
)


def people_removed(conn: Connection, document_type: int, removed: int) -> Sequence[int]:
    """In the transaction of the run, when `_changes` is there. `removed` is the number of that type of change."""
    return conn.execute(_REMOVED, {"document_type": document_type, "removed": removed}).scalars().all()
