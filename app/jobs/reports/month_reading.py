"""What the readings of tasks and of students have in common.

Everything is aggregated in the database. What has a row for each student or elder stays there in temporary tables.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlalchemy import Connection, text

from app.db.database import driver
from app.db.schema import one_of
from app.jobs.reports.report_month import Month
from app.matching.contract import TaskStatus

# A report may take its time, and one of its readings waits for the other. Two at a time keep two processors busy;
# parallel workers would each fill tables of their own, which do not fit into the caches together. A whole month of an
# index is read in order, so its pages cost no more than those of the table, which is several times as large. To compile
# the expressions would cost more than it saves.
PLANNED = (
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL work_mem = '64MB'",
    "SET LOCAL jit = off",
    "SET LOCAL random_page_cost = 1",
)
BEGIN = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    *PLANNED,
    "SET LOCAL idle_in_transaction_session_timeout = '10min'",
    "SET LOCAL statement_timeout = '10min'",
)

IN_MONTH = "{id} >= :first AND {id} < :after"
NOT_YET_COMPLETED = one_of("t.status", [status for status in TaskStatus if status is not TaskStatus.COMPLETED])
OF_INSTITUTION = "{elder} IN (SELECT id FROM users WHERE institution_id = :institution)"


class MonthReading:
    """One transaction. Those with the same snapshot agree with each other."""

    begin: ClassVar[Sequence[str]] = BEGIN

    def __init__(self, conn: Connection, month: Month, institution: int | None, snapshot: str | None = None) -> None:
        self.conn = conn
        self._first, self._after = month.ids
        self._ends = month.ends
        self._institution = institution
        for statement in self.begin:
            conn.execute(text(statement))
        if snapshot is not None:
            conn.execute(text(f"SET TRANSACTION SNAPSHOT '{snapshot}'"))

    def snapshot(self) -> str:
        return self.conn.execute(text("SELECT pg_export_snapshot()")).scalar_one()

    def cancel(self) -> None:
        """Ends the statement that another thread waits for."""
        driver(self.conn).cancel()

    def _tasks(self) -> str:
        which = IN_MONTH.format(id="t.id")
        return which if self._institution is None else f"{which} AND {OF_INSTITUTION.format(elder='t.elder_id')}"

    def _execute(self, statement: str, **values: Any) -> Any:
        known = {"first": self._first, "after": self._after, "ends": self._ends, "institution": self._institution}
        named = {name: value for name, value in known.items() if f":{name}" in statement}
        return self.conn.execute(text(statement), named | values)
