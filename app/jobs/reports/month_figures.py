"""Reads a month's figures from PostgreSQL, in few passes over the tasks and one over the offers.

Everything is aggregated in the database. What has a row for each student or elder stays there in temporary tables, and
students are read in order, a few at a time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.db.database import driver
from app.db.schema import one_of
from app.jobs.reports.geohash import Cell, column_sql, row_sql
from app.jobs.reports.neighbourhoods import Need
from app.jobs.reports.report_month import Month
from app.matching.contract import OfferState, TaskStatus

STUDENTS_AT_ONCE = 5_000


class StudentLoad(NamedTuple):
    student_id: int
    asked: int
    accepted: int
    rejected: int
    silent: int
    withdrawn: int
    skipped: int
    completed: int

    @property
    def answered_or_silent(self) -> int:
        """The offers that ran to an end. Those that were withdrawn or are still live are neither answered nor
        silent."""
        return self.accepted + self.rejected + self.silent

    @property
    def silence_share(self) -> float | None:
        ended = self.answered_or_silent
        return self.silent / ended if ended else None


@dataclass(frozen=True)
class Answers:
    offers: Mapping[OfferState, int]
    skipped: Mapping[str, int]
    """By reason."""


# One snapshot for all passes, so that the figures agree with each other. The role of an API call has no parallel
# workers; a report is alone on its connection and may use them. A whole month of an index is read in order, so its
# pages cost no more than those of the table, which is several times as large. To compile the expressions would cost
# more than it saves.
BEGIN = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET LOCAL max_parallel_workers_per_gather = 2",
    "SET LOCAL work_mem = '64MB'",
    "SET LOCAL jit = off",
    "SET LOCAL random_page_cost = 1",
    "SET LOCAL idle_in_transaction_session_timeout = '60s'",
    "SET LOCAL statement_timeout = '10min'",
)

IN_MONTH = "{id} >= :first AND {id} < :after"
OF_INSTITUTION = "{elder} IN (SELECT id FROM users WHERE institution_id = :institution)"

ANSWERS = """
CREATE TEMPORARY TABLE report_answers ON COMMIT DROP AS
SELECT o.student_id, o.state, o.reason, count(*) AS offers FROM offers o WHERE {which} GROUP BY 1, 2, 3
"""
ANSWERED = """
SELECT state, CASE WHEN state = '{skipped}' THEN reason END AS reason, sum(offers)::bigint AS offers
  FROM report_answers GROUP BY 1, 2
"""
COMPLETED = """
CREATE TEMPORARY TABLE report_completed ON COMMIT DROP AS
SELECT t.student_id, count(*) AS completed FROM tasks t
 WHERE {which} AND t.status = '{completed}' AND t.student_id IS NOT NULL GROUP BY 1
"""
ELDERS = """
CREATE TEMPORARY TABLE report_elders ON COMMIT DROP AS
SELECT t.elder_id, count(*) AS tasks, count(*) FILTER (WHERE t.status = '{unmet}') AS unmet,
       count(*) FILTER (WHERE t.status = '{cancelled}') AS cancelled
  FROM tasks t WHERE {which} GROUP BY 1
"""
# Almost all tasks are completed, so the others are counted, by their index, and subtracted.
OUTCOMES = """
SELECT t.status, count(*) AS tasks FROM tasks t WHERE {which} AND {not_completed} GROUP BY 1
UNION ALL SELECT 'ALL', coalesce(sum(tasks), 0)::bigint FROM report_elders
"""

# Each elder is counted in one cell, that of the home. To compute the cell of every task would take longer than all the
# rest, so the place of a task is read only if there is no home.
CELLS = """
SELECT {column} AS "column", {row} AS "row", count(*) AS elders, sum(tasks)::bigint AS tasks,
       sum(unmet)::bigint AS unmet, sum(cancelled)::bigint AS cancelled
  FROM (SELECT coalesce(u.home, (SELECT t.location FROM tasks t
                                  WHERE t.elder_id = e.elder_id AND t.id >= :first AND t.id < :after
                                  ORDER BY t.elder_id DESC, t.id DESC LIMIT 1)) AS place, tasks, unmet, cancelled
          FROM report_elders e JOIN users u ON u.id = e.elder_id
        OFFSET 0) placed
 GROUP BY 1, 2
