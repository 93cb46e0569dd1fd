"""Do the matchers keep up? Answered from the due tasks, so that every process gives the same answer however many
matchers there are."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.matching.store.sweep import DUE


@dataclass(frozen=True)
class Overdue:
    tasks: int
    longest_s: float


def is_late(conn: Connection, after_s: float) -> bool:
    """True if a next step has been due for longer than this."""
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
