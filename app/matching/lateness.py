"""Do the matchers keep up? Told by what is due, so it is true whoever asks and however many matchers there are."""

from dataclasses import dataclass

from sqlalchemy import Connection, text


@dataclass(frozen=True)
class Overdue:
    tasks: int
    longest_s: float


def is_late(conn: Connection, after_s: float) -> bool:
    """Whether a step has been due for longer than this and nobody has taken it."""
    statement = """
    SELECT EXISTS (
        SELECT FROM tasks
        WHERE next_step_at < (SELECT clock_timestamp() - make_interval(secs => :after_s))
          AND next_step_at IS NOT NULL AND status IN ('PENDING', 'ASSIGNED', 'STARTED'))"""
    return bool(conn.execute(text(statement), {"after_s": after_s}).scalar_one())


def overdue(conn: Connection) -> Overdue:
    statement = """
    SELECT count(*) AS tasks,
           coalesce(extract(epoch FROM clock_timestamp() - min(next_step_at)), 0)::float8 AS longest_s
    FROM tasks
    WHERE next_step_at <= (SELECT clock_timestamp())
      AND next_step_at IS NOT NULL AND status IN ('PENDING', 'ASSIGNED', 'STARTED')"""
    row = conn.execute(text(statement)).one()
    return Overdue(row.tasks, row.longest_s)
