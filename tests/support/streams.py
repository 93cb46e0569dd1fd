"""The streams as other services use them: requests of actions, and results."""

import json
import threading
from collections.abc import Callable
from typing import Any, cast

import redis
from sqlalchemy import text

from app.api.services import Services
from app.db.database import Database
from app.delivery.actions.result_format import Topic

PREFIX = "cinga"


def bare(services: Services) -> Any:
    return cast(Any, redis.Redis).from_url(services.settings.redis_url, decode_responses=True)


def requested(key: str, plan_id: int, **data: Any) -> dict[str, Any]:
    return {
        "event": "action.execute.requested.v1",
        "meta": {"schema_version": 1, "trace_id": f"act-{key}", "producer_service": "rule-service"},
        "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
        "data": {"group_id": 12, "rule_id": 114, "action_plan_id": plan_id, "evaluation_key": key} | data,
        "error": None,
    }


def ask(client: Any, payload: object) -> str:
    content = payload if isinstance(payload, str | bytes) else json.dumps(payload, ensure_ascii=False)
    return client.xadd(f"{PREFIX}.{Topic.REQUESTED}", {"payload": content})


def told(client: Any, topic: Topic) -> list[dict[str, Any]]:
    return [json.loads(fields["payload"]) for _, fields in client.xrange(f"{PREFIX}.{topic}")]


def unanswered(client: Any) -> int:
    return client.xpending(f"{PREFIX}.{Topic.REQUESTED}", "action-executor")["pending"]


def add_plan(db: Database, *channel_types: str) -> int:
    with db.transaction() as conn:
        plan_id = conn.execute(text("INSERT INTO action_plans (name) VALUES ('Kapı açık kaldı') RETURNING id"))
        id_ = plan_id.scalar_one()
        for order, channel_type in enumerate(channel_types or ("audit",), 1):
            conn.execute(
                text(
                    "INSERT INTO action_plan_steps (action_plan_id, step_order, channel_type)"
                    " VALUES (:plan_id, :step_order, :channel_type)"
                ),
                {"plan_id": id_, "step_order": order, "channel_type": channel_type},
            )
    return id_


def rows(db: Database, query: str, **values: Any) -> list[Any]:
    with db.transaction() as conn:
        return list(conn.execute(text(query), values))


def event_payloads(db: Database, topic: Topic) -> list[dict[str, Any]]:
    return [row.payload for row in rows(db, "SELECT payload FROM action_events WHERE topic = :t ORDER BY id", t=topic)]


def wait_until(condition: Callable[[], Any], seconds: float = 10) -> None:
    pause = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError(f"the condition was not met within {seconds} s")
