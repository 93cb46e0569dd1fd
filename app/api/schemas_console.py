"""HTTP models of what coordinators see at a glance: the board, students, elders, the map, figures, health."""

from datetime import date
from typing import Annotated
from uuid import UUID

from pydantic import Field

from app.api.schemas import PageQuery, PlaceJson, ReadyJson
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
from app.ops.parts import PartStatus
from app.redis_store.breakers import BreakerState


class BoardQuery(Request):
    limit: LargePageSize = 1000
    cursor: Cursor | None = None


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
    suspended: QueryFlag | None = Field(None, description="`true`: active, and off duty until a coordinator says so.")


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


class FiguresQuery(Request):
    month: Annotated[str, Field(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$", examples=["2026-11"])] | None = Field(
        None, description="In the service's time zone; this month if absent."
    )


class TasksOfMonthJson(Response):
    created: int
    completed: int
    timed_out: int
    cancelled: int


class WaitingJson(Response):
    tasks: int
    mean_s: float | None
    p50_s: int | None = Field(serialization_alias="p50S")
    p90_s: int | None = Field(serialization_alias="p90S")
    p95_s: int | None = Field(serialization_alias="p95S")
    p99_s: int | None = Field(serialization_alias="p99S")


class BothWaitingJson(Response):
    accept: WaitingJson = Field(description="From the press until a student accepted.")
    arrive: WaitingJson = Field(description="From the press until the student was there.")


class DayOfWaitingJson(Response):
    day: date
    count: int
    p50_s: int | None = Field(serialization_alias="p50S")
    p90_s: int | None = Field(serialization_alias="p90S")


class UnmetJson(Response):
    lat: float
    lon: float
    count: int


class LoadJson(Response):
    completed: int
    students: int


class DayOfAnswersJson(Response):
    day: date
    asked: int
    accepted: int
    rejected: int
    expired: int


class FiguresJson(Response):
    month: str
    computed_at: Instant
    tasks: TasksOfMonthJson
    to_accept: list[DayOfWaitingJson] = Field(description="By the day of the press.")
    waiting: BothWaitingJson
    unmet: list[UnmetJson] = Field(
        description="Tasks that nobody took, by cells of the map of about 0.9 by 0.6 km; the place is a cell's middle."
    )
    load: list[LoadJson] = Field(description="Students by tasks completed in the month; 0: on duty now.")
    silence: list[DayOfAnswersJson] = Field(description="Offers, by the day on which they were made.")


class PartJson(Response):
    name: str
    status: PartStatus
    detail: str = Field(description="In English, for people.")
    figures: dict[str, float] = Field(
        description="The numbers of `detail` by name, seconds end in `S`. Empty if nothing is counted, or could be."
    )


class BreakerJson(Response):
    name: str
    state: BreakerState


class HealthOfPartsJson(ReadyJson):
    parts: list[PartJson]
    breakers: list[BreakerJson] = Field(description="Of providers; empty while Redis does not answer.")
    backlog: int = Field(description="Notifications that are not ended.")
    open_dead_letters: int = Field(description="Those that I see.")
