"""A small neighbourhood on real stores, for tests of the HTTP API."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import jwt
import redis
from sqlalchemy import Connection, Engine, text

from app.api.routing import Route
from app.api.services import Services
from app.api.tokens import AUDIENCE, ISSUER, LocalTokens
from app.delivery.actions import service as actions
from app.delivery.actions.requests import NewAction
from app.delivery.directory.service import CHANNELS, PROFILES
from app.delivery.messages import dead_letters
from app.delivery.messages.dead_letters import NewDeadLetter
from app.delivery.messages.rules import DeliveryRules
from app.delivery.plans import shipped_plans
from app.delivery.plans.service import PLANS, ROUTES, TEMPLATES, create_step
from app.jobs.engine.task import TaskType
from app.jobs.job_store import NewJob, request_job
from app.jobs.models import JobOrigin
from app.matching.contract import NewTask
from app.roster.kinds.known_kinds import kind_named
from app.roster.models import ConsumerScope
from app.users import service as users
from app.users.models import LatLon, Platform, Role
from tests.support import cleaning
from tests.support.notifications import NewNotification, enqueue
from tests.support.rosters import add_run

HOME = LatLon(40.9870, 29.0280)
NEARBY = LatLon(40.9880, 29.0280)
FAR_AWAY = LatLon(41.2000, 29.0280)

PEOPLE = {
    "elder": (Role.ELDER, "Ayşe Yılmaz", HOME),
    "other_elder": (Role.ELDER, "Hüseyin Öztürk", FAR_AWAY),
    "student": (Role.STUDENT, "Ahmet Çelik", NEARBY),
    "other_student": (Role.STUDENT, "Berat Şahin", FAR_AWAY),
    "coordinator": (Role.COORDINATOR, "Zeynep Koç", None),
    "admin": (Role.ADMIN, "Yönetici", None),
    "deactivated": (Role.STUDENT, "Ceren Güneş", NEARBY),
}


QUERIES = {
    "GET /api/v1/{kind}/changes": "?since=2100-01-01T00:00:00",
    "GET /api/v1/map": "?south=40.9&west=28.9&north=41.1&east=29.1",
}
NOWHERE: Mapping[str, int] = {}


@dataclass
class World:
    ids: dict[str, int]
    task_id: UUID
    notification_id: UUID
    entries: dict[str, Any]
    """Ids by the name of their path parameter: one row of each table that coordinators edit, an action, a dead letter,
    a message in the elder's app, a job, and a list with a consumer of its changes."""


def path_of(route: Route, world: World, *, device_id: str) -> str:
    """With ids of this world, whose elder stands for users where the route does not want a student."""
    parameters = {
        "taskId": world.task_id,
        "deviceId": device_id,
        "userId": world.ids["student" if route.name == "PUT /users/{userId}/availability" else "elder"],
        "notificationId": world.notification_id,
        **world.entries,
    }
    return route.path.format(**parameters) + QUERIES.get(route.name, "")


def empty_stores(services: Services, owner: Engine) -> None:
    with owner.begin() as conn:
        cleaning.empty(conn)
        shipped_plans.install_shipped(conn)
    client = redis.Redis.from_url(services.settings.redis_url)
    client.flushdb()
    client.close()


def settle_world(
    services: Services, *, assigned: bool = False, started: bool = False, institutions: Mapping[str, int] = NOWHERE
) -> World:
    """The elder has pressed. The one student nearby has a live offer, or has accepted, or has started. Those who are in
    `institutions` belong to one."""
    ids: dict[str, int] = {}
    with services.db.transaction() as conn:
        for key, (role, name, location) in PEOPLE.items():
            new = users.NewUser(
                role,
                name,
                f"+9055501000{len(ids):02}",
                location=location,
                institution_id=institutions.get(key),
                active=key != "deactivated",
            )
            ids[key] = users.create_user(conn, new).id
        users.put_device(conn, ids["elder"], users.DeviceRegistration("phone", "token-of-the-elder", Platform.ANDROID))
        elder = users.find_caller(conn, ids["elder"])
        student = users.find_caller(conn, ids["student"])
    assert elder and student
    task_id = services.matching.press(elder, NewTask(elder.id, "Ekmek"), None).task.id
    if assigned or started:
        services.matching.accept(student, task_id)
    if started:
        services.matching.start(student, task_id)
    with services.db.transaction() as conn:
        notification_id = conn.execute(text("SELECT id FROM notifications ORDER BY id LIMIT 1")).scalar_one()
        entries: dict[str, Any] = {**settle_entries(conn)}
        entries["messageId"] = _leave_message(conn, elder.id, notification_id)
        entries["deadLetterId"] = _give_up(conn, elder.id, task_id)
        (asked,) = actions.request_actions(conn, [NewAction(entries["planId"], evaluation_key="rule-114:0")])
        entries["actionId"] = asked.id
        entries |= _leave_job(conn) | _leave_list(conn)
    return World(ids, task_id, notification_id, entries)


