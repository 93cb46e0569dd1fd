"""Pages sign in as people of the demo, and as nobody else."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.api.services import Services
from app.api.tokens import LIFETIME_S
from app.users import service as users
from app.users.models import Role
from tests.support.world import World, mark_as_demo_person


@pytest.fixture
def environ() -> dict[str, Any]:
    return {"demo_sign_in": True}


def test_demo_person_is_listed_and_signs_in(call: Any, services: Services, world: World) -> None:
    elder, student = world.ids["elder"], world.ids["student"]
    mark_as_demo_person(services, elder)
    mark_as_demo_person(services, student, Role.STUDENT, 7)
    people = call("nobody", "GET", "/demo/people").json["items"]
    ayse = {"id": elder, "role": "ELDER", "name": "Ayşe Yılmaz", "institutionId": None}
    ahmet = {"id": student, "role": "STUDENT", "name": "Ahmet Çelik", "institutionId": None}
    assert people[0] == {**ayse, "distanceM": 0, "reserved": True}
    assert people[1] == {**ahmet, "distanceM": pytest.approx(111, abs=1), "reserved": False}
    signed_in = call("nobody", "POST", "/demo/sign-in", {"userId": student})
    left = datetime.fromisoformat(signed_in.json["expiresAt"]) - datetime.now(UTC)
    assert LIFETIME_S - 60 < left.total_seconds() <= LIFETIME_S
    me = call("nobody", "GET", "/me", Authorization=f"Bearer {signed_in.json['token']}")
    assert me.json["id"] == student


def test_nobody_signs_in_as_a_person_whom_the_demo_has_not_created(call: Any, services: Services, world: World) -> None:
    ids = world.ids
    mark_as_demo_person(services, ids["elder"], Role.ADMIN, 1)
    mark_as_demo_person(services, ids["other_elder"], Role.ELDER, users.DEMO_COUNTS[Role.ELDER] + 1)
    mark_as_demo_person(services, ids["deactivated"], Role.STUDENT, 1)
    assert call("nobody", "GET", "/demo/people").json == {"items": []}
    for id_ in [*ids.values(), 999_999]:
        refused = call("nobody", "POST", "/demo/sign-in", {"userId": id_})
        assert (refused.status_code, refused.get_json(force=True)["code"]) == (404, "user_not_found"), id_


def test_no_call_makes_a_demo_person(call: Any, world: World) -> None:
    uid = users.demo_key(Role.ELDER, 1)
    added = call("admin", "POST", "/users", {"role": "ELDER", "name": "Fatma", "firebaseUid": uid})
    changed = call("admin", "PATCH", f"/users/{world.ids['elder']}", {"firebaseUid": uid})
    for refused in (added, changed):
        assert (refused.status_code, refused.get_json(force=True)["errors"][0]["field"]) == (400, "firebaseUid")


def test_a_page_whose_name_was_led_to_this_machine_signs_nobody_in(call: Any, services: Services, world: World) -> None:
    elder = world.ids["elder"]
    mark_as_demo_person(services, elder)

    def status(host: str) -> tuple[int, int]:
        listed = call("nobody", "GET", "/demo/people", Host=host)
        return listed.status_code, call("nobody", "POST", "/demo/sign-in", {"userId": elder}, Host=host).status_code

    for host in ("evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example.", "["):
        assert status(host) == (404, 404), host
    for host in ("localhost:8080", "127.0.0.1:8080", "[::1]:8080", "192.168.1.5", "laptop.local", "api"):
        assert status(host) == (200, 200), host
