"""The figures of a month that coordinators look at while they work. The job `fairness_report` has more of them.

The reading has a time limit, because it runs in a process that answers requests. A month that takes longer is one for
the job.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import sqlalchemy.exc
from sqlalchemy import Connection

from app.db.bites import GAVE_UP
from app.foundation.errors import Unavailable
from app.jobs.reports.geohash import Cell, column_sql, row_sql
from app.jobs.reports.month_reading import IN_MONTH, PLANNED, MonthReading
from app.jobs.reports.report_month import Month
from app.jobs.reports.waiting import Waiting, waiting
from app.matching.contract import OfferState, TaskStatus

LIMIT_S = 3.0
PRECISION = 6
"""Letters of a cell's geohash. What retention forgets of places keeps these."""


class FiguresTooSlow(Unavailable):
    """The month has too many tasks to be counted while a caller waits. The job `fairness_report` counts them."""

    code = "figures_too_slow"
    retry_after_s = 60


@dataclass(frozen=True)
class DayOfAnswers:
    """Offers by the day on which they were made."""

    day: date
    asked: int
    accepted: int
    rejected: int
    expired: int


@dataclass(frozen=True)
class MonthFigures:
    month: Month
    computed_at: datetime
    tasks: Mapping[TaskStatus, int]
    to_accept: Mapping[date, Waiting]
    """By the day of the press."""
    waiting: Mapping[str, Waiting]
    """From the press until a student accepted, and until the student arrived."""
    unmet: Mapping[Cell, int]
    """Tasks that nobody took, by the cell of the elder's home."""
    load: Mapping[int, int]
    """Students by the number of tasks that they completed. Those without one are on duty now."""
    silence: Sequence[DayOfAnswers]


TASKS = "SELECT t.status, count(*) AS tasks FROM tasks t WHERE {which} GROUP BY 1"
# After OFFSET, PostgreSQL expects few different values, so it counts them in memory.
WAITED = """
SELECT day, arrived, date_part('epoch', took)::bigint AS seconds, count(*) AS tasks
  FROM (SELECT (t.created_at AT TIME ZONE :zone)::date AS day, arrived, (at - t.created_at)::interval(0) AS took
          FROM tasks t CROSS JOIN LATERAL (VALUES (false, t.assigned_at), (true, t.started_at)) moments (arrived, at)
         WHERE {which} AND at IS NOT NULL OFFSET 0) waited
 GROUP BY 1, 2, 3
"""
UNMET = """
SELECT {column} AS "column", {row} AS "row", count(*) AS tasks
  FROM (SELECT coalesce(u.home, t.location) AS place FROM tasks t JOIN users u ON u.id = t.elder_id
         WHERE {which} AND t.status = '{unmet}' OFFSET 0) placed
 GROUP BY 1, 2
"""
LOAD = """
SELECT coalesce(completed, 0) AS completed, count(*) AS students
  FROM (SELECT t.student_id, count(*) AS completed FROM tasks t
         WHERE {which} AND t.status = '{completed}' GROUP BY 1) done
  FULL JOIN (SELECT s.id AS student_id FROM students s WHERE s.active AND s.on_duty {students_of}) duty
 USING (student_id)
 GROUP BY 1
"""
SILENCE = """
SELECT (o.offered_at AT TIME ZONE :zone)::date AS day, o.state, count(*) AS offers
  FROM offers o WHERE {which} AND o.offered_at IS NOT NULL GROUP BY 1, 2 ORDER BY 1
"""


class MonthAtAGlance(MonthReading):
    """Each statement has its own snapshot, so that no figure is older than it must be; they may differ by a task."""

    begin = PLANNED

    def __init__(self, conn: Connection, month: Month, institution: int | None, limit_s: float = LIMIT_S) -> None:
        super().__init__(conn, month, institution)
        self._month = month
        self._ends_at = time.monotonic() + limit_s

    def read(self) -> MonthFigures:
        try:
            return self._read()
        except sqlalchemy.exc.OperationalError as error:
            if getattr(error.orig, "sqlstate", None) in GAVE_UP:
                raise FiguresTooSlow("This month takes too long to count; run the job fairness_report.") from error
            raise

    def _read(self) -> MonthFigures:
        which, zone = self._tasks(), self._month.time_zone
        now = self._in_time("SELECT clock_timestamp()").scalar_one()
        by_day, arrived = self._waited(which, zone)
        accepted = sum(by_day.values(), Counter[int]())
        return MonthFigures(
            month=self._month,
            tasks={TaskStatus(row.status): row.tasks for row in self._in_time(TASKS.format(which=which))},
            to_accept={day: waiting(seconds) for day, seconds in sorted(by_day.items())},
            waiting={"accept": waiting(accepted), "arrive": waiting(arrived)},
            unmet=self._unmet(which),
            load=self._load(which, is_over=self._month.ends <= now),
            silence=self._silence(which, zone),
            computed_at=now,
        )

    def _waited(self, which: str, zone: str) -> tuple[Mapping[date, Counter[int]], Counter[int]]:
        by_day, arrived = defaultdict[date, Counter[int]](Counter), Counter[int]()
        for row in self._in_time(WAITED.format(which=which), zone=zone):
            (arrived if row.arrived else by_day[row.day])[row.seconds] += row.tasks
        return by_day, arrived

    def _unmet(self, which: str) -> dict[Cell, int]:
        place = {"column": column_sql("place", PRECISION), "row": row_sql("place", PRECISION)}
        statement = UNMET.format(which=which, unmet=TaskStatus.TIMED_OUT, **place)
        return {Cell(PRECISION, row.column, row.row): row.tasks for row in self._in_time(statement)}

    def _load(self, which: str, *, is_over: bool) -> dict[int, int]:
        """Users are read only if they decide something, because there may be a million."""
        conditions = ["u.institution_id = :institution"] if self._institution is not None else []
        conditions += ["u.created_at < :ends"] if is_over else []
        students_of = (
            f"AND s.id IN (SELECT u.id FROM users u WHERE u.role = 'STUDENT' AND {' AND '.join(conditions)})"
            if conditions
            else ""
        )
        statement = LOAD.format(which=which, completed=TaskStatus.COMPLETED, students_of=students_of)
        return {row.completed: row.students for row in self._in_time(statement)}

    def _silence(self, which: str, zone: str) -> list[DayOfAnswers]:
        offers = IN_MONTH.format(id="o.task_id")
        if self._institution is not None:
            offers += f" AND o.task_id IN (SELECT t.id FROM tasks t WHERE {which})"
        days = defaultdict[date, Counter[OfferState]](Counter)
        for row in self._in_time(SILENCE.format(which=offers), zone=zone):
            days[row.day][OfferState(row.state)] += row.offers
        return [_day(day, states) for day, states in days.items()]

    def _in_time(self, statement: str, **values: Any) -> Any:
        left_ms = max(1, round((self._ends_at - time.monotonic()) * 1000))
        self.conn.exec_driver_sql(f"SET LOCAL statement_timeout = {left_ms}")
        return self._execute(statement, **values)


def _day(day: date, states: Counter[OfferState]) -> DayOfAnswers:
    """An offer that was accepted and released later was accepted."""
    accepted = states[OfferState.ACCEPTED] + states[OfferState.RELEASED]
    return DayOfAnswers(day, states.total(), accepted, states[OfferState.REJECTED], states[OfferState.EXPIRED])
