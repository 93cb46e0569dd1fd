"""What views pass to matching, and what they return to apps."""

from dataclasses import replace
from typing import Any

from app.foundation.errors import TooManyRequests
from app.matching.contract import CurrentOffer, MyOffer, NewTask, Person
from app.matching.rules.states import TaskStatus
from app.users.models import LatLon
from tests.support.api import A_TASK, NOON, SECRET, TASK_ID, FakeMatching, app_on_fakes, bearer
from tests.support.push_service import new_settings


def test_task_has_the_fields_that_apps_use(client: Any):
    response = client.get(f"/tasks/{TASK_ID}", headers=bearer("elder"))
    assert response.content_type == "application/json"
    assert response.get_json() == {
        "id": str(TASK_ID),
        "status": "PENDING",
        "createdAt": "2026-03-12T09:00:00Z",
        "note": "Ekmek",
        "asked": 1,
        "remaining": 2,
        "nextStepAt": "2026-03-12T09:00:00Z",
        "location": {"lat": 40.987, "lon": 29.028},
        "elder": {"id": 1, "name": "Ayşe Yılmaz", "phone": "+905550100002"},
        "student": None,
        "currentOffer": {"deadline": "2026-03-12T09:00:00Z"},
        "outcome": None,
    }


def test_coordinator_sees_the_student_who_is_asked(client: Any, matching: FakeMatching):
    matching.task_shown = replace(A_TASK, current_offer=CurrentOffer(NOON, 2, "Ahmet Çelik"))
    shown = client.get(f"/tasks/{TASK_ID}", headers=bearer("coordinator")).get_json()
    assert shown["currentOffer"] == {
        "deadline": "2026-03-12T09:00:00Z",
        "studentId": 2,
        "studentName": "Ahmet Çelik",
    }


def test_press_creates_a_task_and_a_second_press_finds_it(client: Any, matching: FakeMatching):
    body = {"note": "Ekmek", "location": {"lat": 41, "lon": 29.5}}
    first = client.post("/tasks", json=body, headers=bearer("elder") | {"Idempotency-Key": "press-1"})
    matching.created = False
    second = client.post("/tasks", headers=bearer("elder"))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.headers["Location"] == second.headers["Location"] == f"/tasks/{TASK_ID}"
    assert matching.calls == [
        ("press", 1, NewTask(1, "Ekmek", LatLon(41.0, 29.5)), "press-1"),
        ("press", 1, NewTask(1, None, None), None),
    ]


def test_coordinator_names_the_elder_and_an_elder_presses_only_for_themselves(client: Any, matching: FakeMatching):
    missing = client.post("/tasks", headers=bearer("coordinator"))
    assert missing.get_json(force=True)["errors"][0] == {
        "field": "elderId",
        "message": "is required of coordinators: it tells for whom they call",
        "code": "invalid",
    }
    assert client.post("/tasks", json={"elderId": 1}, headers=bearer("coordinator")).status_code == 201
    assert client.post("/tasks", json={"elderId": 1}, headers=bearer("elder")).status_code == 201
    other = client.post("/tasks", json={"elderId": 9}, headers=bearer("elder"))
    assert (other.status_code, other.get_json(force=True)["code"]) == (403, "not_your_elder")
    assert [call[2].elder_id for call in matching.calls] == [1, 1]


def test_each_deed_calls_matching_and_returns_the_task(client: Any, matching: FakeMatching):
    matching.task_shown = replace(A_TASK, status=TaskStatus.ASSIGNED, student=Person(2, "Ahmet", "+905550100011"))
    deeds = [(deed, "student") for deed in ("accept", "reject", "start", "complete", "withdraw")]
    deeds += [(deed, "coordinator") for deed in ("cancel", "next", "release", "complete")]
    for deed, who in deeds:
        response = client.put(f"/tasks/{TASK_ID}/{deed}", headers=bearer(who))
        assert response.status_code == 200
        assert response.get_json()["student"] == {"id": 2, "name": "Ahmet", "phone": "+905550100011"}
    client.put(f"/tasks/{TASK_ID}/assign", json={"studentId": 2}, headers=bearer("admin"))
    assert [call[0] for call in matching.calls] == [
        *("accept", "reject", "start", "complete", "withdraw"),
        *("cancel", "move_on", "release", "complete", "assign"),
    ]
    assert matching.calls[-1] == ("assign", 4, TASK_ID, 2)


