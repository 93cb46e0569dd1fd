"""Measures how late the matchers are. It reads the due tasks from PostgreSQL, so every process gets the same answer,
whatever the number of matchers."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.matching.store.sweep import DUE


@dataclass(frozen=True)
class Overdue:
    tasks: int
    longest_s: float


def is_late(conn: Connection, after_s: float) -> bool:
    """True if a task has been due for longer than `after_s`."""
    statement = f"""
    SELECT EXISTS (
        SELECT {DUE} AND next_step_at < (SELECT clock_timestamp() - make_interval(secs => :after_s)))"""
    return bool(conn.execute(text(statement), {"after_s": after_s}).scalar_one())


def overdue(conn: Connection) -> Overdue:
    statement = f"""
    SELECT count(*) AS tasks,
           coalesce(extract(epoch FROM clock_timestamp() - min(next_step_at)), 0)::float8 AS longest_s {DUE}"""
    row = conn.execute(text(statement)).one()
    return Overdue(row.tasks, row.longest_s)
