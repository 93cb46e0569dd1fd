"""What the roster knows of a person besides the list of the publisher, and how it is forgotten."""

from sqlalchemy import Connection, text

_ROWS = text(
    """
    SELECT count(*) FROM roster_people p JOIN roster_rows r USING (document_type, identifier) WHERE p.user_id = :id
    """
)
_UNBIND = text("DELETE FROM roster_people WHERE user_id = :id")


def count_listed_rows(conn: Connection, user_id: int) -> int:
    """The rows stay: they are the publisher's list, and the next list brings them again."""
    return conn.execute(_ROWS, {"id": user_id}).scalar_one()


def unbind_person(conn: Connection, user_id: int) -> int:
    """Afterwards a list that names the person has nobody to change, and a change of their row makes a new user. Call it
    when the user's row is locked: whoever brings a person to the list locks that first."""
    return conn.execute(_UNBIND, {"id": user_id}).rowcount
