"""Each field of the events that the seed defines."""

import json
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from app.delivery.actions.result_format import StepResult, Topic, executed, failed, handover
from app.delivery.messages.dead_letters import dead_letter_event

CONTEXT: dict[str, Any] = {
    "trace_id": "act-9f3f...",
    "device_id": "400000011D081B70",
    "stream_id": 9823412,
    "group_id": 12,
    "rule_id": 114,
}
TO_PUSH = StepResult(action_plan_id=21, step_order=1, channel_type="push", context=CONTEXT)
BY_MAIL = StepResult(action_plan_id=21, step_order=2, channel_type="email", context=CONTEXT)

EXECUTED = """
{
  "event": "action.executed.v1",
  "meta": {
    "schema_version": 1,
    "trace_id": "act-9f3f...",
    "producer_service": "action-executor-service",
    "produced_at": "2026-03-12T20:55:10.100Z",
    "process_ms": 42
  },
  "context": {
    "device_id": "400000011D081B70",
    "stream_id": 9823412
  },
  "data": {
    "group_id": 12,
    "rule_id": 114,
    "action_plan_id": 21,
    "step_order": 1,
    "channel_type": "push",
    "delivery_status": "sent",
    "provider_message_id": "fcm:abc123"
  },
  "error": null
}
"""
FAILED = """
{
  "event": "action.failed.v1",
  "meta": {
    "schema_version": 1,
    "trace_id": "act-9f3f...",
    "producer_service": "action-executor-service",
    "produced_at": "2026-03-12T20:55:10.300Z",
    "process_ms": 58
  },
  "context": {
    "device_id": "400000011D081B70",
    "stream_id": 9823412
  },
  "data": {
    "group_id": 12,
    "rule_id": 114,
    "action_plan_id": 21,
    "step_order": 2,
    "channel_type": "email"
  },
  "error": {
    "failed_stage": "action_execute",
    "error_code": "SMTP_TIMEOUT",
    "error_message": "mail provider timeout",
    "retryable": true,
    "failed_at": "2026-03-12T20:55:10Z"
  }
}
"""


def moment(microseconds: int) -> datetime:
    return datetime(2026, 3, 12, 20, 55, 10, microseconds, tzinfo=UTC)


def in_order(text: str) -> list[Any]:
    return json.loads(text, object_pairs_hook=list[Any])


def test_event_of_an_executed_step():
    event = executed(TO_PUSH, produced_at=moment(100_000), process_ms=42, provider_message_id="fcm:abc123")
    assert event.topic is Topic.EXECUTED
    assert in_order(json.dumps(event.payload)) == in_order(EXECUTED)


def test_event_of_a_failed_step():
    event = failed(
        BY_MAIL,
        produced_at=moment(300_000),
        process_ms=58,
        error_code="SMTP_TIMEOUT",
        error_message="mail provider timeout",
        retryable=True,
        failed_at=moment(299_000),
    )
    assert event.topic is Topic.FAILED
    assert in_order(json.dumps(event.payload)) == in_order(FAILED)


def test_times_are_converted_to_utc():
    istanbul = moment(100_900).astimezone(timezone(timedelta(hours=3)))
    event = executed(TO_PUSH, produced_at=istanbul, process_ms=0, provider_message_id=None)
    assert event.payload["meta"]["produced_at"] == "2026-03-12T20:55:10.100Z"


def test_event_of_a_dead_letter():
    row: Any = SimpleNamespace(
        id=UUID(int=1),
        action_id=UUID(int=2),
        notification_id=None,
        action_plan_id=21,
        step_order=2,
        channel_type="email",
        error_code="SMTP_TIMEOUT",
        error_message="mail provider timeout",
        retry_count=3,
        failed_at=moment(0),
    )
    event = dead_letter_event(row, CONTEXT)
    assert event.topic == Topic.DEAD_LETTER
    assert event.payload == {
        "dead_letter_id": str(UUID(int=1)),
        "action_id": str(UUID(int=2)),
        "notification_id": None,
        "trace_id": "act-9f3f...",
        "action_plan_id": 21,
        "step_order": 2,
        "channel_type": "email",
        "error_code": "SMTP_TIMEOUT",
        "error_message": "mail provider timeout",
        "retry_count": 3,
        "failed_at": "2026-03-12T20:55:10.000Z",
    }


def test_event_of_a_handover():
    step = StepResult(21, 3, "device_downlink", CONTEXT)
    event = handover(step, produced_at=moment(0), process_ms=1, evaluation_key="k", variables={"valve": "open"})
    assert event.topic is Topic.HANDOVER
    assert event.payload["event"] == "action.handover.requested.v1"
    assert event.payload["context"] == {"device_id": "400000011D081B70", "stream_id": 9823412}
    assert event.payload["data"] == {
        "group_id": 12,
        "rule_id": 114,
        "action_plan_id": 21,
        "step_order": 3,
        "channel_type": "device_downlink",
        "evaluation_key": "k",
        "variables": {"valve": "open"},
        "expires_at": None,
    }


def test_event_of_an_action_without_a_context():
    event = executed(StepResult(21, 1, "push"), produced_at=moment(0), process_ms=0, provider_message_id=None)
    assert event.payload["context"] == {"device_id": None, "stream_id": None}
