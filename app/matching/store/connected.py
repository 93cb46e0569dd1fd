"""The base class of all statements."""

from sqlalchemy import Connection

from app.matching.store.task_log import TaskLog


class Connected:
    """The attributes are set by `Store`."""

    conn: Connection
    log: TaskLog