def test_own_offer_is_returned_or_not_found(client: Any, matching: FakeMatching):
    none = client.get("/me/offer", headers=bearer("student"))
    assert (none.status_code, none.data) == (204, b"")
    matching.offer = MyOffer(TASK_ID, NOON, 200.0, "Ayşe", None)
    assert client.get("/me/offer", headers=bearer("student")).get_json() == {
        "taskId": str(TASK_ID),
        "deadline": "2026-03-12T09:00:00Z",
        "distanceM": 200.0,
        "elderName": "Ayşe",
        "note": None,
    }


def test_ranking_of_students_is_returned(client: Any):
    assert client.get(f"/tasks/{TASK_ID}/offers", headers=bearer("coordinator")).get_json()["items"] == [
        {
            "studentId": 2,
            "studentName": "Ahmet Çelik",
            "rank": 1,
            "completedThisMonth": 0,
            "distanceM": 120.0,
            "state": "PENDING",
            "reason": None,
            "offeredAt": "2026-03-12T09:00:00Z",
            "deadline": "2026-03-12T09:00:00Z",
            "closedAt": None,
        }
    ]


def test_location_and_duty_are_passed_to_matching(client: Any, matching: FakeMatching):
    assert client.put("/me/location", json={"lat": 41, "lon": 29}, headers=bearer("student")).status_code == 204
    assert client.put("/me/availability", json={"onDuty": False}, headers=bearer("student")).status_code == 204
    assert matching.calls == [("set_location", 2, LatLon(41.0, 29.0)), ("set_availability", 2, False)]


def test_locations_are_limited_for_each_student_also_without_redis(matching: FakeMatching):
    client = app_on_fakes(matching, settings={"locations_per_minute": 3}).test_client()
    statuses = [client.put("/me/location", json={"lat": 41, "lon": 29}, headers=bearer("student")) for _ in range(4)]
    assert [response.status_code for response in statuses] == [204, 204, 204, 429]
    problem = statuses[-1].get_json(force=True)
    assert problem["code"] == TooManyRequests.code
    assert 1 <= int(statuses[-1].headers["Retry-After"]) <= 60
    assert len(matching.calls) == 3


def test_administrator_cannot_deactivate_themselves(client: Any, matching: FakeMatching):
    response = client.patch("/users/4", json={"active": False}, headers=bearer("admin"))
    assert (response.status_code, response.get_json(force=True)["code"]) == (409, "cannot_deactivate_yourself")
    assert matching.calls == []


def test_healthz_needs_no_store(client: Any):
    assert client.get("/healthz").get_json() == {"status": "ok"}
    assert client.head("/healthz").status_code == 200


def test_pages_learn_their_settings_before_anybody_has_signed_in(client: Any):
    assert client.get("/page-settings.json").get_json() == {
        "demoSignIn": False,
        "signInPage": None,
        "tileAddress": None,
        "tileAttribution": None,
        "vapidPublicKey": None,
        "helpline": None,
        "locale": "tr",
    }


def test_pages_learn_the_key_of_pushes_and_nothing_of_its_private_key():
    keys = new_settings()
    client = app_on_fakes(FakeMatching(), settings=keys).test_client()
    shown = client.get("/page-settings.json")
    assert shown.get_json()["vapidPublicKey"] == keys["vapid_public_key"]
    assert keys["vapid_private_key"] not in shown.text


def test_nobody_signs_in_as_a_demo_person_unless_the_copy_is_local_and_allows_it():
    firebase = {"auth_mode": "firebase", "firebase_project_id": "p", "auth_secret": SECRET, "demo_sign_in": True}
    for settings in ({"demo_sign_in": False}, firebase):
        client = app_on_fakes(FakeMatching(), settings=settings).test_client()
        people = client.get("/demo/people")
        token = client.post("/demo/sign-in", json={"userId": 1})
        assert [answer.get_json(force=True)["code"] for answer in (people, token)] == ["route_unknown"] * 2
        assert client.get("/page-settings.json").get_json()["demoSignIn"] is False
