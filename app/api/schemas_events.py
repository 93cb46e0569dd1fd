"""The JSON of events in streams."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from app.api.schemas import is_none
from app.api.validation import Instant, Request, Response
from app.matching.contract import TaskStatus
from app.realtime.contract import EndReason, EventType

_TYPE = f"({'|'.join(EventType)})"
TypeList = Annotated[str, Field(pattern=f"^{_TYPE}(,{_TYPE})*$", max_length=1000)]


class EventsQuery(Request):
    types: TypeList | None = Field(
        None, description="Only these types, with commas between them.", examples=["TASK_CREATED,TASK_TIMED_OUT"]
    )


class EventJson(Response):
    """The data of one event. Fields that are empty, or that the caller may not see, are absent."""

    model_config = ConfigDict(extra="forbid")

    id: int | None = Field(None, exclude_if=is_none, description="Send the last one as `Last-Event-ID` to resume.")
    type: EventType | Literal["READY", "TIME", "END"]
    at: Instant | None = Field(None, exclude_if=is_none)
    task_id: UUID | None = Field(None, exclude_if=is_none)
    status: TaskStatus | None = Field(None, exclude_if=is_none, description="Of the task, when this happened.")
    asked: int | None = Field(None, exclude_if=is_none, description="Like the next two, as it is when it is sent.")
    remaining: int | None = Field(None, exclude_if=is_none)
    next_step_at: Instant | None = Field(None, exclude_if=is_none)
    deadline: Instant | None = Field(None, exclude_if=is_none, description="Of the offer that was made.")
    student_id: int | None = Field(None, exclude_if=is_none)
    student_name: str | None = Field(None, exclude_if=is_none, description="For the elder the first word.")
    elder_id: int | None = Field(None, exclude_if=is_none, description="For coordinators, like the next two.")
    elder_name: str | None = Field(None, exclude_if=is_none)
    on_duty: bool | None = Field(None, exclude_if=is_none)
    message_id: int | None = Field(None, exclude_if=is_none)
    reason: str | None = Field(
        None,
        exclude_if=is_none,
        description=f"Why a student was skipped or an offer withdrawn; of END, one of {', '.join(EndReason)}.",
    )
