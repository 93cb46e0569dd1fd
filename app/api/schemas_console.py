"""HTTP models of what coordinators see at a glance: the board, students, elders, the map, figures, health."""

from pydantic import Field

from app.api.schemas import TaskJson
from app.api.validation import Cursor, Instant, LargePageSize, Request


class BoardQuery(Request):
    limit: LargePageSize = 1000
    cursor: Cursor | None = None


class BoardTaskJson(TaskJson):
    assigned_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    search_ends_at: Instant | None = Field(description="No student is asked after this; null if nobody is searched.")
