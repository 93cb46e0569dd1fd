"""Reading requests for actions."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.delivery.actions.models import Origin
from app.delivery.actions.request_format import MOST_PAYLOAD_BYTES, Unreadable, problem_with_variables, read
from app.delivery.actions.requests import NewAction
from app.delivery.messages.values import Priority


def envelope(**changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"group_id": 12, "rule_id": 114, "action_plan_id": 21, "evaluation_key": "kapı-1"}
    return {
        "event": "action.execute.requested.v1",
        "meta": {"schema_version": 1, "trace_id": "act-9f3f", "producer_service": "rule-service", "process_ms": 3},
        "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
        "data": data | changes.pop("data", {}),
        "error": None,
    } | changes


def packed(value: object) -> bytes:
    return json.dumps(value).encode()


def test_request_of_the_seed_becomes_an_action():
    assert read(packed(envelope())) == NewAction(
        plan=21,
        evaluation_key="kapı-1",
        origin=Origin.STREAM,
        context={
            "trace_id": "act-9f3f",
            "device_id": "400000011D081B70",
            "stream_id": 9823412,
            "group_id": 12,
            "rule_id": 114,
        },
    )


def test_optional_fields_are_read():
    more = {
        "variables": {"kapı": {"no": [1, 2.5, None, True]}},
        "person_id": 7,
        "priority": "URGENT",
        "expires_at": "2026-03-12T23:55:10+03:00",
        "something_new": "that we do not know",
    }
    action = read(packed(envelope(data=more, also_new={})))
    assert (action.variables, action.person_id, action.priority) == (more["variables"], 7, Priority.URGENT)
    assert action.expires_at == datetime(2026, 3, 12, 20, 55, 10, tzinfo=UTC)


def test_missing_trace_id_is_created():
    action, other = read(packed(envelope(meta={}))), read(packed(envelope(meta={"trace_id": None})))
    assert action.context["trace_id"].startswith("act-")
    assert action.context["trace_id"] != other.context["trace_id"]


def deep(levels: int) -> Any:
    return {"x": deep(levels - 1)} if levels else {}


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"event": "\xff"}',
    "a list": b"[]",
    "too deep for a parser": b"[" * 20_000,
    "too large": packed(envelope(extra="x" * MOST_PAYLOAD_BYTES)),
    "another event": packed(envelope(event="action.executed.v1")),
    "another version": packed(envelope(meta={"schema_version": 2})),
    "no data": packed({"event": "action.execute.requested.v1"}),
    "a plan in words": packed(envelope(data={"action_plan_id": "21"})),
    "plan zero": packed(envelope(data={"action_plan_id": 0})),
    "too large a plan": packed(envelope(data={"action_plan_id": 2**63})),
    "no key": packed(envelope(data={"evaluation_key": ""})),
    "NUL in the key": packed(envelope(data={"evaluation_key": "a\0b"})),
    "half a character in the key": b'{"event": "action.execute.requested.v1", "data": {"action_plan_id": 1,'
    b' "evaluation_key": "\\ud800"}}',
    "too long a key": packed(envelope(data={"evaluation_key": "k" * 201})),
    "a device with too long a name": packed(envelope(context={"device_id": "4" * 22})),
    "NUL in a variable": packed(envelope(data={"variables": {"a": ["\0"]}})),
    "NUL in the name of one": packed(envelope(data={"variables": {"\0": 1}})),
    "an infinite variable": packed(envelope(data={"variables": {"a": float("inf")}})),
    "no number": packed(envelope(data={"variables": {"a": float("nan")}})),
    "a number that overflows": packed(envelope()).replace(
        b'"rule_id": 114', b'"rule_id": 1, "variables": {"a": 1e999}'
    ),
    "too many variables": packed(envelope(data={"variables": {"a": "x" * 16_384}})),
    "too deep": packed(envelope(data={"variables": deep(9)})),
    "a time without a zone": packed(envelope(data={"expires_at": "2026-03-12T20:55:10"})),
    "a time after the year 9999": packed(envelope(data={"expires_at": "9999-12-31T23:59:59-12:00"})),
    "an unknown priority": packed(envelope(data={"priority": "SOON"})),
    "an invalid person": packed(envelope(data={"person_id": -1})),
}


@pytest.mark.parametrize("payload", BROKEN.values(), ids=BROKEN)
def test_invalid_request_is_refused(payload: bytes):
    with pytest.raises(Unreadable):
        read(payload)


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"{", "It is not JSON."),
        (b"[]", "payload must be an object."),
        (packed(envelope(data={"evaluation_key": "", "priority": "SOON"})), "data.evaluation_key must not be empty; "),
        (packed(envelope(data={"variables": deep(9)})), "data.variables must not hold NUL"),
        (packed(envelope(extra="x" * MOST_PAYLOAD_BYTES)), "It is larger than 65536 bytes."),
    ],
)
def test_refusal_says_what_is_wrong(payload: bytes, problem: str):
    with pytest.raises(Unreadable) as caught:
        read(payload)
    assert caught.value.problem.startswith(problem)


def test_valid_parts_of_an_invalid_request_are_returned():
    with pytest.raises(Unreadable) as caught:
        read(packed(envelope(data={"evaluation_key": None, "rule_id": "many"})))
    assert caught.value.action_plan_id == 21
    assert caught.value.context == {
        "trace_id": "act-9f3f",
        "device_id": "400000011D081B70",
        "stream_id": 9823412,
        "group_id": 12,
        "rule_id": None,
    }


def test_returned_parts_can_be_stored():
    broken = b'{"meta": {"trace_id": "a\\u0000"}, "context": {"device_id": "\\ud800", "stream_id": 1e999}}'
    with pytest.raises(Unreadable) as caught:
        read(broken)
    trace_id = caught.value.context.pop("trace_id")
    assert trace_id.startswith("act-")
    assert set(caught.value.context.values()) == {None}


@pytest.mark.parametrize("variables", [{}, {"a": "x" * 16_000}, deep(7), {"n": -0.5, "none": None}])
def test_valid_variables_are_accepted(variables: dict[str, Any]):
    assert problem_with_variables(variables) is None
