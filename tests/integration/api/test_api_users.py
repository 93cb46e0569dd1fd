"""Users, their phones and their notifications over HTTP, on real stores."""

import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.bootstrap.api import create_app
from app.db.database import Database
from app.foundation.logs import configure_logs
from app.redis_store.limits import PerUserLimit
from tests.support.push_service import Browser
from tests.support.world import PEOPLE, World, authorization


def code(response: Any) -> str:
    return response.get_json(force=True)["code"]


def test_user_is_added_shown_and_listed(call: Any):
    body = {
        "role": "ELDER",
        "name": "  Gülşen Çağlar  ",
        "phone": "+90 (555) 010-20 30",
        "location": {"lat": 40.99, "lon": 29},
        "institutionId": 3,
        "firebaseUid": "uid-9",
    }
    created = call("admin", "POST", "/users", body)
    assert created.status_code == 201
    user = created.json
    assert created.headers["Location"] == f"/users/{user['id']}"
    assert user.pop("createdAt").endswith("Z")
    assert user == {
        "id": user["id"],
        "role": "ELDER",
        "name": "Gülşen Çağlar",
        "phone": "+905550102030",
        "locale": "tr",
        "location": {"lat": 40.99, "lon": 29.0},
        "institutionId": 3,
        "firebaseUid": "uid-9",
        "active": True,
        "onDuty": None,
    }
    assert call("admin", "GET", f"/users/{user['id']}").json["name"] == "Gülşen Çağlar"
    assert call("admin", "GET", "/users").json["items"][0]["id"] == user["id"]
    assert code(call("admin", "GET", "/users/99999")) == "user_not_found"


def test_new_student_is_on_duty_and_can_get_offers(call: Any, db: Database):
    body = {"role": "STUDENT", "name": "Ece", "location": {"lat": 40.9871, "lon": 29.028}}
    student = call("admin", "POST", "/users", body).json
    assert (student["onDuty"], student["location"]) == (True, {"lat": 40.9871, "lon": 29.028})
    with db.transaction() as conn:
        row = conn.execute(
            text("SELECT available, location_at FROM students WHERE id = :id"), {"id": student["id"]}
        ).one()
        assert row.available
        assert row.location_at is not None
        assert conn.execute(text("SELECT home FROM users WHERE id = :id"), {"id": student["id"]}).scalar_one() is None


def test_inactive_student_is_never_available(call: Any, db: Database):
    body = {"role": "STUDENT", "name": "Ece", "location": {"lat": 40.9871, "lon": 29.028}, "active": False}
    student = call("admin", "POST", "/users", body).json
    with db.transaction() as conn:
        found = conn.execute(text("SELECT available FROM students WHERE id = :id"), {"id": student["id"]})
        assert found.scalar_one() is False


def test_firebase_uid_belongs_to_one_user(call: Any, world: World):
    body = {"role": "ELDER", "name": "Fatma", "firebaseUid": "uid-1"}
    assert call("admin", "POST", "/users", body).status_code == 201
    again = call("admin", "POST", "/users", body)
    assert (again.status_code, code(again)) == (409, "firebase_uid_taken")
    other = call("admin", "PATCH", f"/users/{world.ids['elder']}", {"firebaseUid": "uid-1"})
    assert (other.status_code, code(other)) == (409, "firebase_uid_taken")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("search=hüseyin", ["other_elder"]),
        ("search=OZTURK", ["other_elder"]),
        ("search=%2B90%20555%20010%2000%2003", ["other_student"]),
        ("search=ce&role=STUDENT", ["student", "deactivated"]),
        ("search=ce&active=false", ["deactivated"]),
        ("active=false", ["deactivated"]),
        ("search=nobody", []),
    ],
)
def test_users_are_searched(call: Any, world: World, query: str, found: list[str]):
    answer = call("admin", "GET", f"/users?{query}")
    assert sorted(user["id"] for user in answer.json["items"]) == sorted(world.ids[who] for who in found)


def test_user_is_found_by_id(call: Any, world: World):
    assert world.ids["admin"] in {
        user["id"] for user in call("admin", "GET", f"/users?search={world.ids['admin']}").json["items"]
    }