"""

# One column of a UNION, for which PostgreSQL expects few different values, so that its parallel workers count. For the
# expression itself it expects one value for each task. Numbers and intervals are compared faster than texts.
MOMENTS = {"accept": "assigned_at", "arrive": "started_at"}
WAITED = """
SELECT {number} AS kind, (t.{moment} - t.created_at)::interval(0) AS waited
  FROM tasks t WHERE {which} AND t.{moment} IS NOT NULL
"""
WAITING = """
SELECT kind, date_part('epoch', waited)::bigint AS seconds, count(*) AS tasks
  FROM ({waited}) moments GROUP BY kind, waited
"""

# A student counts as available who was asked in the month, or is active and on duty now: past duty is not recorded.
STUDENTS = """
CREATE TEMPORARY TABLE report_students ON COMMIT DROP AS
SELECT student_id, coalesce(asked, 0)::bigint AS asked, coalesce(accepted, 0)::bigint AS accepted,
       coalesce(rejected, 0)::bigint AS rejected, coalesce(silent, 0)::bigint AS silent,
       coalesce(withdrawn, 0)::bigint AS withdrawn, coalesce(skipped, 0)::bigint AS skipped,
       coalesce(completed, 0)::bigint AS completed,
       coalesce(on_duty, false) OR coalesce(asked, 0) > 0 OR completed IS NOT NULL AS available
  FROM (SELECT student_id, sum(offers) FILTER (WHERE state <> '{S.SKIPPED}') AS asked,
               sum(offers) FILTER (WHERE state IN ('{S.ACCEPTED}', '{S.RELEASED}')) AS accepted,
               sum(offers) FILTER (WHERE state = '{S.REJECTED}') AS rejected,
               sum(offers) FILTER (WHERE state = '{S.EXPIRED}') AS silent,
               sum(offers) FILTER (WHERE state = '{S.WITHDRAWN}') AS withdrawn,
               sum(offers) FILTER (WHERE state = '{S.SKIPPED}') AS skipped
          FROM report_answers GROUP BY student_id) answers
  FULL JOIN report_completed USING (student_id)
  FULL JOIN (SELECT s.id AS student_id, true AS on_duty FROM students s JOIN users u USING (id)
              WHERE s.active AND s.on_duty AND u.created_at < :ends {students_of}) duty USING (student_id)
"""
LOADS = "SELECT {column} AS load, count(*) AS students FROM report_students WHERE {whom} GROUP BY 1"
SILENCE = """
SELECT least(silent * 10 / (accepted + rejected + silent), 9) AS tenth, count(*) AS students
  FROM report_students WHERE accepted + rejected + silent > 0 GROUP BY 1
