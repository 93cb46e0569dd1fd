"""Asks the questions of a live copy. Reads only, locks nothing, and gives up on a question that takes too long."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping, text

from app.db.database import Database, DatabaseUnavailable, limit_statements
from app.foundation.ids import earliest_id
from app.jobs.checks.promises import AskedPeriod, Promise, Question
from app.jobs.checks.questions_of_any_moment import AT_ANY_MOMENT
from app.jobs.checks.questions_of_history import OF_HISTORY
from app.jobs.checks.questions_of_lateness import OVERDUE
from app.jobs.checks.questions_of_roster import OF_ROSTER

QUESTIONS = (*AT_ANY_MOMENT, *OF_ROSTER, *OVERDUE, *OF_HISTORY)
STATEMENT_TIMED_OUT, LOCK_TIMED_OUT = "57014", "55P03"
"""SQLSTATEs. A question waits for a lock only while somebody changes the table itself."""
WORK_MEM = "128MB"
"""So that the offers of a week are sorted without a file. Only one question runs at a time."""

Example = dict[str, Any]


@dataclass(frozen=True)
class PromiseAnswer:
    name: str
    promise: Promise
    violations: int | None
    """None if the question was not answered."""
    examples: Sequence[Example]
    means: str
    advice: str
    unanswered: str | None = None

    @property
    def ok(self) -> bool:
        return self.violations == 0

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def ask(db: Database, question: Question, scope: AskedPeriod, *, examples: int, timeout_s: float) -> PromiseAnswer:
    """Each question reads one snapshot of its own, which is given up at once: a long transaction would keep vacuum from
    removing dead rows."""
    try:
        with one_snapshot(db, timeout_s) as conn:
            count, shown = violations(conn, question, scope.values, examples)
    except DatabaseUnavailable as error:
        if getattr(getattr(error.__cause__, "orig", None), "sqlstate", None) not in (
            STATEMENT_TIMED_OUT,
            LOCK_TIMED_OUT,
        ):
            raise
        unanswered = f"No answer within {timeout_s:g} s. Ask for a shorter period, or allow more time."
        return _answer(question, None, [], unanswered)
    return _answer(question, count, shown)


def _answer(
    question: Question, count: int | None, shown: Sequence[Example], unanswered: str | None = None
) -> PromiseAnswer:
    return PromiseAnswer(question.name, question.promise, count, shown, question.means, question.advice, unanswered)


def violations(conn: Connection, question: Question, values: Mapping[str, Any], most: int) -> tuple[int, list[Example]]:
    """The number of violations, and the ids of the first of them."""
    statement = f"SELECT q.*, count(*) OVER () AS violations FROM ({question.sql}) q LIMIT :most"
    rows = conn.execute(text(statement), {**values, "most": most}).mappings().all()
    return (rows[0]["violations"] if rows else 0), [_ids(row) for row in rows]


def _ids(row: RowMapping) -> Example:
    return {
        str(name): str(value) if isinstance(value, UUID) else value
        for name, value in row.items()
        if str(name).endswith("_id") and value is not None
    }


@contextmanager
def one_snapshot(db: Database, timeout_s: float) -> Generator[Connection]:
    with db.transaction() as conn:
        conn.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        limit_statements(conn, timeout_s)
        conn.execute(text("SELECT set_config('work_mem', :amount, true)"), {"amount": WORK_MEM})
        yield conn


# Retention forgets actions earlier than tasks, so the notices of a task that is older than all actions are unknown.
# Without actions everything is asked, because an incident may have lost all of them.
_OLDEST_ACTION = text("""
SELECT id AS action_id, id_time - task_time > interval '1 hour' AS forgotten
FROM (SELECT id, created_at AS id_time, (SELECT created_at FROM tasks ORDER BY id LIMIT 1) AS task_time
      FROM actions ORDER BY id LIMIT 1) oldest
""")


def noticed_since(db: Database, since: UUID) -> UUID:
    with db.reading() as conn:
        oldest = conn.execute(_OLDEST_ACTION).one_or_none()
    return max(since, oldest.action_id) if oldest is not None and oldest.forgotten else since


def period(now: datetime, since: datetime | None) -> UUID:
    """The smallest task id of the period; None is the whole history."""
    if since is None or since.timestamp() < 0:
        return UUID(int=0)
    return earliest_id(min(since, now).astimezone(UTC))
