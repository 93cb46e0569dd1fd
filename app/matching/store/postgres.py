"""The store in PostgreSQL, which is the truth."""

from collections.abc import Generator
from contextlib import contextmanager

from app.db import Database
from app.matching.store.candidates import PostgresCandidates
from app.matching.store.offers import PostgresOffers
from app.matching.store.people import PostgresPeople
from app.matching.store.students import PostgresStudents
from app.matching.store.sweep import PostgresSweep
from app.matching.store.tasks import PostgresTasks
from app.matching.store.views import PostgresViews


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
