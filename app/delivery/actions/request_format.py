"""Reads `action.execute.requested.v1`, with which other services request an action. Unknown fields are ignored."""

import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from app.delivery.actions.models import Origin
from app.delivery.actions.requests import NewAction
from app.delivery.messages.values import Priority
from app.foundation.field_sentences import sentence
from app.foundation.pages import BIGINT_MAX
from app.foundation.storable import flaw_of_json

LONGEST_KEY = 200
MOST_PAYLOAD_BYTES = 65_536
MOST_VARIABLES_BYTES = 16_384
DEEPEST = 8
MOST_PROBLEMS = 5


def problem_with_variables(variables: Mapping[str, Any]) -> str | None:
    """Why a JSON object cannot be the variables of an action; None if it can."""
    if flaw_of_json(variables, deepest=DEEPEST) is not None:
        return f"must not hold NUL, an infinite number, or anything nested deeper than {DEEPEST}"
    if len(json.dumps(variables, ensure_ascii=False).encode()) > MOST_VARIABLES_BYTES:
        return f"must not be larger than {MOST_VARIABLES_BYTES} bytes"
    return None


def new_trace_id() -> str:
    return f"act-{secrets.token_hex(16)}"


def _checked(variables: dict[str, Any]) -> dict[str, Any]:
    problem = problem_with_variables(variables)
    if problem:
        raise ValueError(problem)
    return variables


def _within_the_calendar(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is not a time of this calendar") from None


_Id = Annotated[int, Field(ge=1, le=BIGINT_MAX)]
_Number = Annotated[int, Field(ge=-BIGINT_MAX - 1, le=BIGINT_MAX)]
_Line = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_KEY, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, hide_input_in_errors=True)


class _Meta(_Part):
    schema_version: Literal[1] = 1
    trace_id: _Line | None = None


class _Context(_Part):
    device_id: Annotated[_Line, Field(max_length=21)] | None = None
    stream_id: _Number | _Line | None = None


class _Data(_Part):
    group_id: _Number | None = None
    rule_id: _Number | None = None
    action_plan_id: _Id
    evaluation_key: _Line
    variables: Annotated[dict[str, Any], AfterValidator(_checked)] = {}
    person_id: _Id | None = None
    priority: Priority = Priority.NORMAL
    expires_at: Annotated[AwareDatetime, AfterValidator(_within_the_calendar)] | None = None


class _Requested(_Part):
    event: Literal["action.execute.requested.v1"]
    meta: _Meta = _Meta()
    context: _Context = _Context()
    data: _Data


class Unreadable(Exception):
    """The payload is not a valid request for an action. The failure event repeats the parts that could be read."""

    def __init__(self, problem: str, action_plan_id: int | None, context: dict[str, Any]) -> None:
        super().__init__("A message is not a request for an action.")
        self.problem = problem
        """A sentence that names the fields."""
        self.action_plan_id = action_plan_id
        self.context = context


def read(payload: bytes) -> NewAction:
    if len(payload) > MOST_PAYLOAD_BYTES:
        raise Unreadable(f"It is larger than {MOST_PAYLOAD_BYTES} bytes.", None, {"trace_id": new_trace_id()})
    try:
        event = _Requested.model_validate_json(payload)
    except ValidationError as error:
        raise _unreadable(payload, _problems(error)) from None
    return NewAction(
        plan=event.data.action_plan_id,
        person_id=event.data.person_id,
        variables=event.data.variables,
        priority=event.data.priority,
        expires_at=event.data.expires_at,
        evaluation_key=event.data.evaluation_key,
        origin=Origin.STREAM,
        context={
            "trace_id": event.meta.trace_id or new_trace_id(),
            "device_id": event.context.device_id,
            "stream_id": event.context.stream_id,
            "group_id": event.data.group_id,
            "rule_id": event.data.rule_id,
        },
    )


def _problems(error: ValidationError) -> str:
    items = error.errors(include_url=False, include_input=False)
    if items[0]["type"] == "json_invalid":
        return "It is not JSON."
    named = [f"{'.'.join(map(str, item['loc'])) or 'payload'} {sentence(item)}" for item in items[:MOST_PROBLEMS]]
    return f"{'; '.join(named)}."


def _unreadable(payload: bytes, problem: str) -> Unreadable:
    """Keeps each part that can be read, so that the sender recognises its request in our events."""
    try:
        event: object = json.loads(payload)
    except (ValueError, RecursionError):
        event = None
    meta, context, data = (_part(event, name) for name in ("meta", "context", "data"))
    known = {
        "trace_id": _one(_Meta, meta, "trace_id") or new_trace_id(),
        "device_id": _one(_Context, context, "device_id"),
        "stream_id": _one(_Context, context, "stream_id"),
        "group_id": _one(_Data, data, "group_id"),
        "rule_id": _one(_Data, data, "rule_id"),
    }
    return Unreadable(problem, _one(_Data, data, "action_plan_id"), known)


def _part(event: object, name: str) -> dict[str, Any]:
    part = cast(dict[str, Any], event).get(name) if isinstance(event, dict) else None
    return cast(dict[str, Any], part) if isinstance(part, dict) else {}


# The values of required fields, for validating another field of `_Data` alone.
_REQUIRED: dict[str, Any] = {"action_plan_id": 1, "evaluation_key": "-"}


def _one(model: type[_Part], part: dict[str, Any], name: str) -> Any:
    """The value of one field; None if it is missing or invalid."""
    if name not in part:
        return None
    try:
        return getattr(model.model_validate((_REQUIRED if model is _Data else {}) | {name: part[name]}), name)
    except ValidationError:
        return None
