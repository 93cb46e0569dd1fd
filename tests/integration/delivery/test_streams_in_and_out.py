"""From a request on one stream to the results on the other streams, as another service reads them."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import ANY

import pytest

from app.api.services import Services
from app.bootstrap.delivery import build_intake, build_publisher
from app.delivery.actions.result_format import Topic
from app.delivery.messages.values import Outcome
from tests.support.actions import ROUTES, ActionHarness
from tests.support.streams import ask, bare, requested, told

DOWNLINK = {"channel_type": "device_downlink", "audience": ROUTES}


@pytest.fixture
def harness(services: Services) -> ActionHarness:
    return ActionHarness(services.db)


@pytest.fixture
def client(services: Services) -> Iterator[Any]:
    client = bare(services)
    yield client
    client.close()


def run_executor(services: Services) -> None:
    """Runs the parts of an executor: takes requests in, advances actions and publishes results."""
    intake, publisher = (
        build_intake(services.settings, services.db, block_s=0.05),
        build_publisher(services.settings, services.db),
    )
    while intake.run_once():
        pass
    while publisher.run_once():
        pass
    intake.close()
    publisher.close()


def test_results_of_sent_failed_and_handed_over_steps_are_published(
    services: Services, harness: ActionHarness, client: Any
):
    steps = ({"channel_type": "push"}, {"channel_type": "sms", "on_failure": "CONTINUE"}, DOWNLINK)
    plan = harness.plan(*steps)
    ask(client, requested("rule-114:1", plan, person_id=harness.user(), variables={"degrees": 41}))
    run_executor(services)
    harness.deliver()
    harness.fail("sms", Outcome.PERMANENT, "INVALID_TOKEN")
    run_executor(services)
    meta = {
        "schema_version": 1,
        "trace_id": "act-rule-114:1",
        "producer_service": "action-executor-service",
        "produced_at": ANY,
        "process_ms": ANY,
    }
    context = {"device_id": "400000011D081B70", "stream_id": 9823412}
    ids = {"group_id": 12, "rule_id": 114, "action_plan_id": plan}
    assert told(client, Topic.EXECUTED) == [
        {
            "event": "action.executed.v1",
            "meta": meta,
            "context": context,
            "data": ids
            | {
                "step_order": 1,
                "channel_type": "push",
                "delivery_status": "sent",
                "provider_message_id": "provider:1",
            },
            "error": None,
        }
    ]
    assert list(told(client, Topic.EXECUTED)[0]) == ["event", "meta", "context", "data", "error"]
    (failed,) = told(client, Topic.FAILED)
    assert (failed["event"], failed["meta"], failed["context"]) == ("action.failed.v1", meta, context)
    assert failed["data"] == ids | {"step_order": 2, "channel_type": "sms"}
    assert failed["error"] == {
        "failed_stage": "action_execute",
        "error_code": "INVALID_TOKEN",
        "error_message": "The provider does not know this token.",
        "retryable": ANY,
        "failed_at": ANY,
    }
    (letter,) = told(client, Topic.DEAD_LETTER)
    assert (letter["trace_id"], letter["action_plan_id"], letter["step_order"]) == ("act-rule-114:1", plan, 2)
    assert (letter["channel_type"], letter["error_code"]) == ("sms", "INVALID_TOKEN")
    (handed,) = told(client, Topic.HANDOVER)
    assert handed["data"] == ids | {
        "step_order": 3,
        "channel_type": "device_downlink",
        "evaluation_key": "rule-114:1",
        "variables": {"degrees": 41},
        "expires_at": None,
    }
    assert isinstance(failed["meta"]["process_ms"], int)


def test_results_hold_no_address(services: Services, harness: ActionHarness, client: Any):
    plan = harness.plan({"channel_type": "sms"})
    ask(client, requested("secret", plan, person_id=harness.user(phone="+905551112233")))
    run_executor(services)
    harness.fail("sms")
    run_executor(services)
    assert "5551112233" not in str([told(client, topic) for topic in Topic if topic is not Topic.REQUESTED])
