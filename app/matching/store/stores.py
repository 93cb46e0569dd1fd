"""The statements of matching. PostgreSQL is the truth.

The lock order of every transaction: first tasks by id, then students by id, all in one call. Rows that were read before
they were locked are read again under the lock. A write that decides something is conditional, and the rows that it
returns are the decision.
"""

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import Connection

from app.db.database import Database
from app.matching.store.accepts import AcceptStatements
from app.matching.store.assignable import AssignableStatements
from app.matching.store.board import BoardStatements
from app.matching.store.candidates import CandidateStatements
from app.matching.store.kept_values import KeptValueStatements
from app.matching.store.offers import OfferStatements
from app.matching.store.people import PeopleStatements
from app.matching.store.presses import PressStatements
from app.matching.store.staff_lists import StaffListStatements
from app.matching.store.student_map import StudentMapStatements
from app.matching.store.students import StudentStatements
from app.matching.store.sweep import SweepStatements
from app.matching.store.tasks import TaskStatements
from app.matching.store.views import ViewStatements


class Store(
    TaskStatements,
    OfferStatements,
    StudentStatements,
    CandidateStatements,
    PeopleStatements,
    PressStatements,
    AcceptStatements,
    SweepStatements,
    ViewStatements,
    BoardStatements,
    AssignableStatements,
    StaffListStatements,
    StudentMapStatements,
    KeptValueStatements,
):
    """All statements, on the connection of one transaction."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn


class Stores:
    def __init__(self, db: Database) -> None:
        self._db = db

    @contextmanager
    def transaction(self) -> Generator[Store]:
        with self._db.transaction() as conn:
            yield Store(conn)

    @contextmanager
    def reading(self) -> Generator[Store]:
        """For reads that need no common snapshot."""
        with self._db.reading() as conn:
            yield Store(conn)
