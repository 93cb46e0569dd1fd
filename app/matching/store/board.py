"""Statements of the board: every open task, and the tasks that nobody took until a coordinator says what became of
them."""

from uuid import UUID

from sqlalchemy import text

from app.foundation.pages import Page, page_of, parse_uuid
from app.matching.rules.states import TaskOutcome, is_open
from app.matching.rules.visibility import TaskView, seen_by
from app.matching.store.connected import Connected
from app.matching.store.views import STAFF_VIEW, seen_elder
from app.users.contract import scope_of
from app.users.models import Caller

# Each part reads the newest rows of its own partial index and stops when the page is full.
BOARD = f"""
{STAFF_VIEW}
WHERE t.id = ANY (ARRAY(
    SELECT id FROM (
        (SELECT t.id FROM tasks t JOIN users elder ON elder.id = t.elder_id
          WHERE {is_open("t.status")} AND {{seen}} {{before}} ORDER BY t.id DESC LIMIT :limit)
        UNION ALL
        (SELECT t.id FROM task_outcomes owed JOIN tasks t ON t.id = owed.task_id
           JOIN users elder ON elder.id = t.elder_id
          WHERE owed.outcome IS NULL AND {{seen}} {{before_owed}} ORDER BY owed.task_id DESC LIMIT :limit)
    ) newest ORDER BY id DESC LIMIT :limit))
ORDER BY t.id DESC"""

# To say the same again changes nothing, so that the time of the first call stays.
SAY_OUTCOME = text("""
INSERT INTO task_outcomes AS said (task_id, outcome, note, said_by, said_at)
VALUES (:task_id, :outcome, :note, :said_by, clock_timestamp())
ON CONFLICT (task_id) DO UPDATE
   SET outcome = excluded.outcome, note = excluded.note, said_by = excluded.said_by, said_at = excluded.said_at
 WHERE (said.outcome, said.note) IS DISTINCT FROM (excluded.outcome, excluded.note)
""")


class BoardStatements(Connected):
    def board(self, caller: Caller, cursor: str | None, limit: int) -> Page[TaskView]:
        """Newest first: ids sort by time."""
        before, before_owed = ("AND t.id < :before", "AND owed.task_id < :before") if cursor else ("", "")
        statement = BOARD.format(seen=seen_elder(scope_of(caller)), before=before, before_owed=before_owed)
        values = {"me": caller.id, "limit": limit + 1, "before": parse_uuid(cursor) if cursor else None}
        rows = self.conn.execute(text(statement), values).all()
        return page_of(rows, limit, lambda row: seen_by(caller, row))

    def say_outcome(self, task_id: UUID, outcome: TaskOutcome, note: str | None, said_by: int) -> None:
        self.conn.execute(SAY_OUTCOME, {"task_id": task_id, "outcome": outcome, "note": note, "said_by": said_by})
