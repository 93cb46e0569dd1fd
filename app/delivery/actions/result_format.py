"""The format of the events about actions that other services read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.db.outbox import Event
from app.delivery.messages import dead_letters
from app.foundation.clock import rfc3339, utc_milliseconds


class Topic(StrEnum):
    """Names of streams, without the prefix from the settings."""

    REQUESTED = "action.requested"
    EXECUTED = "action.executed"
    FAILED = "action.failed"
    DEAD_LETTER = dead_letters.TOPIC
    HANDOVER = "action.handover"


PUBLISHED = (Topic.EXECUTED, Topic.FAILED, Topic.DEAD_LETTER, Topic.HANDOVER)

SCHEMA_VERSION = 1
PRODUCER = "action-executor-service"
FAILED_STAGE = "action_execute"


@dataclass(frozen=True)
class StepResult:
    """The step of an event."""

    action_plan_id: int | None
    step_order: int | None
    channel_type: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The context of the action: `device_id`, `stream_id`, `group_id`, `rule_id`, `trace_id`."""


def executed(
    step: StepResult,
    *,
    produced_at: datetime,
    process_ms: int,
    provider_message_id: str | None,
    delivery_status: str = "sent",
) -> Event:
    data = _data(step) | {"delivery_status": delivery_status, "provider_message_id": provider_message_id}
    return Event(Topic.EXECUTED, _envelope("action.executed.v1", step, produced_at, process_ms, data))


def failed(
    step: StepResult,
    *,
    produced_at: datetime,
    process_ms: int,
    error_code: str,
    error_message: str,
    retryable: bool,
    failed_at: datetime,
) -> Event:
    error = {
        "failed_stage": FAILED_STAGE,
        "error_code": error_code,
        "error_message": error_message,
        "retryable": retryable,
        "failed_at": rfc3339(failed_at, "seconds"),
    }
    return Event(Topic.FAILED, _envelope("action.failed.v1", step, produced_at, process_ms, _data(step), error))


def handover(
    step: StepResult,
    *,
    produced_at: datetime,
    process_ms: int,
    evaluation_key: str | None,
    variables: Mapping[str, Any],
    expires_at: datetime | None = None,
) -> Event:
    """Requests that another service carries out a step."""
    data = _data(step) | {
        "evaluation_key": evaluation_key,
        "variables": dict(variables),
        "expires_at": utc_milliseconds(expires_at) if expires_at else None,
    }
    return Event(Topic.HANDOVER, _envelope("action.handover.requested.v1", step, produced_at, process_ms, data))


def _envelope(
    event: str,
    step: StepResult,
    produced_at: datetime,
    process_ms: int,
    data: dict[str, Any],
    error: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "event": event,
        "meta": {
            "schema_version": SCHEMA_VERSION,
            "trace_id": step.context.get("trace_id"),
            "producer_service": PRODUCER,
            "produced_at": utc_milliseconds(produced_at),
            "process_ms": process_ms,
        },
        "context": {"device_id": step.context.get("device_id"), "stream_id": step.context.get("stream_id")},
        "data": data,
        "error": error,
    }


def _data(step: StepResult) -> dict[str, Any]:
    return {
        "group_id": step.context.get("group_id"),
        "rule_id": step.context.get("rule_id"),
        "action_plan_id": step.action_plan_id,
        "step_order": step.step_order,
        "channel_type": step.channel_type,
    }
