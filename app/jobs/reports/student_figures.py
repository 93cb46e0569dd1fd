"""Reads what a month's students were asked, answered and did. They are read in order, a few at a time."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from app.db.database import driver
from app.jobs.reports.month_reading import IN_MONTH, NOT_YET_COMPLETED, MonthReading
from app.matching.contract import OfferState

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


# One student after the other, so that only the month's part of each student's offers is read, and not all years.
ANSWERS = """
CREATE TEMPORARY TABLE report_answers ON COMMIT DROP AS
SELECT s.id AS student_id, answers.*
  FROM students s CROSS JOIN LATERAL (
    SELECT o.state, o.reason, count(*) AS offers FROM offers o WHERE o.student_id = s.id AND {which} GROUP BY 1, 2
  ) answers
"""
ANSWERED = """
SELECT state, CASE WHEN state = '{skipped}' THEN reason END AS reason, sum(offers)::bigint AS offers
  FROM report_answers GROUP BY 1, 2
"""
# Almost all tasks that a student holds are completed, so the others are counted, by their index, and subtracted: to
# count the completed ones reads every task of the month. The offer of the student who holds a task stays accepted.
NOT_COMPLETED = """
CREATE TEMPORARY TABLE report_not_completed ON COMMIT DROP AS
SELECT t.student_id, count(*) AS not_completed FROM tasks t
 WHERE {which} AND {not_completed} AND t.student_id IS NOT NULL GROUP BY 1
"""
# A student counts as available who was asked in the month, or is active and on duty now: past duty is not recorded.
STUDENTS = """
CREATE TEMPORARY TABLE report_students ON COMMIT DROP AS
SELECT student_id, coalesce(asked, 0)::bigint AS asked, coalesce(accepted, 0)::bigint AS accepted,
       coalesce(rejected, 0)::bigint AS rejected, coalesce(silent, 0)::bigint AS silent,
       coalesce(withdrawn, 0)::bigint AS withdrawn, coalesce(skipped, 0)::bigint AS skipped,
       (coalesce(held, 0) - coalesce(not_completed, 0))::bigint AS completed,
       coalesce(on_duty, false) OR coalesce(asked, 0) > 0 AS available
  FROM (SELECT student_id, sum(offers) FILTER (WHERE state <> '{S.SKIPPED}') AS asked,
               sum(offers) FILTER (WHERE state IN ('{S.ACCEPTED}', '{S.RELEASED}')) AS accepted,
               sum(offers) FILTER (WHERE state = '{S.ACCEPTED}') AS held,
               sum(offers) FILTER (WHERE state = '{S.REJECTED}') AS rejected,
               sum(offers) FILTER (WHERE state = '{S.EXPIRED}') AS silent,
               sum(offers) FILTER (WHERE state = '{S.WITHDRAWN}') AS withdrawn,
               sum(offers) FILTER (WHERE state = '{S.SKIPPED}') AS skipped
          FROM report_answers GROUP BY student_id) answers
  LEFT JOIN report_not_completed USING (student_id)
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


class StudentFigures(MonthReading):
    """Reads in the order of its methods: `read_…` makes the temporary tables that the others use."""

    def read_not_completed(self) -> None:
        self._execute(NOT_COMPLETED.format(which=self._tasks(), not_completed=NOT_YET_COMPLETED))

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
