"""Who may call which route: every route is called by every kind of caller. A route that is not in the table fails."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.api.access import KindConsumers, Open
from app.api.errors import TITLES, status_of
from app.api.openapi import errors_of
from app.api.routing import Route
from app.api.services import Services
from app.api.views.catalogue import ROUTES
from app.bootstrap.api import PAGES, create_app
from app.roster.feed import consumers
from app.roster.models import ConsumerScope
from app.users.models import Role
from tests.support.event_streams import first_piece_of_streams
from tests.support.jobs import SCRIPTS
from tests.support.kept_database import POOL_SIZE, KeptDatabase
from tests.support.lists import packed_bytes
from tests.support.pages import ROOT
from tests.support.world import (
    World,
    authorization,
    empty_stores,
    leave_consumer,
    mark_as_demo_person,
    path_of,
    settle_world,
)

WHO = ("elder", "other_elder", "student", "other_student", "coordinator", "admin")

# The coordinator has no institution, so they keep no profile but their own. What a coordinator of an institution gets,
# and one of another, is in tests/abuse/test_other_institutions.py.
#                                     elder  other  student other  coord. admin
TABLE: dict[str, tuple[int, ...]] = {
    "POST /tasks":                        (200, 201, 403, 403, 200, 200),
    "GET /tasks":                         (200, 200, 200, 200, 200, 200),
    "GET /tasks/{taskId}":                (200, 404, 200, 404, 200, 200),
    "GET /tasks/{taskId}/events":         (200, 404, 200, 404, 200, 200),
    "GET /events":                        (200, 200, 200, 200, 200, 200),
    "GET /tasks/{taskId}/offers":         (403, 403, 403, 403, 200, 200),
    "PUT /tasks/{taskId}/accept":         (403, 403, 200, 404, 403, 403),
    "PUT /tasks/{taskId}/reject":         (403, 403, 200, 404, 403, 403),
    "PUT /tasks/{taskId}/start":          (403, 403, 200, 404, 403, 403),
    "PUT /tasks/{taskId}/complete":       (403, 403, 200, 404, 200, 200),
    "PUT /tasks/{taskId}/withdraw":       (403, 403, 200, 404, 403, 403),
    "PUT /tasks/{taskId}/cancel":         (200, 404, 403, 403, 200, 200),
    "PUT /tasks/{taskId}/assign":         (403, 403, 403, 403, 200, 200),
    "PUT /tasks/{taskId}/next":           (403, 403, 403, 403, 200, 200),
    "PUT /tasks/{taskId}/release":        (403, 403, 403, 403, 200, 200),
    "GET /tasks/{taskId}/candidates":     (403, 403, 403, 403, 200, 200),
    # The task is open, and not one that nobody took.
    "PUT /tasks/{taskId}/outcome":        (403, 403, 403, 403, 409, 409),
    "GET /api/v1/board":                  (403, 403, 403, 403, 200, 200),
    "GET /api/v1/students":               (403, 403, 403, 403, 200, 200),
    "GET /api/v1/elders":                 (403, 403, 403, 403, 200, 200),
    "GET /api/v1/map":                    (403, 403, 403, 403, 200, 200),
    "GET /api/v1/figures":                (403, 403, 403, 403, 200, 200),
    "GET /api/v1/health":                 (403, 403, 403, 403, 200, 200),
    "GET /me":                            (200, 200, 200, 200, 200, 200),
    "GET /me/offer":                      (403, 403, 200, 204, 403, 403),
    "PUT /me/location":                   (403, 403, 204, 204, 403, 403),
    "PUT /me/availability":               (403, 403, 204, 204, 403, 403),
    "PUT /me/devices/{deviceId}":         (204, 409, 409, 409, 409, 409),
    "DELETE /me/devices/{deviceId}":      (204, 404, 404, 404, 404, 404),
    "GET /me/messages":                   (200, 200, 200, 200, 200, 200),
    "PUT /me/messages/{messageId}/read":  (204, 404, 404, 404, 404, 404),
    "GET /me/pushes":                     (200, 200, 200, 200, 200, 200),
    "POST /users":                        (403, 403, 403, 403, 403, 201),
    "GET /users":                         (403, 403, 403, 403, 403, 200),
    "GET /users/{userId}":                (403, 403, 403, 403, 403, 200),
    "PATCH /users/{userId}":              (403, 403, 403, 403, 403, 200),
    "PUT /users/{userId}/availability":   (403, 403, 403, 403, 204, 204),
    "POST /api/notifications":            (403, 403, 403, 403, 202, 202),
    "GET /api/v1/audit":                  (403, 403, 403, 403, 403, 200),
    "GET /api/notifications":             (403, 403, 403, 403, 200, 200),
    "GET /api/notifications/{notificationId}": (403, 403, 403, 403, 200, 200),
    "GET /api/v1/recipient-profiles":     (403, 403, 403, 403, 200, 200),
    "POST /api/v1/recipient-profiles":    (403, 403, 403, 403, 403, 201),
    "GET /api/v1/recipient-profiles/{profileId}": (403, 403, 403, 403, 200, 200),
    "PATCH /api/v1/recipient-profiles/{profileId}": (403, 403, 403, 403, 403, 200),
    "DELETE /api/v1/recipient-profiles/{profileId}": (403, 403, 403, 403, 403, 204),
    "GET /api/v1/recipient-channels":     (403, 403, 403, 403, 200, 200),
    "POST /api/v1/recipient-channels":    (403, 403, 403, 403, 403, 201),
    "GET /api/v1/recipient-channels/{channelId}": (403, 403, 403, 403, 200, 200),
    "PATCH /api/v1/recipient-channels/{channelId}": (403, 403, 403, 403, 403, 200),
    "DELETE /api/v1/recipient-channels/{channelId}": (403, 403, 403, 403, 403, 204),
    "POST /api/v1/recipient-channels/{channelId}/secret": (403, 403, 403, 403, 403, 200),
    "DELETE /api/v1/recipient-channels/{channelId}/secret/previous": (403, 403, 403, 403, 403, 204),
    "POST /api/v1/recipient-channels/{channelId}/verification": (403, 403, 403, 403, 403, 202),
    "PUT /api/v1/recipient-channels/{channelId}/verification": (403, 403, 403, 403, 403, 409),
    "GET /api/v1/action-plans":           (403, 403, 403, 403, 200, 200),
    "POST /api/v1/action-plans":          (403, 403, 403, 403, 403, 201),
    "GET /api/v1/action-plans/{planId}":  (403, 403, 403, 403, 200, 200),
    "PATCH /api/v1/action-plans/{planId}": (403, 403, 403, 403, 403, 200),
    "DELETE /api/v1/action-plans/{planId}": (403, 403, 403, 403, 403, 204),
    "GET /api/v1/action-plans/{planId}/steps": (403, 403, 403, 403, 200, 200),
    "POST /api/v1/action-plans/{planId}/steps": (403, 403, 403, 403, 403, 201),
    "GET /api/v1/action-plans/{planId}/steps/{stepId}": (403, 403, 403, 403, 200, 200),
    "PATCH /api/v1/action-plans/{planId}/steps/{stepId}": (403, 403, 403, 403, 403, 200),
    "DELETE /api/v1/action-plans/{planId}/steps/{stepId}": (403, 403, 403, 403, 403, 204),
    "GET /api/v1/action-routes":          (403, 403, 403, 403, 200, 200),
    "POST /api/v1/action-routes":         (403, 403, 403, 403, 403, 201),
    "GET /api/v1/action-routes/{routeId}": (403, 403, 403, 403, 200, 200),
    "PATCH /api/v1/action-routes/{routeId}": (403, 403, 403, 403, 403, 200),
    "DELETE /api/v1/action-routes/{routeId}": (403, 403, 403, 403, 403, 204),
    "GET /api/v1/templates":              (403, 403, 403, 403, 200, 200),
    "POST /api/v1/templates":             (403, 403, 403, 403, 403, 201),
    "GET /api/v1/templates/{templateId}": (403, 403, 403, 403, 200, 200),
    "PATCH /api/v1/templates/{templateId}": (403, 403, 403, 403, 403, 200),
    "DELETE /api/v1/templates/{templateId}": (403, 403, 403, 403, 403, 204),
    "POST /api/v1/templates/{templateId}/preview": (403, 403, 403, 403, 200, 200),
    "POST /api/v1/templates/preview":     (403, 403, 403, 403, 403, 200),
    "POST /api/v1/actions":              (403, 403, 403, 403, 202, 202),
    "GET /api/v1/actions":               (403, 403, 403, 403, 200, 200),
    "GET /api/v1/actions/{actionId}":    (403, 403, 403, 403, 200, 200),
    "GET /api/v1/dead-letters":          (403, 403, 403, 403, 200, 200),
    "GET /api/v1/dead-letters/{deadLetterId}": (403, 403, 403, 403, 200, 200),
    "POST /api/v1/dead-letters/{deadLetterId}/redrive": (403, 403, 403, 403, 200, 200),
    "POST /api/v1/dead-letters/redrive": (403, 403, 403, 403, 403, 200),
    "POST /api/v1/dead-letters/{deadLetterId}/discard": (403, 403, 403, 403, 200, 200),
    "POST /api/v1/dead-letters/discard": (403, 403, 403, 403, 403, 200),
    "POST /api/v1/jobs":                 (403, 403, 403, 403, 403, 202),
    "GET /api/v1/jobs":                  (403, 403, 403, 403, 403, 200),
    "GET /api/v1/jobs/catalogue":        (403, 403, 403, 403, 403, 200),
    "GET /api/v1/jobs/{jobId}":          (403, 403, 403, 403, 403, 200),
    "PUT /api/v1/jobs/{jobId}/cancel":   (403, 403, 403, 403, 403, 200),
    "GET /api/v1/jobs/{jobId}/artifacts/{artifactName}": (403, 403, 403, 403, 403, 200),
    "GET /api/v1/roster/runs":            (403, 403, 403, 403, 403, 200),
    "GET /api/v1/roster/runs/{runId}":    (403, 403, 403, 403, 403, 200),
    "POST /api/v1/roster/runs/{runId}/approve": (403, 403, 403, 403, 403, 200),
    "PUT /api/v1/roster/{kind}/lists/{listName}": (403, 403, 403, 403, 403, 200),
    "GET /api/v1/{kind}/changes":         (403, 403, 403, 403, 403, 200),
    "GET /api/v1/{kind}/archives/latest": (403, 403, 403, 403, 403, 404),
    "POST /api/v1/roster/consumers":      (403, 403, 403, 403, 403, 201),
    "GET /api/v1/roster/consumers":       (403, 403, 403, 403, 403, 200),
    "DELETE /api/v1/roster/consumers/{consumerId}": (403, 403, 403, 403, 403, 204),
    "GET /healthz":                       (200, 200, 200, 200, 200, 200),
    "GET /readyz":                        (200, 200, 200, 200, 200, 200),
    "GET /metrics":                       (200, 200, 200, 200, 200, 200),
    "GET /openapi.json":                  (200, 200, 200, 200, 200, 200),
    "GET /docs":                          (200, 200, 200, 200, 200, 200),
    "GET /page-settings.json":            (200, 200, 200, 200, 200, 200),
    "GET /demo/people":                   (200, 200, 200, 200, 200, 200),
    "POST /demo/sign-in":                 (200, 200, 200, 200, 200, 200),
}  # fmt: skip

# Every other route answers 401: a consumer is no user.
#                                        reader other  pusher revoked
CONSUMERS: dict[str, tuple[int, ...]] = {
    "GET /api/v1/{kind}/changes":         (200, 403, 403, 401),
    "GET /api/v1/{kind}/archives/latest": (404, 403, 403, 401),
    "PUT /api/v1/roster/{kind}/lists/{listName}": (403, 403, 200, 401),
}  # fmt: skip
TOKENS = {
    "yr_reader": ("students", ConsumerScope.READ),
    "yr_other": ("elders", ConsumerScope.READ),
    "yr_pusher": ("students", ConsumerScope.PUSH),
    "yr_revoked": ("students", ConsumerScope.READ),
}

# Ids begin at 1. The shipped profiles and plans come first, so the profile of the world is 3.
NEW_ENTRIES: dict[str, dict[str, Any]] = {
    "POST /api/v1/recipient-profiles": {"name": "Nöbet"},
    "POST /api/v1/recipient-channels": {"profileId": 3, "channelType": "sms", "target": "0555 010 20 30"},
    "POST /api/v1/action-plans": {"name": "Sıcaklık"},
    "POST /api/v1/action-plans/{planId}/steps": {"stepOrder": 2, "channelType": "push"},
    "POST /api/v1/action-routes": {"actionPlanId": 1, "stepOrder": 1, "recipientProfileId": 3},
    "POST /api/v1/templates": {"key": "heat.alarm", "locale": "en", "body": "Hot"},
}

IMPOSTORS = {
    "nobody": (401, "token_missing"),
    "forged": (401, "token_invalid"),
    "expired": (401, "token_expired"),
    "wrong_audience": (401, "token_invalid"),
    "unsigned": (401, "token_invalid"),
    "unknown": (401, "user_unknown"),
    "deactivated": (403, "user_deactivated"),
}

AFTER_ACCEPTANCE = {"start", "withdraw", "release"}
UNWITNESSED = {
    "PUT /me/messages/{messageId}/read": "Whether I have read my own message concerns nobody else.",
    "POST /api/v1/templates/{templateId}/preview": "It changes nothing.",
    "POST /api/v1/templates/preview": "It changes nothing.",
    "POST /api/notifications": "Services submit many at once, and one chain would hold them up.",
    "POST /api/v1/actions": "The same.",
    "POST /demo/sign-in": "It changes nothing.",
}
REFUSED_BUT_COUNTED = {"PUT /api/v1/recipient-channels/{channelId}/verification"}
OPEN_TO_ANYONE = {
    *("GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json", "GET /docs", "GET /page-settings.json"),
    # Only of people whom the demo has created, in a copy that allows it: tests/integration/api/test_demo_sign_in.py.
    *("GET /demo/people", "POST /demo/sign-in"),
}


@pytest.fixture
def environ(tmp_path: Path, application_url: str) -> dict[str, Any]:
    """Every route runs as the role that the service has, so that a right that it lacks is found."""
    folders = {"jobs_dir": str(SCRIPTS), "roster_dir": str(tmp_path / "roster")}
    return {"database_url": application_url, "demo_sign_in": True, **folders}


@pytest.fixture(scope="session")
def kept_database(application_url: str) -> Iterator[KeptDatabase]:
    database = KeptDatabase(application_url, pool_size=POOL_SIZE)
    yield database
    database.end()


@pytest.fixture
def client(services: Services) -> Iterator[Any]:
    with first_piece_of_streams(create_app(services)) as app:
        yield app.test_client()


def _body(route: Route, world: World, who: str) -> dict[str, Any]:
    match route.name:
        case "POST /tasks":
            return {} if "elder" in who else {"elderId": world.ids["elder"]}
        case "PUT /tasks/{taskId}/assign":
            return {"studentId": world.ids["student"]}
        case "PUT /tasks/{taskId}/outcome":
            return {"outcome": "HELPED_BY_PHONE"}
        case "PUT /me/location":
            return {"lat": 40.988, "lon": 29.028}
        case "PUT /me/availability" | "PUT /users/{userId}/availability":
            return {"onDuty": True}
        case "PUT /me/devices/{deviceId}":
            return {"token": "t", "platform": "IOS"}
        case "POST /users":
            return {"role": "ELDER", "name": "Fatma"}
        case "POST /api/notifications":
            return {"notificationType": "EMAIL", "recipient": "ayse@ornek.org", "body": "Merhaba"}
        case _ if route.name in NEW_ENTRIES:
            return NEW_ENTRIES[route.name]
        case "PUT /api/v1/recipient-channels/{channelId}/verification":
            return {"code": "123456"}
        case "POST /api/v1/actions":
            return {"actionPlanId": world.entries["planId"], "evaluationKey": "rule-114:1"}
        case "POST /api/v1/dead-letters/redrive" | "POST /api/v1/dead-letters/discard":
            return {"all": True}
        case "POST /api/v1/jobs":
            return {"name": "greet"}
        case "POST /api/v1/roster/consumers":
            return {"kind": "students", "name": "Belediye"}
        case "PATCH /users/{userId}":
            return {"locale": "en"}
        case "POST /api/v1/templates/preview":
            return {"body": "Merhaba"}
        case "POST /demo/sign-in":
            return {"userId": world.ids["elder"]}
        case _:
            return {}


def _call(client: Any, services: Services, route: Route, world: World, who: str) -> Any:
    body = None if route.body is None else _body(route, world, who)
    headers = {"Authorization": f"Bearer {who}"} if who in TOKENS else authorization(world, services, who)
    path = path_of(route, world, device_id="phone")
    content: dict[str, Any] = {"data": packed_bytes(b"")} if route.takes_file else {"json": body}
    return client.open(path, method=route.method, headers=headers, **content)


def _leave_consumers(services: Services) -> None:
    with services.db.transaction() as conn:
        for token, (kind, scope) in TOKENS.items():
            id_ = leave_consumer(conn, kind, scope, token)
            if token == "yr_revoked":
                consumers.revoke_consumer(conn, id_)


@pytest.mark.parametrize("route", ROUTES, ids=[route.name for route in ROUTES])
def test_route_answers_each_caller_as_the_table_says(client: Any, services: Services, cleaner: Engine, route: Route):
    assert route.name in TABLE, "a new route: add to the table who may call it"
    deed = route.path.rpartition("/")[2]
    before = {"assigned": deed in AFTER_ACCEPTANCE, "started": deed == "complete"}
    world = settle_world(services, **before)
    if route.name == "POST /demo/sign-in":
        mark_as_demo_person(services, world.ids["elder"])
    is_open = route.name in OPEN_TO_ANYONE
    for who, (status, code) in IMPOSTORS.items():
        response = _call(client, services, route, world, who)
        if is_open:
            assert response.status_code == 200, who
        else:
            assert (response.status_code, response.get_json(force=True)["code"]) == (status, code), who
            assert ("WWW-Authenticate" in response.headers) == (status == 401), who
    if route.name in CONSUMERS:
        _leave_consumers(services)
        for who, status in zip(TOKENS, CONSUMERS[route.name], strict=True):
            assert _call(client, services, route, world, who).status_code == status, who
    else:
        assert _call(client, services, route, world, "yr_reader").status_code == (200 if is_open else 401)
    untouched = True
    for who, status in zip(WHO, TABLE[route.name], strict=True):
        if not untouched:
            empty_stores(services, cleaner)
            world = settle_world(services, **before)
            if route.name == "POST /demo/sign-in":
                mark_as_demo_person(services, world.ids["elder"])
        response = _call(client, services, route, world, who)
        assert response.status_code == status, (who, response.get_data(as_text=True))
        if status >= 400:
            code = response.get_json(force=True)["code"]
            assert code in {error.code for error in errors_of(route)}, f"{code} is not documented"
        untouched = route.method == "GET" or status in (401, 403, 404)
        is_witnessed = route.method != "GET" and route.name not in UNWITNESSED and who in ("coordinator", "admin")
        if is_witnessed and (status < 400 or (route.name in REFUSED_BUT_COUNTED and not untouched)):
            assert _entries(services) == [(f"user:{world.ids[who]}", route.name, response.headers["X-Request-Id"])], who
        else:
            assert _entries(services) == [], who


def _entries(services: Services) -> list[tuple[str, ...]]:
    """Of the audit trail. A deed may be several transactions, and so several entries."""
    statement = text(
        "SELECT DISTINCT author, subject, metadata ->> 'requestId' FROM audit_entries WHERE author LIKE 'user:%'"
    )
    with services.db.reading() as conn:
        return [tuple(row) for row in conn.execute(statement)]


def test_every_row_of_the_table_is_a_route():
    assert set(TABLE) == {route.name for route in ROUTES}
    assert set(CONSUMERS) == {route.name for route in ROUTES if isinstance(route.who, KindConsumers)}


@pytest.mark.parametrize("route", ROUTES, ids=[route.name for route in ROUTES])
def test_every_route_declares_who_may_call_it(route: Route):
    if isinstance(route.who, Open):
        assert route.name in OPEN_TO_ANYONE
    elif isinstance(route.who, KindConsumers):
        assert "kind" in route.path_parameters
    else:
        assert route.who, "no role may call it"
        assert route.who <= frozenset(Role)
        # An admin may do what a coordinator may.
        assert Role.COORDINATOR not in route.who or Role.ADMIN in route.who


@pytest.mark.parametrize("route", ROUTES, ids=[route.name for route in ROUTES])
def test_every_route_is_documented(route: Route):
    assert route.view.__doc__, "the view needs a docstring, which is its description in /docs"
    assert route.answers
    assert {error.code for error in errors_of(route)}
    assert {status_of(error) for error in route.errors} <= set(TITLES)


def test_page_for_apps_says_what_to_do_on_each_error():
    phones = {Role.ELDER, Role.STUDENT}
    called = [route for route in ROUTES if isinstance(route.who, frozenset) and route.who & phones]
    codes = {error.code for route in called for error in errors_of(route)}
    page = (ROOT / "docs/mobile.md").read_text()
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_flask_serves_exactly_the_routes_of_the_catalogue(services: Services):
    app = create_app(services)
    served = {(rule.rule, method) for rule in app.url_map.iter_rules() for method in rule.methods or ()}
    declared = {(route.rule, route.method) for route in (*ROUTES, *PAGES)}
    assert served - {(rule, "HEAD") for rule, _ in served} == declared


def test_pages_only_show_what_anyone_may_see():
    assert {(route.method, route.who) for route in PAGES} == {("GET", Open.ANYONE)}


def test_routes_have_different_paths_and_view_names():
    paths = [(route.method, route.rule) for route in ROUTES]
    assert len(set(paths)) == len(paths)
    names = [route.view.__name__ for route in ROUTES]
    assert len(set(names)) == len(names)


def test_list_of_tasks_shows_only_tasks_that_the_caller_may_see(client: Any, services: Services):
    world = settle_world(services)
    seen = {
        who: [item["id"] for item in client.get("/tasks", headers=authorization(world, services, who)).json["items"]]
        for who in WHO
    }
    own = [str(world.task_id)]
    assert seen["elder"] == seen["student"] == seen["coordinator"] == seen["admin"] == own
    assert seen["other_elder"] == seen["other_student"] == []