def settle_entries(conn: Connection) -> dict[str, int]:
    rules = DeliveryRules("90", frozenset({"device_downlink"}))
    profile = PROFILES.create(conn, {"name": "Sera", "device_id": "400000011D081B70"}, rules)
    target = {"profile_id": profile.id, "channel_type": "webhook", "target": "https://ornek.org/kanca"}
    channel = CHANNELS.create(conn, target, rules)
    template = TEMPLATES.create(conn, {"key": "heat.alarm", "body": "{{ degrees | default(40) }} °C"}, rules)
    plan = PLANS.create(conn, {"name": "Sera ısındı"}, rules)
    step = create_step(conn, plan.id, {"step_order": 1, "channel_type": "webhook"}, rules)
    route = {"action_plan_id": plan.id, "step_order": 1, "recipient_profile_id": profile.id}
    return {
        "profileId": profile.id,
        "channelId": channel.id,
        "templateId": template.id,
        "planId": plan.id,
        "stepId": step.id,
        "routeId": ROUTES.create(conn, route, rules).id,
    }


def _leave_message(conn: Connection, reader_id: int, notification_id: UUID) -> int:
    statement = (
        "INSERT INTO in_app_messages (notification_id, user_id, subject, body, data)"
        " VALUES (:id, :reader, 'Yanında', 'Ahmet yola çıktı!', '{}') RETURNING id"
    )
    return conn.execute(text(statement), {"id": notification_id, "reader": reader_id}).scalar_one()


def mark_as_demo_person(services: Services, user_id: int, role: Role = Role.ELDER, number: int = 1) -> None:
    """As the command `demo` marks whom it creates. No call of the API can do that."""
    with services.db.transaction() as conn:
        users.patch_user(conn, user_id, {"firebase_uid": users.demo_key(role, number)})


def _leave_job(conn: Connection) -> dict[str, Any]:
    """It waits, and has an artifact all the same."""
    new = NewJob("greet", TaskType.IO_BOUND, max_retries=0, timeout_s=60.0, origin=JobOrigin.CLI)
    requested = request_job(conn, new)
    assert requested is not None
    statement = "INSERT INTO job_artifacts (id, job_id, name, size, content) VALUES (:id, :id, 'report.csv', 1, 'x')"
    conn.execute(text(statement), {"id": requested.id})
    return {"jobId": requested.id, "artifactName": "report.csv"}


def _leave_list(conn: Connection) -> dict[str, Any]:
    """Its run has held something back."""
    add_run(conn, kind_named("students"), datetime(2026, 3, 12, 9, 0, tzinfo=UTC))
    held = {"students": {"removals_held": "too_short", "modifications_held": None, "list_hash": "00"}}
    statement = text("UPDATE roster_runs SET report = CAST(:report AS jsonb) RETURNING id")
    run_id = conn.execute(statement, {"report": json.dumps({"kinds": held})}).scalar_one()
    entries = {"kind": "students", "listName": "enrolment", "runId": run_id}
    return entries | {"consumerId": leave_consumer(conn, "students", ConsumerScope.READ, "yr_world")}


def leave_consumer(conn: Connection, kind: str, scope: ConsumerScope, token: str) -> int:
    statement = (
        "INSERT INTO roster_consumers (document_type, name, token_hash, scope)"
        " VALUES (:kind, 'Belediye', sha256(CAST(:token AS bytea)), :scope) RETURNING id"
    )
    values = {"kind": kind_named(kind).document_type, "token": token.encode(), "scope": scope}
    return conn.execute(text(statement), values).scalar_one()


def _give_up(conn: Connection, reader_id: int, task_id: UUID) -> UUID:
    (id_,) = enqueue(conn, [NewNotification(reader_id, "Yanında", "Bu mesaj ulaşmadı.", {}, task_id)])
    statement = "UPDATE notifications SET status = 'DEAD', due_at = NULL, finished_at = now() WHERE id = :id"
    conn.execute(text(statement), {"id": id_})
    dead_letter = NewDeadLetter("push", "UNREACHABLE", retryable=True, retry_count=2, notification_id=id_)
    dead_letters.write(conn, [dead_letter])
    return dead_letter.id


def authorization(world: World, services: Services, who: str) -> dict[str, str]:
    """Headers with the token of a person of the world, or with a token that must be refused."""
    if who == "nobody":
        return {}
    secret = services.settings.auth_secret
    assert secret is not None
    claims: dict[str, Any] = {"iss": ISSUER, "aud": AUDIENCE, "sub": str(world.ids["admin"]), "iat": 1, "exp": 2**40}
    match who:
        case "forged":
            token = jwt.encode(claims, "k" * 40, algorithm="HS256")
        case "expired":
            token = jwt.encode(claims | {"exp": 2}, secret, algorithm="HS256")
        case "wrong_audience":
            token = jwt.encode(claims | {"aud": "another"}, secret, algorithm="HS256")
        case "unsigned":
            token = f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(claims)}."
        case "unknown":
            token = LocalTokens(secret).issue(999_999)
        case _:
            token = LocalTokens(secret).issue(world.ids[who])
    return {"Authorization": f"Bearer {token}"}


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