def test_users_are_paginated_newest_first(call: Any, world: World):
    seen: list[int] = []
    cursor = ""
    for _ in range(10):
        page = call("admin", "GET", f"/users?limit=3{cursor}").json
        seen += [item["id"] for item in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == sorted(world.ids.values(), reverse=True)
    students = call("admin", "GET", "/users?role=STUDENT").json["items"]
    assert {item["id"] for item in students} == {world.ids[who] for who in ("student", "other_student", "deactivated")}


@pytest.mark.parametrize("path", ["/users", "/tasks", "/api/notifications"])
@pytest.mark.parametrize("cursor", ["x", "0x10", "-1", "9" * 40, "00000000-0000-0000-0000-00000000000g", "1e5", "~"])
def test_invalid_cursor_is_refused(call: Any, path: str, cursor: str):
    response = call("admin", "GET", f"{path}?cursor={cursor}")
    assert response.status_code == 400
    assert response.get_json(force=True)["errors"][0]["field"] == "cursor"


def test_patch_changes_only_the_given_fields(call: Any, world: World):
    path = f"/users/{world.ids['elder']}"
    before = call("admin", "GET", path).json
    assert call("admin", "PATCH", path, {}).json == before
    changed = call(
        "admin", "PATCH", path, {"name": "Ayşe Kaya", "phone": None, "locale": "en", "institutionId": 7}
    ).json
    assert changed == before | {"name": "Ayşe Kaya", "phone": None, "locale": "en", "institutionId": 7}
    moved = call("admin", "PATCH", path, {"location": {"lat": 41, "lon": 29}}).json
    assert moved["location"] == {"lat": 41.0, "lon": 29.0}
    assert call("admin", "PATCH", path, {"location": None}).json["location"] is None


@pytest.mark.parametrize("body", [{"role": "ADMIN"}, {"name": None}, {"active": None}, {"locale": None}, {"id": 1}])
def test_patch_of_a_fixed_field_is_refused(call: Any, world: World, body: dict[str, Any]):
    response = call("admin", "PATCH", f"/users/{world.ids['elder']}", body)
    assert (response.status_code, code(response)) == (400, "invalid_input")


def test_deactivated_student_loses_the_offer_and_the_access(call: Any, world: World):
    assert call("student", "GET", "/me/offer").status_code == 200
    path = f"/users/{world.ids['student']}"
    assert call("admin", "PATCH", path, {"active": False}).json["active"] is False
    assert code(call("student", "GET", "/me")) == "user_deactivated"
    offers = call("coordinator", "GET", f"/tasks/{world.task_id}/offers").json["items"]
    assert [item["state"] for item in offers] == ["WITHDRAWN"]
    assert call("admin", "PATCH", path, {"active": True}).json["active"] is True
    assert call("student", "GET", "/me").status_code == 200


def test_admin_can_move_a_student_but_not_remove_the_location(call: Any, world: World):
    path = f"/users/{world.ids['other_student']}"
    assert call("admin", "PATCH", path, {"location": {"lat": 41.5, "lon": 29}}).json["location"]["lat"] == 41.5
    nowhere = call("admin", "PATCH", path, {"location": None})
    assert (nowhere.status_code, code(nowhere)) == (400, "invalid_value")
    assert code(call("admin", "PATCH", "/users/99999", {"name": "X"})) == "user_not_found"


def test_phone_belongs_to_the_user_who_signed_in_last(call: Any, world: World, db: Database):
    body = {"token": "token-of-the-elder", "platform": "ANDROID"}
    assert call("student", "PUT", "/me/devices/phone", body).status_code == 204
    assert _devices(db) == [("phone", world.ids["student"], "token-of-the-elder")]
    gone = call("elder", "DELETE", "/me/devices/phone")
    assert (gone.status_code, code(gone)) == (404, "device_not_found")
    assert call("student", "DELETE", "/me/devices/phone").status_code == 204
    assert _devices(db) == []


def test_phone_of_another_user_is_not_taken_over_without_its_token(call: Any, world: World, db: Database):
    before = _devices(db)
    taken = call("student", "PUT", "/me/devices/phone", {"token": "another", "platform": "ANDROID"})
    assert (taken.status_code, code(taken)) == (409, "device_taken")
    assert _devices(db) == before
    assert call("elder", "PUT", "/me/devices/phone", {"token": "renewed", "platform": "ANDROID"}).status_code == 204
    assert [row[2] for row in _devices(db)] == ["renewed"]


def test_newest_ten_phones_of_a_user_are_kept(call: Any, world: World, db: Database):
    for number in range(100, 115):
        body = {"token": f"token-{number}", "platform": "WEB"}
        assert call("student", "PUT", f"/me/devices/{number}", body).status_code == 204
    assert call("student", "PUT", "/me/devices/105", {"token": "renewed", "platform": "WEB"}).status_code == 204
    own = [row[0] for row in _devices(db) if row[1] == world.ids["student"]]
    assert own == [str(number) for number in range(105, 115)]
    assert ("phone", world.ids["elder"], "token-of-the-elder") in _devices(db), "nobody else loses a phone"


def test_token_registered_for_another_phone_moves_to_it(call: Any, world: World, db: Database):
    body = {"token": "token-of-the-elder", "platform": "IOS", "addressKind": "FID"}
    assert call("student", "PUT", "/me/devices/tablet", body).status_code == 204
    assert _devices(db) == [("tablet", world.ids["student"], "token-of-the-elder")]


def test_parallel_registrations_of_one_token_leave_one_device(app: Any, services: Services, world: World, db: Database):
    def register(number: int) -> int:
        headers = authorization(world, services, "elder" if number % 2 else "student")
        body = {"token": "the-same", "platform": "ANDROID"}
        return app.test_client().put(f"/me/devices/phone-{number}", json=body, headers=headers).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(register, range(16))) == {204}
    assert len([row for row in _devices(db) if row[2] == "the-same"]) == 1


