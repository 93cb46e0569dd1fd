"""A database that forgets what a request did."""

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import Connection

from app.db.database import Database


class RolledBackDatabase(Database):
    """Between `begin` and its end, all transactions are savepoints of one that is rolled back."""

    def __init__(self, db: Database) -> None:
        self.engine = db.engine
        self._db = db
        self._conn: Connection | None = None

    @contextmanager
    def undone(self) -> Generator[None]:
        with self.engine.connect() as conn:
            outer = conn.begin()
            self._conn = conn
            try:
                yield
            finally:
                self._conn = None
                outer.rollback()

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        if self._conn is None:
            with self._db.transaction() as conn:
                yield conn
        else:
            with self._conn.begin_nested():
                yield self._conn

    @contextmanager
    def reading(self) -> Generator[Connection]:
        with self.transaction() as conn:
            yield conn

    def close(self) -> None:
        self._db.close()
