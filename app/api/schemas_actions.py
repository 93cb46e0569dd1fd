"""HTTP models of actions and dead letters."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field, StringConstraints

from app.api.schemas import PageQuery
from app.api.validation import (
    LINE_WITH_A_WORD,
    VISIBLE_ASCII,
    Identifier,
    Instant,
    Moment,
    PathIdentifier,
    Request,
    Response,
    whole,
)
from app.delivery.contract import (
    LONGEST_KEY,
    MOST_VARIABLES_BYTES,
    ActionStatus,
    DeadLetterCriteria,
    DeadLetterStatus,
    NewAction,
    NotificationStatus,
    NotificationType,
    Origin,
    Priority,
    StepState,
)
from app.delivery.service import new_trace_id
from app.foundation.pages import BIGINT_MAX
from app.users.contract import StaffScope

Key = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_KEY, pattern=LINE_WITH_A_WORD)]
PlanKey = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=VISIBLE_ASCII)]
Number = Annotated[int, Field(ge=-BIGINT_MAX - 1, le=BIGINT_MAX), BeforeValidator(whole)]
ChannelType = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$"), Field(examples=["email"])]
ErrorCode = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,100}$"), Field(examples=["UNREACHABLE"])]

# Actions


class NewActionBody(Request):
    action_plan_id: Identifier | None = Field(None, description="The plan to carry out. Give either this or `planKey`.")
    plan_key: PlanKey | None = Field(None, examples=["matching.on_the_way"])
    evaluation_key: Key = Field(
        description="Requests of one caller with the same key are carried out only once.", examples=["rule-114:9823412"]
    )
    person_id: Identifier | None = Field(None, description="The user that steps for PERSON go to.")
    variables: dict[str, Any] | None = Field(
        None, description=f"Values for the templates; at most {MOST_VARIABLES_BYTES:,} bytes."
    )
    device_id: Annotated[str, StringConstraints(min_length=1, max_length=21, pattern=VISIBLE_ASCII)] | None = None
    stream_id: Number | None = None
    group_id: Number | None = None
    rule_id: Number | None = None
    trace_id: Key | None = Field(None, description="Generated if absent.")
    priority: Priority | None = Field(None, description="NORMAL if absent.")
    expires_at: Moment | None = Field(None, description="No step begins after this time.")

    def to_new_action(self, plan: int | str, caller_id: int, scope: StaffScope) -> NewAction:
        return NewAction(
            plan=plan,
            requested_by=caller_id,
            person_id=self.person_id,
            scope=scope,
            variables=self.variables or {},
            priority=self.priority or Priority.NORMAL,
            expires_at=self.expires_at,
            evaluation_key=self.evaluation_key,
            origin=Origin.HTTP,
            context={
                "trace_id": self.trace_id or new_trace_id(),
                "device_id": self.device_id,
                "stream_id": self.stream_id,
                "group_id": self.group_id,
                "rule_id": self.rule_id,
            },
        )


class ActionsQuery(PageQuery):
    status: ActionStatus | None = None
    action_plan_id: PathIdentifier | None = None


class ActionJson(Response):
    id: UUID
    status: ActionStatus
    evaluation_key: str | None
    action_plan_id: int
    plan_key: str | None
    origin: Origin
    person_id: int | None
    task_id: UUID | None
    device_id: str | None
    stream_id: int | str | None
    group_id: int | None
    rule_id: int | None
    trace_id: str | None
    variables: dict[str, Any]
    priority: Priority
    created_at: Instant
    expires_at: Instant | None
    finished_at: Instant | None


class StepMessageJson(Response):
    id: UUID
    notification_type: NotificationType
    recipient: str
    recipient_user_id: int | None
    status: NotificationStatus
    created_at: Instant
    finished_at: Instant | None
    error_code: str | None


class ActionStepJson(Response):
    step_order: int
    channel_type: str
    state: StepState
    error_code: str | None
    asked_at: Instant | None
    notifications: list[StepMessageJson]


class ActionInFullJson(ActionJson):
    steps: list[ActionStepJson]


# Dead letters


class DeadLetterFilter(Request):
    channel_type: ChannelType | None = None
    error_code: ErrorCode | None = None
    action_plan_id: Identifier | None = None
    since: Moment | None = Field(None, description="Failed at this time or later.")
    until: Moment | None = Field(None, description="Failed before this time.")

    def to_filter(self) -> DeadLetterCriteria:
        return DeadLetterCriteria(self.channel_type, self.error_code, self.action_plan_id, self.since, self.until)


class DeadLettersQuery(PageQuery):
    status: DeadLetterStatus | None = None
    channel_type: ChannelType | None = None
    error_code: ErrorCode | None = None
    action_plan_id: PathIdentifier | None = None
    since: Moment | None = Field(None, description="Failed at this time or later.")
    until: Moment | None = Field(None, description="Failed before this time.")

    def to_filter(self) -> DeadLetterCriteria:
        return DeadLetterCriteria(self.channel_type, self.error_code, self.action_plan_id, self.since, self.until)


class MeantBody(DeadLetterFilter):
    all: bool | None = Field(None, description="Must be true if no filter is given.")


class RedrivenJson(Response):
    redriven: int
    skipped: int = Field(description="Open dead letters that match but cannot be redriven.")
    remaining: int = Field(description="Dead letters that match and are left for the next call.")


class DiscardedJson(Response):
    discarded: int
    remaining: int = Field(description="Dead letters that match and are left for the next call.")


class DeadLetterJson(Response):
    id: UUID
    status: DeadLetterStatus
    action_plan_id: int | None
    step_order: int | None
    channel_type: str
    error_code: str
    error_message: str
    retryable: bool
    retry_count: int
    failed_at: Instant
    notification_id: UUID | None
    action_id: UUID | None
    trace_id: str | None
    closed_at: Instant | None
    closed_by: int | None = Field(description="The user who redrove or discarded it; null for an operator's command.")
