"""Reads a month's tasks: outcomes, neighbourhoods and waiting times."""

from collections import Counter
from collections.abc import Iterator

from app.jobs.reports.geohash import Cell, column_sql, row_sql
from app.jobs.reports.month_reading import NOT_YET_COMPLETED, MonthReading
from app.jobs.reports.neighbourhoods import Need
from app.matching.contract import TaskStatus

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

# Both in one pass. After OFFSET, PostgreSQL expects few different values, so it counts them in memory; for the
# expressions themselves it expects one value for each task, and would sort them.
MOMENTS = ("accept", "arrive")
WAITING = """
SELECT grouping(accept) AS moment, date_part('epoch', coalesce(accept, arrive))::bigint AS seconds, count(*) AS tasks
  FROM (SELECT (t.assigned_at - t.created_at)::interval(0) AS accept,
               (t.started_at - t.created_at)::interval(0) AS arrive
          FROM tasks t WHERE {which} OFFSET 0) waited
 GROUP BY GROUPING SETS ((accept), (arrive))
HAVING coalesce(accept, arrive) IS NOT NULL
"""


class TaskFigures(MonthReading):
    """Reads in the order of its methods: `read_elders` makes the table that the others use."""

    def read_elders(self) -> None:
        states = {"unmet": TaskStatus.TIMED_OUT, "cancelled": TaskStatus.CANCELLED}
        self._execute(ELDERS.format(which=self._tasks(), **states))

    def outcomes(self) -> dict[TaskStatus, int]:
        statement = OUTCOMES.format(which=self._tasks(), not_completed=NOT_YET_COMPLETED)
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
        found: dict[str, Counter[int]] = {moment: Counter() for moment in MOMENTS}
        for row in self._execute(WAITING.format(which=self._tasks())):
            found[MOMENTS[row.moment]][row.seconds] = row.tasks
        return found
