"""The statement of a press: it makes a task, and with it the offer to the first student."""

from datetime import timedelta
from typing import Any

from sqlalchemy import text

from app.matching.rules.eligibility import distance_m
from app.matching.rules.states import OfferState, TaskStatus, new_offer, new_task
from app.matching.store.connected import Connected
from app.matching.store.records import MadeTask, NewSearch, Pick, task_of
from app.matching.store.task_log import log_new_task, log_offer
from app.matching.store.views import STAFF_COLUMNS

# One statement, because a press is the most frequent deed: the row of the task is written once, as it is with its
# offer. Their times are the same, by which the trigger of events knows a first offer. The last part reads the columns
# of a view and those of `HelpTask` from what was just written.
MAKE_TASK = text(f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), task AS (
    INSERT INTO tasks (id, status, elder_id, note, location, area, created_at, updated_at, search_until, next_step_at,
                       listed, asked, idempotency_key)
    SELECT :id, {new_task(TaskStatus.PENDING)}, :elder_id, CAST(:note AS text),
           ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)::geography, CAST(:area AS circle), now, now, now + :search_limit,
           CASE WHEN CAST(:student_id AS bigint) IS NULL THEN now ELSE now + :ttl END,
           :listed, CASE WHEN CAST(:student_id AS bigint) IS NULL THEN 0 ELSE 1 END, CAST(:idempotency_key AS text)
    FROM clock
    ON CONFLICT DO NOTHING
    RETURNING *
), offer AS (
    INSERT INTO offers (task_id, student_id, state, rank, completed_this_month, distance_m, offered_at, deadline)
    SELECT task.id, s.id, {new_offer(OfferState.PENDING)}, :rank, :completed,
           coalesce(CAST(:distance_m AS float8), {distance_m("task.location")}), task.created_at, task.next_step_at
    FROM task JOIN students s ON s.id = CAST(:student_id AS bigint)
    ON CONFLICT DO NOTHING
    RETURNING student_id, deadline
)
SELECT {STAFF_COLUMNS}, t.waiting, t.listed, t.updated_at, t.skipped, t.idempotency_key, t.area::text AS area,
       clock_timestamp() AS read_at
FROM task t
JOIN users elder ON elder.id = t.elder_id
LEFT JOIN users student ON student.id = t.student_id
LEFT JOIN task_outcomes said ON said.task_id = t.id
LEFT JOIN (SELECT offer.*, asked.name FROM offer JOIN users asked ON asked.id = offer.student_id) live ON true
""")
NOBODY: dict[str, Any] = {"student_id": None, "rank": None, "completed": None, "distance_m": None}


class PressStatements(Connected):
    def make_task(self, new: NewSearch, pick: Pick | None, ttl: timedelta, search_limit: timedelta) -> MadeTask | None:
        """None if the elder has an open task already, or used this idempotency key before. Without an offer, though
        there is a pick, if another task is asking this student."""
        row = self.conn.execute(MAKE_TASK, _values(new, pick) | {"ttl": ttl, "search_limit": search_limit})
        made = row.one_or_none()
        if made is None:
            return None
        log_new_task(made.id, made.elder_id)
        if pick is not None and made.live_deadline is not None:
            log_offer(OfferState.PENDING, made.id, pick.student_id)
        return MadeTask(task_of(made), made.live_deadline, made)


def _values(new: NewSearch, pick: Pick | None) -> dict[str, Any]:
    asked = NOBODY
    if pick is not None:
        asked = {
            "student_id": pick.student_id,
            "rank": pick.rank,
            "completed": pick.completed,
            "distance_m": pick.distance_m,
        }
    return asked | {
        "id": new.task_id,
        "elder_id": new.elder_id,
        "note": new.note,
        "lat": new.spot.lat,
        "lon": new.spot.lon,
        "area": new.area,
        "listed": new.ranking.eligible,
        "idempotency_key": new.idempotency_key,
    }
