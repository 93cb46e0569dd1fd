"""What the reconciler reads: what is due, and what Redis should hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from app.matching.states import TaskStatus


def due_tasks(conn: Connection, most: int) -> list[UUID]:
    """Whose next step is due, the longest overdue first. The time is a subselect, read once: a volatile function
    would keep the index from being used."""
    statement = """
    SELECT id FROM tasks
    WHERE next_step_at <= (SELECT clock_timestamp()) AND next_step_at IS NOT NULL
      AND status IN ('PENDING', 'ASSIGNED', 'STARTED')
    ORDER BY next_step_at LIMIT :most"""
    return [row.id for row in conn.execute(text(statement), {"most": most})]


@dataclass(frozen=True)
class Standing:
    """What Redis should hold for a task, as PostgreSQL has it."""

    task_id: UUID
    status: TaskStatus
    student_id: int | None
    deadline: datetime | None
    next_step_at: datetime | None
    updated_at: datetime


STANDINGS = """
SELECT t.id, t.status, t.next_step_at, t.updated_at, o.student_id, o.deadline
FROM tasks t LEFT JOIN offers o ON o.task_id = t.id AND o.state = 'PENDING'
"""


def _standings(conn: Connection, where: str, values: Mapping[str, Any]) -> list[Standing]:
    return [
        Standing(row.id, TaskStatus(row.status), row.student_id, row.deadline, row.next_step_at, row.updated_at)
        for row in conn.execute(text(STANDINGS + where), values)
    ]


def open_standings(conn: Connection, after: UUID, most: int) -> list[Standing]:
    where = "WHERE t.id > :after AND t.status IN ('PENDING', 'ASSIGNED', 'STARTED') ORDER BY t.id LIMIT :most"
    return _standings(conn, where, {"after": after, "most": most})


def standings(conn: Connection, task_ids: Sequence[UUID]) -> list[Standing]:
    return _standings(conn, "WHERE t.id = ANY(:ids)", {"ids": list(task_ids)})


def changed_tasks(conn: Connection, since: datetime, until: datetime, most: int) -> dict[UUID, datetime]:
    """The versions of the first `most` that changed in this time, in order, so that the last tells where to go on."""
    statement = """
    SELECT id, updated_at FROM tasks WHERE updated_at > :since AND updated_at <= :until
    ORDER BY updated_at LIMIT :most"""
    rows = conn.execute(text(statement), {"since": since, "until": until, "most": most})
    return {row.id: row.updated_at for row in rows}
