"""The base class of all statements."""

from sqlalchemy import Connection


class Connected:
    def __init__(self, conn: Connection) -> None:
        self.conn = conn
