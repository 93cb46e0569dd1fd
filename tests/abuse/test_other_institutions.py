"""A coordinator of one institution against the elders, tasks and messages of another one: every route is called by
four members of staff. A route that is not in the matrix fails. What a call has done is rolled back, so that all calls
find the same world."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text

from app.api.access import Open
from app.api.routing import Route
from app.api.services import Services
from app.api.views.catalogue import ROUTES
from app.bootstrap.api import create_app
from app.bootstrap.build_services import services_on
from app.settings.settings import Settings
from tests.support.event_streams import first_piece_of_streams
from tests.support.jobs import SCRIPTS
from tests.support.kept_database import KeptDatabase
from tests.support.lists import packed_bytes
from tests.support.rolled_back import RolledBackDatabase
from tests.support.two_institutions import OTHER, secrets_of, settle_two_institutions
from tests.support.world import World, authorization, path_of

WHO = ("own", "other", "none", "admin")
Expected = tuple[int, int, int, int]

ALL: Expected = (200, 200, 200, 200)
NOT_OTHER: Expected = (200, 404, 200, 200)
FOR_STUDENTS: Expected = (403, 403, 403, 403)


def admins(status: int) -> Expected:
    return (403, 403, 403, status)


#                                     own  other none admin
MATRIX: dict[str, Expected] = {
    # The other elder is as unknown as one who does not exist.
    "POST /tasks":                        (200, 400, 200, 200),
    "GET /tasks":                         ALL,
    "GET /tasks/{taskId}":                NOT_OTHER,
    "GET /tasks/{taskId}/events":         NOT_OTHER,
    "GET /events":                        ALL,
    "GET /tasks/{taskId}/offers":         NOT_OTHER,
    "PUT /tasks/{taskId}/accept":         FOR_STUDENTS,
    "PUT /tasks/{taskId}/reject":         FOR_STUDENTS,
    "PUT /tasks/{taskId}/start":          FOR_STUDENTS,
    # Nobody has accepted yet. Only those who see the task are told so.
    "PUT /tasks/{taskId}/complete":       (409, 404, 409, 409),
    "PUT /tasks/{taskId}/withdraw":       FOR_STUDENTS,
    "PUT /tasks/{taskId}/cancel":         NOT_OTHER,
    "PUT /tasks/{taskId}/assign":         NOT_OTHER,
    "PUT /tasks/{taskId}/next":           NOT_OTHER,
    "PUT /tasks/{taskId}/release":        (409, 404, 409, 409),
    "GET /tasks/{taskId}/candidates":     NOT_OTHER,
    "PUT /tasks/{taskId}/outcome":        (409, 404, 409, 409),
    "GET /api/v1/board":                  ALL,
    "GET /api/v1/students":               ALL,
    "GET /api/v1/elders":                 ALL,
    "GET /api/v1/map":                    ALL,
    "GET /api/v1/figures":                ALL,
    "GET /api/v1/health":                 ALL,
    "GET /me":                            ALL,
    "GET /me/offer":                      FOR_STUDENTS,
    "PUT /me/location":                   FOR_STUDENTS,
    "PUT /me/availability":               FOR_STUDENTS,
    "PUT /me/devices/{deviceId}":         (204, 204, 204, 204),
    "DELETE /me/devices/{deviceId}":      (404, 404, 404, 404),
    "GET /me/messages":                   ALL,
    "PUT /me/messages/{messageId}/read":  (404, 404, 404, 404),
    "GET /me/pushes":                     ALL,
    "POST /users":                        admins(201),
    "GET /users":                         admins(200),
    "GET /users/{userId}":                admins(200),
    "PATCH /users/{userId}":              admins(200),
    # The student is of the other institution, and is asked for an elder of the own.
    "PUT /users/{userId}/availability":   (204, 204, 204, 204),
    "POST /api/notifications":            (202, 400, 202, 202),
    "GET /api/notifications":             ALL,
    "GET /api/notifications/{notificationId}": NOT_OTHER,
    "GET /api/v1/recipient-profiles":     ALL,
    # One without an institution keeps only their own profile.
    "POST /api/v1/recipient-profiles":    (201, 201, 403, 201),
    "GET /api/v1/recipient-profiles/{profileId}": NOT_OTHER,
    "PATCH /api/v1/recipient-profiles/{profileId}": (200, 404, 403, 200),
    "DELETE /api/v1/recipient-profiles/{profileId}": (204, 404, 403, 204),
    "GET /api/v1/recipient-channels":     ALL,
    "POST /api/v1/recipient-channels":    (201, 400, 403, 201),
    "GET /api/v1/recipient-channels/{channelId}": NOT_OTHER,
    "PATCH /api/v1/recipient-channels/{channelId}": (200, 404, 403, 200),
    "DELETE /api/v1/recipient-channels/{channelId}": (204, 404, 403, 204),
    "POST /api/v1/recipient-channels/{channelId}/secret": (200, 404, 403, 200),
    "DELETE /api/v1/recipient-channels/{channelId}/secret/previous": (204, 404, 403, 204),
    "POST /api/v1/recipient-channels/{channelId}/verification": (202, 404, 403, 202),
    "PUT /api/v1/recipient-channels/{channelId}/verification": (409, 404, 403, 409),
    "GET /api/v1/action-plans":           ALL,
    "POST /api/v1/action-plans":          admins(201),
    "GET /api/v1/action-plans/{planId}":  ALL,
    "PATCH /api/v1/action-plans/{planId}": admins(200),
    "DELETE /api/v1/action-plans/{planId}": admins(204),
    "GET /api/v1/action-plans/{planId}/steps": ALL,
    "POST /api/v1/action-plans/{planId}/steps": admins(201),
    "GET /api/v1/action-plans/{planId}/steps/{stepId}": ALL,
    "PATCH /api/v1/action-plans/{planId}/steps/{stepId}": admins(200),
    "DELETE /api/v1/action-plans/{planId}/steps/{stepId}": admins(204),
    "GET /api/v1/action-routes":          ALL,
    "POST /api/v1/action-routes":         admins(201),
    "GET /api/v1/action-routes/{routeId}": ALL,
    "PATCH /api/v1/action-routes/{routeId}": admins(200),
    "DELETE /api/v1/action-routes/{routeId}": admins(204),
    "GET /api/v1/templates":              ALL,
    "POST /api/v1/templates":             admins(201),
    "GET /api/v1/templates/{templateId}": ALL,
    "PATCH /api/v1/templates/{templateId}": admins(200),
    "DELETE /api/v1/templates/{templateId}": admins(204),
    "POST /api/v1/templates/{templateId}/preview": ALL,
    "POST /api/v1/templates/preview":     admins(200),
    "POST /api/v1/actions":               (202, 400, 202, 202),
    "GET /api/v1/actions":                ALL,
    "GET /api/v1/actions/{actionId}":     NOT_OTHER,
    "GET /api/v1/dead-letters":           ALL,
    "GET /api/v1/dead-letters/{deadLetterId}": NOT_OTHER,
    "POST /api/v1/dead-letters/{deadLetterId}/redrive": NOT_OTHER,
    "POST /api/v1/dead-letters/redrive":  admins(200),
    "POST /api/v1/dead-letters/{deadLetterId}/discard": NOT_OTHER,
    "POST /api/v1/dead-letters/discard":  admins(200),
    "POST /api/v1/jobs":                  admins(202),
    "GET /api/v1/jobs":                   admins(200),
    "GET /api/v1/jobs/catalogue":         admins(200),
    "GET /api/v1/jobs/{jobId}":           admins(200),
    "PUT /api/v1/jobs/{jobId}/cancel":    admins(200),
    "GET /api/v1/jobs/{jobId}/artifacts/{artifactName}": admins(200),
    "GET /api/v1/roster/runs":            admins(200),
    "GET /api/v1/roster/runs/{runId}":    admins(200),
    "POST /api/v1/roster/runs/{runId}/approve": admins(200),
    "PUT /api/v1/roster/{kind}/lists/{listName}": admins(200),
    "GET /api/v1/{kind}/changes":         admins(200),
    "GET /api/v1/{kind}/archives/latest": admins(404),
    "POST /api/v1/roster/consumers":      admins(201),
    "GET /api/v1/roster/consumers":       admins(200),
    "DELETE /api/v1/roster/consumers/{consumerId}": admins(204),
    "GET /api/v1/audit":                  admins(200),
    "GET /healthz":                       ALL,
    "GET /readyz":                        ALL,
    "GET /metrics":                       ALL,
    "GET /openapi.json":                  ALL,
    "GET /docs":                          ALL,
    "GET /page-settings.json":            ALL,
    # The copy does not allow it.
    "GET /demo/people":                   (404, 404, 404, 404),
    "POST /demo/sign-in":                 (404, 404, 404, 404),
}  # fmt: skip


def body_of(route: Route, world: World) -> dict[str, Any]:
    ids, entries = world.ids, world.entries
    return {
        "POST /tasks": {"elderId": ids["elder"]},
        "PUT /tasks/{taskId}/assign": {"studentId": ids["student"]},
        "PUT /tasks/{taskId}/outcome": {"outcome": "NOT_REACHED"},
        "PUT /me/location": {"lat": 40.988, "lon": 29.028},
        "PUT /me/availability": {"onDuty": True},
        "PUT /users/{userId}/availability": {"onDuty": False},
        "PUT /me/devices/{deviceId}": {"token": "t", "platform": "IOS"},
        "POST /users": {"role": "ELDER", "name": "Fatma"},
        "POST /api/notifications": {
            "notificationType": "IN_APP",
            "recipient": f"user:{ids['elder']}",
            "body": "Merhaba",
        },
        "POST /api/v1/recipient-profiles": {"name": "Nöbet"},
        "POST /api/v1/recipient-channels": {
            "profileId": entries["profileId"],
            "channelType": "sms",
            "target": "0555 010 20 30",
        },
        "PUT /api/v1/recipient-channels/{channelId}/verification": {"code": "123456"},
        "POST /api/v1/action-plans": {"name": "Sıcaklık"},
        "POST /api/v1/action-plans/{planId}/steps": {"stepOrder": 2, "channelType": "push"},
        "POST /api/v1/action-routes": {"actionPlanId": 1, "stepOrder": 1, "recipientProfileId": entries["profileId"]},
        "POST /api/v1/templates": {"key": "heat.alarm", "locale": "en", "body": "Hot"},
        "POST /api/v1/templates/preview": {"body": "Merhaba"},
        "POST /api/v1/actions": {
            "planKey": "matching.started",
            "evaluationKey": "rule-114:1",
            "personId": ids["elder"],
        },
        "POST /api/v1/dead-letters/redrive": {"all": True},
        "POST /api/v1/dead-letters/discard": {"all": True},
        "POST /api/v1/jobs": {"name": "greet"},
        "POST /api/v1/roster/consumers": {"kind": "students", "name": "Belediye"},
        "PATCH /users/{userId}": {"locale": "en"},
        "POST /demo/sign-in": {"userId": ids["elder"]},
    }.get(route.name, {})


class Town:
    """The app on a database that forgets what each call did, unless the test says otherwise."""

    def __init__(self, services: Services, db: RolledBackDatabase, app: Flask) -> None:
        self.services = services
        self.db = db
        self.world = settle_two_institutions(services)
        self._app = app

    def call(self, who: str, method: str, path: str, json: Any = None, **headers: str) -> Any:
        known = authorization(self.world, self.services, who)
        return self._app.test_client().open(path, method=method, json=json, headers=known | headers)

    def call_route(self, who: str, route: Route) -> Any:
        world = self.world
        path = path_of(route, world, device_id="a-phone")
        given: dict[str, Any] = {}
        if route.takes_file:
            given = {"data": packed_bytes(b"")}
        elif route.body is not None:
            given = {"json": body_of(route, world)}
        headers = authorization(world, self.services, who)
        with self.db.undone():
            return self._app.test_client().open(path, method=route.method, headers=headers, **given)

    def execute(self, statement: str, **values: Any) -> Any:
        with self.db.transaction() as conn:
            return conn.execute(text(statement), values)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, Any]:
    return {"jobs_dir": str(SCRIPTS), "roster_dir": str(tmp_path / "roster")}


@pytest.fixture
def town(settings: Settings, clean_stores: None, kept_database: KeptDatabase) -> Iterator[Town]:
    db = RolledBackDatabase(kept_database)
    services = services_on(db, db, settings, pool_size=8)
    with first_piece_of_streams(create_app(services)) as app:
        yield Town(services, db, app)
    services.close()


def test_every_route_answers_each_institution_as_the_matrix_says(town: Town) -> None:
    assert set(MATRIX) == {route.name for route in ROUTES}, "a new route: add to the matrix what each caller gets"
    secrets = secrets_of(town.world, town.services)
    wrong: list[tuple[Any, ...]] = []
    for route in ROUTES:
        for who, status in zip(WHO, MATRIX[route.name], strict=True):
            answer = town.call_route(who, route)
            if answer.status_code != status:
                wrong.append((route.name, who, answer.status_code, answer.get_data(as_text=True)[:200]))
            # The documentation has examples.
            is_private = who == "other" and not isinstance(route.who, Open)
            told = [secret for secret in secrets if is_private and secret in answer.get_data(as_text=True)]
            if told:
                wrong.append((route.name, "tells the other institution", told))
    assert wrong == []


def items(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.json["items"]


LISTS = (
    "/tasks",
    "/api/v1/board",
    "/api/v1/elders",
    "/api/notifications",
    "/api/v1/actions",
    "/api/v1/dead-letters",
    "/api/v1/recipient-channels",
)


def test_lists_filters_and_cursors_tell_nothing_about_others(town: Town) -> None:
    last = "ffffffff-ffff-7fff-bfff-ffffffffffff"
    for path in LISTS:
        assert items(town.call("own", "GET", path)), path
        cursor = "9223372036854775807" if "recipient" in path or "elders" in path else last
        for query in ("?limit=1", f"?limit=1&cursor={cursor}"):
            assert town.call("other", "GET", path + query).json == {"items": [], "nextCursor": None}, path
    elder, profile = town.world.ids["elder"], town.world.entries["profileId"]
    for path in (
        f"/api/notifications?recipientUserId={elder}",
        "/api/notifications?status=DEAD",
        "/tasks?status=PENDING",
        "/api/v1/dead-letters?status=OPEN",
        f"/api/v1/recipient-channels?profileId={profile}",
        "/api/v1/recipient-profiles?deviceId=400000011D081B70",
    ):
        assert items(town.call("own", "GET", path)), path
        assert town.call("other", "GET", path).json == {"items": [], "nextCursor": None}, path


def test_foreign_people_are_refused_like_people_who_do_not_exist(town: Town) -> None:
    ids, task = town.world.ids, town.world.task_id
    push = {"notificationType": "PUSH", "body": "Merhaba"}
    action = {"planKey": "matching.started", "evaluationKey": "k"}

    def bodies(id_: int) -> list[tuple[str, dict[str, Any]]]:
        to_person = push | {"recipient": f"user:{id_}"}
        return [
            ("/tasks", {"elderId": id_}),
            ("/api/v1/actions", action | {"personId": id_}),
            ("/api/notifications", to_person),
            ("/api/notifications", to_person | {"expiresAt": "2000-01-01T00:00:00Z", "body": ""}),
        ]

    for (path, foreign_body), (_, unknown_body) in zip(bodies(ids["elder"]), bodies(999_999), strict=True):
        foreign, unknown = (town.call("other", "POST", path, body) for body in (foreign_body, unknown_body))
        assert (foreign.status_code, foreign.json) == (400, unknown.json), path
    stranger, unknown = (
        town.call("own", "PUT", f"/tasks/{task}/assign", {"studentId": id_}) for id_ in (ids["stranger"], 999_999)
    )
    assert (stranger.status_code, stranger.json) == (400, unknown.json)


def test_a_student_of_another_institution_who_was_asked_may_be_assigned(town: Town) -> None:
    answer = town.call("own", "PUT", f"/tasks/{town.world.task_id}/assign", {"studentId": town.world.ids["student"]})
    assert (answer.status_code, answer.json["student"]["id"]) == (200, town.world.ids["student"])
    assert items(town.call("other", "GET", "/tasks")) == [], "their own student does not show them the task"


def test_a_task_follows_its_elder_and_its_messages_stay(town: Town) -> None:
    path = f"/tasks/{town.world.task_id}"
    before = len(items(town.call("own", "GET", "/api/notifications")))
    town.execute("UPDATE users SET institution_id = :id WHERE id = :elder", id=OTHER, elder=town.world.ids["elder"])
    assert [town.call(who, "GET", path).status_code for who in WHO] == [404, 200, 200, 200]
    assert town.call("own", "PUT", f"{path}/cancel").status_code == 404
    assert town.call("other", "PUT", f"{path}/cancel").status_code == 200
    assert len(items(town.call("own", "GET", "/api/notifications"))) == before
    new = items(town.call("other", "GET", "/api/notifications"))
    assert {item["taskId"] for item in new} == {str(town.world.task_id)}, "the messages since then are theirs"


def test_keys_of_another_caller_show_nothing(town: Town) -> None:
    mail = {"notificationType": "EMAIL", "recipient": "ayse@ornek.org", "body": "Merhaba"}
    own, other = (town.call(who, "POST", "/api/notifications", mail, **{"Idempotency-Key": "k"}) for who in WHO[:2])
    assert own.status_code == other.status_code == 202
    assert own.json["id"] != other.json["id"]
    assert town.call("other", "GET", f"/api/notifications/{own.json['id']}").status_code == 404
    action = {"planKey": "matching.started", "evaluationKey": "k", "variables": {"student": "Gizli"}}
    assert town.call("own", "POST", "/api/v1/actions", action).status_code == 202
    answer = town.call("other", "POST", "/api/v1/actions", {**action, "variables": {}})
    assert "Gizli" not in answer.get_data(as_text=True)


def test_nobody_takes_the_messages_of_another_person_or_device(town: Town) -> None:
    ids, profiles = town.world.ids, "/api/v1/recipient-profiles"
    own = town.call("own", "POST", profiles, {"name": "Zeynep", "userId": ids["own"]}).json["id"]
    target = {"profileId": own, "channelType": "email", "target": "zeynep@ornek.org"}
    assert town.call("own", "POST", "/api/v1/recipient-channels", target).status_code == 201
    refused = {
        ("own", own, "userId", ids["elder"]): 403,
        ("own", own, "institutionId", OTHER): 403,
        # The channel was verified for Zeynep, so not even an administrator gives it to the elder.
        ("admin", own, "userId", ids["elder"]): 409,
        ("own", town.world.entries["profileId"], "userId", ids["elder"]): 403,
        ("own", town.world.entries["profileId"], "institutionId", OTHER): 403,
    }
    for (who, profile, field, value), status in refused.items():
        assert town.call(who, "PATCH", f"{profiles}/{profile}", {field: value}).status_code == status, (who, field)
    of_elder = {"name": "Ayşe", "userId": ids["elder"]}
    assert town.call("own", "POST", profiles, of_elder).status_code == 403
    assert town.call("other", "POST", profiles, {"name": "x", "deviceId": "400000011D081B70"}).status_code == 400
    to_other = {"profileId": own, "channelType": "in_app", "target": f"user:{ids['elder']}"}
    assert town.call("own", "POST", "/api/v1/recipient-channels", to_other).status_code == 400


def test_the_profile_of_an_institution_gets_nothing_about_the_elders_of_another(town: Town) -> None:
    """An administrator routed a step to both institutions: each hears of its own elders."""
    town.execute("UPDATE users SET institution_id = :id WHERE id = :elder", id=OTHER, elder=town.world.ids["elder"])
    action = {"actionPlanId": town.world.entries["planId"], "evaluationKey": "k", "personId": town.world.ids["elder"]}
    steps = town.call("none", "POST", "/api/v1/actions", action).json["steps"]
    assert [(step["state"], step["notifications"]) for step in steps] == [("SKIPPED", [])]