"""
BUSIEST = """
SELECT {columns} FROM report_students WHERE asked > 0 ORDER BY asked DESC, student_id LIMIT :most
"""
ALL = "SELECT {columns} FROM report_students ORDER BY student_id"
STUDENT_COLUMNS = ", ".join(StudentLoad._fields)


class MonthFigures:
    """Reads in the order of its methods: `read_…` makes the temporary tables that the others use."""

    def __init__(self, conn: Connection, month: Month, institution: int | None) -> None:
        self.conn = conn
        self._first, self._after = month.ids
        self._ends = month.ends
        self._institution = institution
        for statement in BEGIN:
            conn.execute(text(statement))

    # ---- tasks ----

    def read_elders(self) -> None:
        states = {"unmet": TaskStatus.TIMED_OUT, "cancelled": TaskStatus.CANCELLED}
        self._execute(ELDERS.format(which=self._tasks(), **states))

    def outcomes(self) -> dict[TaskStatus, int]:
        others = [status for status in TaskStatus if status is not TaskStatus.COMPLETED]
        statement = OUTCOMES.format(which=self._tasks(), not_completed=one_of("t.status", others))
        found = {row.status: row.tasks for row in self._execute(statement)}
        outcomes = {status: found.get(status, 0) for status in TaskStatus}
        outcomes[TaskStatus.COMPLETED] = found["ALL"] - sum(outcomes.values())
        return outcomes

    def cells(self, precision: int) -> Iterator[tuple[Cell, Need]]:
        place = {"column": column_sql("place", precision), "row": row_sql("place", precision)}
        for row in self._execute(CELLS.format(**place)):
            yield Cell(precision, row.column, row.row), Need(row.elders, row.tasks, row.unmet, row.cancelled)

    def waiting(self) -> dict[str, Counter[int]]:
        """The number of tasks by seconds from the press until a student accepted, and until the student arrived."""
        kinds, which = list(MOMENTS), self._tasks()
        found: dict[str, Counter[int]] = {kind: Counter() for kind in kinds}
        waited = [WAITED.format(number=kinds.index(kind), moment=MOMENTS[kind], which=which) for kind in kinds]
        for row in self._execute(WAITING.format(waited=" UNION ALL ".join(waited))):
            found[kinds[row.kind]][row.seconds] = row.tasks
        return found

    # ---- students ----

    def read_completed(self) -> None:
        self._execute(COMPLETED.format(which=self._tasks(), completed=TaskStatus.COMPLETED))

    def read_answers(self) -> None:
        which = IN_MONTH.format(id="o.task_id")
        if self._institution is not None:
            which += f" AND o.task_id IN (SELECT t.id FROM tasks t WHERE {self._tasks()})"
        self._execute(ANSWERS.format(which=which))

    def answers(self) -> Answers:
        offers = Counter[OfferState](dict.fromkeys(OfferState, 0))
        skipped = Counter[str]()
        for row in self._execute(ANSWERED.format(skipped=OfferState.SKIPPED)):
            offers[OfferState(row.state)] += row.offers
            if row.state == OfferState.SKIPPED:
                skipped[row.reason or ""] += row.offers
        return Answers(offers, skipped)

    def read_students(self) -> None:
        students_of = "" if self._institution is None else "AND u.institution_id = :institution"
        self._execute(STUDENTS.format(S=OfferState, students_of=students_of))

    def loads(self, column: str, *, asked: bool = False) -> dict[int, int]:
        """The number of available students by `asked`, `accepted` or `completed`; with `asked`, of those who were asked
        at least once."""
        statement = LOADS.format(column=column, whom="asked > 0" if asked else "available")
        return {row.load: row.students for row in self._execute(statement)}

    def silence(self) -> dict[int, int]:
        """The number of students by tenths of the share of their offers that they did not answer."""
        return {row.tenth: row.students for row in self._execute(SILENCE)}

    def busiest(self, most: int) -> list[StudentLoad]:
        rows = self._execute(BUSIEST.format(columns=STUDENT_COLUMNS), most=most)
        return [StudentLoad._make(row) for row in rows]

    def students(self) -> Iterator[StudentLoad]:
        """Everybody who was asked, skipped or available, in the order of their ids."""
        with driver(self.conn).cursor(name="report_students") as cursor:
            cursor.itersize = STUDENTS_AT_ONCE
            cursor.execute(ALL.format(columns=STUDENT_COLUMNS))
            yield from map(StudentLoad._make, cursor)

    # ---- helpers ----

    def _tasks(self) -> str:
        which = IN_MONTH.format(id="t.id")
        return which if self._institution is None else f"{which} AND {OF_INSTITUTION.format(elder='t.elder_id')}"

    def _execute(self, statement: str, **values: Any) -> Any:
        known = {"first": self._first, "after": self._after, "ends": self._ends, "institution": self._institution}
        named = {name: value for name, value in known.items() if f":{name}" in statement}
        return self.conn.execute(text(statement), named | values)
