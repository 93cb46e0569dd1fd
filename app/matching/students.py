"""What matching does to the rows of students."""

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import Connection, text

from app.matching.candidates import THIS_MONTH


def lock_students(conn: Connection, ids: Iterable[int], *, skip_locked: bool = False) -> set[int]:
    """Those that are locked now. One call in a transaction: two goes could meet another transaction's two goes."""
    statement = "SELECT id FROM students WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE"
    rows = conn.execute(text(statement + (" SKIP LOCKED" if skip_locked else "")), {"ids": sorted(set(ids))})
    return {row.id for row in rows}


def is_active_student(conn: Connection, student_id: int) -> bool:
    statement = "SELECT active FROM students WHERE id = :id"
    return bool(conn.execute(text(statement), {"id": student_id}).scalar_one_or_none())


def take_student(conn: Connection, student_id: int, task_id: UUID) -> bool:
    """False when the student is not active or holds another task."""
    statement = """
    UPDATE students SET open_task_id = :task_id
    WHERE id = :id AND active AND open_task_id IS NULL RETURNING id"""
    return conn.execute(text(statement), {"id": student_id, "task_id": task_id}).one_or_none() is not None


def free_student(conn: Connection, student_id: int) -> None:
    conn.execute(text("UPDATE students SET open_task_id = NULL WHERE id = :id"), {"id": student_id})


def count_completed(conn: Connection, student_id: int, time_zone: str) -> None:
    """A count belongs to its month: the first one of a new month starts again at one."""
    month = THIS_MONTH.format(zone=":time_zone")
    statement = f"""
    UPDATE students SET completed = CASE WHEN month = {month} THEN completed + 1 ELSE 1 END, month = {month},
                        open_task_id = NULL
    WHERE id = :id"""
    conn.execute(text(statement), {"id": student_id, "time_zone": time_zone})


# The index holds only tasks that wait, so this costs next to nothing while nobody does.
WAITING_WITHIN_REACH = text("""
SELECT DISTINCT waiting.id
FROM students s CROSS JOIN LATERAL (
    SELECT t.id FROM tasks t
    WHERE t.waiting AND t.status = 'PENDING' AND t.search_until > clock_timestamp()
      AND ST_DWithin(t.location, s.location, :radius_m)
      AND NOT EXISTS (SELECT FROM offers o WHERE o.task_id = t.id AND o.student_id = s.id)
    ORDER BY t.created_at, t.id LIMIT 1
) waiting
WHERE s.id = ANY(:student_ids) AND s.available
  AND NOT EXISTS (SELECT FROM offers o WHERE o.student_id = s.id AND o.state = 'PENDING')
""")


def oldest_waiting_tasks(conn: Connection, student_ids: Iterable[int], radius_m: float) -> set[UUID]:
    """For each of these students who is free, the oldest task that waits for somebody within reach."""
    rows = conn.execute(WAITING_WITHIN_REACH, {"student_ids": sorted(student_ids), "radius_m": radius_m})
    return {row.id for row in rows}


def tasks_waiting_for(conn: Connection, student_ids: Iterable[int], radius_m: float) -> set[UUID]:
    statement = """
    SELECT t.id FROM students s JOIN tasks t ON ST_DWithin(t.location, s.location, :radius_m)
    WHERE s.id = ANY(:student_ids) AND t.waiting AND t.status = 'PENDING'
      AND NOT EXISTS (SELECT FROM offers o WHERE o.task_id = t.id AND o.student_id = s.id)"""
    rows = conn.execute(text(statement), {"student_ids": sorted(student_ids), "radius_m": radius_m})
    return {row.id for row in rows}
