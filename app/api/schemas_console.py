"""HTTP models of what coordinators see at a glance: the board, students, elders, the map, figures, health."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from app.api.schemas import PageQuery, PlaceJson, TaskJson
from app.api.validation import (
    Cursor,
    Instant,
    LargePageSize,
    QueryFlag,
    Request,
    Response,
    SearchText,
    SmallPageSize,
)
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


class PeopleQuery(PageQuery):
    search: SearchText | None = None


class StudentsQuery(PeopleQuery):
    on_duty: QueryFlag | None = Field(None, description="`true`: active and on duty; `false`: the others.")


class ListedStudentJson(Response):
    id: int
    name: str
    phone: str | None
    on_duty: bool
    active: bool
    suspended: bool = Field(description="Off duty until a coordinator says otherwise.")
    busy: bool = Field(description="Has a task, or is being asked.")
    completed_this_month: int
    location: PlaceJson | None


class ListedElderJson(Response):
    id: int
    name: str
    phone: str | None
    location: PlaceJson | None
    open_task_id: UUID | None


Latitude = Annotated[float, Field(ge=-90, le=90, examples=[40.95])]
Longitude = Annotated[float, Field(ge=-180, le=180, examples=[29.0])]


class MapQuery(Request):
    south: Latitude
    west: Longitude
    north: Latitude = Field(examples=[41.05])
    east: Longitude = Field(examples=[29.1])


class StudentOnMapJson(Response):
    id: int
    name: str
    lat: float
    lon: float
    on_duty: bool
    busy: bool = Field(description="Has a task, or is being asked.")
    offered_task_id: UUID | None = Field(description="The task for which the student is being asked, if I see it.")


class StudentMapJson(Response):
    students: list[StudentOnMapJson]
    truncated: bool = Field(description="There are more students in this part of the map.")
