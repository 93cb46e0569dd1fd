"""HTTP models of what coordinators see at a glance: the board, students, elders, the map, figures, health."""

from pydantic import Field

from app.api.schemas import TaskJson
from app.api.validation import Cursor, Instant, LargePageSize, Request, Response, SearchText, SmallPageSize
from app.matching.contract import NotAskedBecause, OfferState


class BoardQuery(Request):
    limit: LargePageSize = 1000
    cursor: Cursor | None = None


class BoardTaskJson(TaskJson):
    assigned_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    search_ends_at: Instant | None = Field(description="No student is asked after this; null if nobody is searched.")


class CandidatesQuery(Request):
    search: SearchText | None = None
    limit: SmallPageSize = 20


class CandidateJson(Response):
    student_id: int
    name: str
    phone: str | None
    distance_m: float | None = Field(description="Null if no place is known.")
    completed_this_month: int
    on_duty: bool
    obstacle: NotAskedBecause | None = Field(
        description="Why the search would not ask this student. `HAS_A_TASK` also refuses to be assigned by hand."
    )
    asked_before: OfferState | None = Field(description="The state of this task's offer to the student.")


class CandidatesJson(Response):
    items: list[CandidateJson]