SUBSCRIPTION = Browser("https://updates.push.example/wpush/v2/1").subscription


def browser(**changes: Any) -> dict[str, Any]:
    return {
        "token": json.dumps(SUBSCRIPTION, separators=(",", ":")),
        "platform": "WEB",
        "addressKind": "WEB_PUSH",
    } | changes


def test_subscription_of_a_page_is_a_device(call: Any, world: World, db: Database):
    assert call("student", "PUT", "/me/devices/page", browser()).status_code == 204
    keys = {"auth": SUBSCRIPTION["keys"]["auth"], "p256dh": SUBSCRIPTION["keys"]["p256dh"]}
    [token] = [row[2] for row in _devices(db) if row[0] == "page"]
    assert json.loads(token) == {"endpoint": SUBSCRIPTION["endpoint"], "keys": keys}
    assert call("student", "DELETE", "/me/devices/page").status_code == 204


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"token": "token-of-a-phone"}, "token"), ({"token": "{}"}, "token"), ({"platform": "ANDROID"}, "platform")],
)
def test_anything_else_is_no_device_of_a_browser(call: Any, changes: dict[str, str], field: str):
    response = call("student", "PUT", "/me/devices/page", browser(**changes))
    assert (response.status_code, response.json["code"]) == (400, "invalid_value")
    assert [error["field"] for error in response.json["errors"]] == [field]


def _devices(db: Database) -> list[tuple[Any, ...]]:
    with db.transaction() as conn:
        return [tuple(row) for row in conn.execute(text("SELECT device_id, user_id, token FROM devices ORDER BY 1"))]


def test_me_shows_duty_offer_and_open_task(call: Any, world: World):
    student = call("student", "GET", "/me").json
    assert student["onDuty"] is True
    assert student["openTask"] is None
    assert student["offer"]["taskId"] == str(world.task_id)
    assert student["offer"]["elderName"] == "Ayşe"
    elder = call("elder", "GET", "/me").json
    assert elder["openTask"]["id"] == str(world.task_id)
    assert (elder["onDuty"], elder["offer"]) == (None, None)
    assert call("coordinator", "GET", "/me").json["openTask"] is None
    call("student", "PUT", f"/tasks/{world.task_id}/accept")
    student = call("student", "GET", "/me").json
    assert (student["openTask"]["id"], student["offer"]) == (str(world.task_id), None)
    assert call("student", "GET", "/me/offer").status_code == 204


@pytest.mark.parametrize("environ", [{"helpline_phone": "+90 216 555 00 00"}])
def test_me_shows_whom_to_call_and_the_clock_of_the_database(call: Any, db: Database):
    before = db.now()
    me = call("coordinator", "GET", "/me").json
    assert (me["helpline"], me["institutionId"]) == ("+902165550000", None)
    assert before <= datetime.fromisoformat(me["serverTime"]) <= db.now() + timedelta(milliseconds=1)


