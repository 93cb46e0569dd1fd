"""The base class of all statements."""

from sqlalchemy import Connection


class Connected:
    conn: Connection
    """Set by `Store`."""
