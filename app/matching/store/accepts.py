"""The statement of an accept: it takes the student, accepts the offer, and gives the task to the student."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.matching.rules.liveness import answerable, live
from app.matching.rules.states import OfferState, TaskStatus, may_become_offer, may_become_task
from app.matching.store.connected import Connected
from app.matching.store.records import Accepted, Moved, NamedPerson
from app.matching.store.students import take_student
from app.matching.store.task_log import log_offer, log_task
from app.matching.store.tasks import SET_VERSION
from app.matching.store.views import COLUMNS

OFFER = "o.task_id = :task_id AND o.student_id = :student_id"
# The student's row comes first. Whoever makes an offer to this student has locked the row, and then waits in the index
# of live offers for a transaction that changes one. The time is read under that lock, so that nobody accepts late who
# had to wait for it. The task is locked, so its live offers to others can be taken back afterwards.
ACCEPT = text(f"""
WITH taken AS (
    {take_student(":task_id", ":student_id")} AND EXISTS (SELECT FROM offers o WHERE {OFFER} AND {live("o")})
    RETURNING u.id, u.name, u.phone, clock_timestamp() AS at
), accepted AS (
    UPDATE offers o SET state = '{OfferState.ACCEPTED}', closed_at = clock_timestamp() FROM taken
    WHERE {OFFER} AND {may_become_offer(OfferState.ACCEPTED)} AND {answerable("o", "taken.at")} RETURNING o.id
), moved AS (
    UPDATE tasks SET status = '{TaskStatus.ASSIGNED}', student_id = taken.id, assigned_at = clock_timestamp(),
                     waiting = false, next_step_at = clock_timestamp() + :start_limit, {SET_VERSION}
    FROM taken, accepted
    WHERE tasks.id = :task_id AND {may_become_task(TaskStatus.ASSIGNED, "tasks.status")} RETURNING tasks.*
)
SELECT {COLUMNS}, t.updated_at, student.id AS taken_id
FROM taken student
LEFT JOIN moved t ON true
LEFT JOIN users elder ON elder.id = t.elder_id
CROSS JOIN (SELECT NULL::bigint AS student_id, NULL::timestamptz AS deadline, NULL AS name) live
""")


class AcceptStatements(Connected):
    def accept(self, task_id: UUID, student_id: int, start_limit: timedelta) -> Accepted | None:
        """None if the student has no live offer of this task, is not active or has another task. Without a move if the
        deadline has passed."""
        values = {"task_id": task_id, "student_id": student_id, "start_limit": start_limit}
        row: Any = self.conn.execute(ACCEPT, values).one_or_none()
        if row is None:
            return None
        student = NamedPerson(row.taken_id, row.student_name, row.student_phone)
        if row.id is None:
            return Accepted(student, None, row)
        log_offer(OfferState.ACCEPTED, task_id, student_id)
        log_task(TaskStatus.ASSIGNED, task_id, student_id)
        return Accepted(student, Moved(row.next_step_at, row.updated_at), row)