def test_duty_is_stored(call: Any):
    assert call("student", "PUT", "/me/availability", {"onDuty": False}).status_code == 204
    assert call("student", "GET", "/me").json["onDuty"] is False


def test_coordinators_see_the_notifications_of_a_user(call: Any, world: World):
    page = call("coordinator", "GET", "/api/notifications").json
    assert page["nextCursor"] is None
    to_student = call("coordinator", "GET", f"/api/notifications?recipientUserId={world.ids['student']}").json["items"]
    assert len(to_student) == 1
    shown = to_student[0]
    assert {
        "id",
        "notificationType",
        "recipient",
        "subject",
        "body",
        "priority",
        "status",
        "metadata",
        "createdAt",
    } <= set(shown)
    assert shown["metadata"]["data"]["taskId"] == str(world.task_id)
    [given_up] = call("coordinator", "GET", "/api/notifications?status=DEAD").json["items"]
    assert given_up["recipientUserId"] == world.ids["elder"]
    assert call("coordinator", "GET", "/api/notifications?status=ACCEPTED&notificationType=PUSH").json["items"]
    in_full = call("coordinator", "GET", f"/api/notifications/{shown['id']}").json
    assert in_full == shown | {"attempts": []}
    missing = call("coordinator", "GET", f"/api/notifications/{world.task_id}")
    assert (missing.status_code, code(missing)) == (404, "not_found")


def test_location_limit_is_shared_through_redis(services: Services, world: World):
    settings = services.settings
    per_minute = settings.locations_per_minute
    another = replace(services, location_limit=PerUserLimit("location", per_minute, settings.redis_url))
    apps = [create_app(services), create_app(another)]
    headers = authorization(world, services, "student")
    body = {"lat": 40.988, "lon": 29.028}
    statuses = [
        apps[number % 2].test_client().put("/me/location", json=body, headers=headers).status_code
        for number in range(per_minute + 3)
    ]
    # The sliding window is an estimate: at the border of two windows one more request may pass.
    assert statuses[:per_minute] == [204] * per_minute
    assert statuses[-1] == 429
    other = (
        apps[0].test_client().put("/me/location", json=body, headers=authorization(world, services, "other_student"))
    )
    assert other.status_code == 204
    another.location_limit.close()


def test_log_holds_no_personal_data(call: Any, services: Services, world: World, monkeypatch: pytest.MonkeyPatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logs("DEBUG", as_json=True)
    task = f"/tasks/{world.task_id}"
    person = {"role": "STUDENT", "name": "Gülşen Çağlar", "phone": "+905550999999", "firebaseUid": "uid-secret"}
    here = {"lat": 40.98765, "lon": 29.01234}
    call("admin", "POST", "/users", person | {"location": here})
    call("admin", "POST", "/users", person)
    call("admin", "PATCH", f"/users/{world.ids['elder']}", {"name": "Ayşe Kaya", "phone": "+905550888888"})
    call("student", "PUT", "/me/location", here)
    call("student", "PUT", "/me/devices/phone-1", {"token": "device-secret", "platform": "IOS"})
    call("student", "PUT", f"{task}/accept")
    call("coordinator", "PUT", f"{task}/release")
    call("other_elder", "POST", "/tasks", {"note": "Ekmek ve insülin", "location": here})
    call("elder", "PUT", f"{task}/cancel?why=insülin")
    call("forged", "GET", "/me")
    call("elder", "GET", "/tasks", Authorization="Bearer token-secret")
    log = written.getvalue()
    assert log.count('"event": "request"') == 11
    tokens = [authorization(world, services, who)["Authorization"].split()[1] for who in ("elder", "admin", "forged")]
    names = [name for _, name, _ in PEOPLE.values()]
    personal = [
        *names,
        *tokens,
        "Gülşen",
        "Kaya",
        "+90555",
        "secret",
        "40.98765",
        "29.01234",
        "Ekmek",
        "insülin",
        "Ayşe",
    ]
    for word in personal:
        assert word not in log, word
        assert json.dumps(word)[1:-1] not in log, word
