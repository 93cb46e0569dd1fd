"""An action through all roles, from its request on a stream to its results on other streams: a webhook receiver is
verified and gets a message, a step without a recipient becomes a dead letter, and a downlink is handed over.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from app.api.services import Services
from app.api.tokens import LocalTokens
from app.users import service as users
from app.users.models import Role
from tests.support.provider_server import Answer, ProviderServer, Request, Scripted
from tests.support.serving import Phone, eventually, serving

PREFIX = "e2e"


class WebhookReceiver(ProviderServer):
    """A receiver of webhooks that answers challenges."""

    def judge(self, request: Request) -> Scripted:
        content = request.json()
        return Answer(200, {"challenge": content["data"].get("challenge")})

    def bodies(self) -> list[str]:
        contents = [request.json() for request in self.requests]
        return [one["data"]["body"] for one in contents if one["type"] != "channel.verification"]


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver().running() as running:
        yield running


@pytest.fixture
def admin(services: Services) -> Iterator[Phone]:
    with services.db.transaction() as conn:
        zeynep = users.create_user(conn, users.NewUser(Role.ADMIN, "Zeynep Koç")).id
    token = LocalTokens(services.settings.auth_secret or "").issue(zeynep)
    with serving(services.settings, WEBHOOK_ALLOW_PRIVATE="true", ACTION_TOPIC_PREFIX=PREFIX) as port:
        yield Phone(port, zeynep, token)


class Streams:
    def __init__(self, url: str) -> None:
        self._client: Any = redis.Redis.from_url(url, decode_responses=True)

    def ask(self, **data: Any) -> None:
        event = {
            "event": "action.execute.requested.v1",
            "meta": {"schema_version": 1, "trace_id": "act-1"},
            "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
            "data": {"group_id": 12, "rule_id": 114, **data},
        }
        self._client.xadd(f"{PREFIX}.action.requested", {"payload": json.dumps(event)})

    def read(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(fields["payload"]) for _, fields in self._client.xrange(f"{PREFIX}.{name}")]


def create(phone: Phone, path: str, **body: Any) -> int:
    status, answer = phone.call("POST", f"/api/v1/{path}", body)
    assert status == 201, answer
    return answer["id"]


def verified_receiver(phone: Phone, url: str) -> int:
    profile = create(phone, "recipient-profiles", name="Nöbetçi masası", priority=1)
    channel = create(phone, "recipient-channels", profileId=profile, channelType="webhook", target=url)
    phone.call("POST", f"/api/v1/recipient-channels/{channel}/verification")

    def is_verified() -> bool:
        return phone.call("GET", f"/api/v1/recipient-channels/{channel}")[1]["verifyStatus"] == "verified"

    eventually(is_verified)
    return profile


def fire_plan(phone: Phone, profile: int) -> int:
    create(
        phone, "templates", key="fire", locale="tr", subject="Yangın", body="{{ room }} odasında {{ degrees }} derece."
    )
    plan = create(phone, "action-plans", name="Yangın")
    steps = f"action-plans/{plan}/steps"
    create(phone, steps, stepOrder=1, channelType="webhook", templateKey="fire")
    create(phone, steps, stepOrder=2, channelType="email", templateKey="fire", onFailure="CONTINUE")
    create(phone, steps, stepOrder=3, channelType="device_downlink")
    for order in (1, 2):
        create(phone, "action-routes", actionPlanId=plan, stepOrder=order, recipientProfileId=profile)
    return plan


def test_an_action_runs_from_stream_to_stream(services: Services, admin: Phone, receiver: WebhookReceiver) -> None:
    profile = verified_receiver(admin, f"{receiver.base_url}/hook")
    plan = fire_plan(admin, profile)
    streams = Streams(services.settings.redis_url)
    for _ in range(3):
        streams.ask(action_plan_id=plan, evaluation_key="e-1", variables={"room": "Mutfak", "degrees": 90})

    [executed] = eventually(lambda: streams.read("action.executed"))
    [failed] = eventually(lambda: streams.read("action.failed"))
    [handed_over] = eventually(lambda: streams.read("action.handover"))
    [dead_letter] = eventually(lambda: streams.read("dlq.action"))
    assert receiver.bodies() == ["Mutfak odasında 90 derece."]
    assert (executed["meta"]["trace_id"], executed["data"]["delivery_status"]) == ("act-1", "sent")
    assert (failed["data"]["step_order"], failed["error"]["error_code"]) == (2, "NO_RECIPIENT")
    assert (dead_letter["step_order"], dead_letter["channel_type"]) == (2, "email")
    assert handed_over["data"]["step_order"] == 3

    [action] = admin.call("GET", "/api/v1/actions")[1]["items"]
    steps = admin.call("GET", f"/api/v1/actions/{action['id']}")[1]["steps"]
    assert [step["state"] for step in steps] == ["SENT", "FAILED", "HANDED_OVER"]
    [shown] = admin.call("GET", "/api/v1/dead-letters")[1]["items"]
    assert (shown["errorCode"], shown["actionPlanId"]) == ("NO_RECIPIENT", plan)
    _, metrics = admin.ask("GET", "/metrics")
    assert 'yaninda_delivery_sent_total{type="WEBHOOK"} 2.0' in metrics
    # The verification by a process of the api, and the message of the action by the delivery role.
    assert 'yaninda_delivery_produced_total{type="WEBHOOK"} 2.0' in metrics
