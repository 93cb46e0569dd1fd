"""The store in PostgreSQL, which is the truth."""

from collections.abc import Generator
from contextlib import contextmanager

from app.db.database import Database
from app.matching.store.postgres.candidates import PostgresCandidates
from app.matching.store.postgres.offers import PostgresOffers
from app.matching.store.postgres.people import PostgresPeople
from app.matching.store.postgres.students import PostgresStudents
from app.matching.store.postgres.sweep import PostgresSweep
from app.matching.store.postgres.tasks import PostgresTasks
from app.matching.store.postgres.views import PostgresViews


class PostgresStore(
    PostgresTasks,
    PostgresOffers,
    PostgresStudents,
    PostgresCandidates,
    PostgresPeople,
    PostgresSweep,
    PostgresViews,
):
    """All statements, on one connection."""


class PostgresStores:
    def __init__(self, db: Database) -> None:
        self._db = db

    @contextmanager
    def transaction(self) -> Generator[PostgresStore]:
        with self._db.transaction() as conn:
            yield PostgresStore(conn)

    @contextmanager
    def reading(self) -> Generator[PostgresStore]:
        with self._db.reading() as conn:
            yield PostgresStore(conn)
