"""What coordinators and admins change is in the audit trail: who, what, before and after, and the request."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.cli import manage_users
from app.delivery.channels import audit_trail
from app.delivery.channels.audit_list import list_audit_entries
from app.delivery.channels.audit_trail import AuditEntry
from app.settings.settings import Settings
from app.users.models import Caller, Role
from tests.support.world import World

MASKED = "***"


@pytest.fixture
def trail(services: Services) -> Any:
    def read() -> list[AuditEntry]:
        with services.db.reading() as conn:
            return list(reversed(list_audit_entries(conn, limit=200).items))

    return read


def changes(entry: AuditEntry, table: str) -> list[dict[str, Any]]:
    return [one for one in json.loads(entry.metadata)["changes"] if one["table"] == table]


def test_entry_names_the_actor_the_deed_and_the_request(call: Any, world: World, trail: Any) -> None:
    response = call("coordinator", "PUT", f"/tasks/{world.task_id}/cancel", **{"X-Request-Id": "desk-7"})
    assert response.status_code == 200
    [entry] = trail()
    assert entry.author == f"user:{world.ids['coordinator']}"
    assert (entry.subject, entry.recipient) == ("PUT /tasks/{taskId}/cancel", f"/tasks/{world.task_id}/cancel")
    details = json.loads(entry.metadata)
    assert (details["requestId"], details["role"]) == ("desk-7", "COORDINATOR")
    [task] = changes(entry, "tasks")
    assert (task["row"], task["before"], task["after"]) == (
        {"id": str(world.task_id)},
        {"status": "PENDING"},
        {"status": "CANCELLED"},
    )
    [offer] = changes(entry, "offers")
    assert (offer["before"]["state"], offer["after"]["state"]) == ("PENDING", "WITHDRAWN")


def test_personal_data_is_masked(call: Any, world: World, trail: Any) -> None:
    path = f"/users/{world.ids['elder']}"
    changed = {"name": "Gülşen Çağlar", "phone": "+905550109999", "locale": "en"}
    assert call("admin", "PATCH", path, changed).status_code == 200
    [entry] = trail()
    [user] = changes(entry, "users")
    assert user == {
        "table": "users",
        "row": {"id": world.ids["elder"]},
        "before": {"name": MASKED, "phone": MASKED, "locale": "tr"},
        "after": {"name": MASKED, "phone": MASKED, "locale": "en"},
    }


def test_what_became_of_a_task_is_told_with_its_note_masked(
    call: Any, services: Services, world: World, trail: Any
) -> None:
    with services.db.transaction() as conn:
        conn.execute(text("UPDATE students SET on_duty = false"))
    services.matching.move_on(Caller(world.ids["admin"], Role.ADMIN, "", "tr", None), world.task_id)
    body = {"outcome": "HELPED_BY_PHONE", "note": "Kapıcı ilacı aldı"}
    assert call("coordinator", "PUT", f"/tasks/{world.task_id}/outcome", body).status_code == 200
    [entry] = trail()
    assert changes(entry, "task_outcomes") == [
        {
            "table": "task_outcomes",
            "row": {"task_id": str(world.task_id)},
            "before": {"note": None, "outcome": None},
            "after": {"note": MASKED, "outcome": "HELPED_BY_PHONE"},
        }
    ]
    assert call("coordinator", "PUT", f"/tasks/{world.task_id}/outcome", body).status_code == 200
    assert changes(trail()[-1], "task_outcomes") == [], "nothing was changed by the same outcome"


def test_place_and_activity_of_a_student_are_told_with_the_place_masked(call: Any, world: World, trail: Any) -> None:
    """Several transactions are several entries of one request."""
    path = f"/users/{world.ids['student']}"
    body = {"location": {"lat": 41.01, "lon": 28.97}, "active": False}
    response = call("admin", "PATCH", path, body)
    entries = trail()
    assert {json.loads(entry.metadata)["requestId"] for entry in entries} == {response.headers["X-Request-Id"]}
    told = [change["after"] for entry in entries for change in changes(entry, "students")]
    assert [one["location"] for one in told if "location" in one] == [MASKED]
    assert [one["active"] for one in told if "active" in one] == [False]
    assert "41.01" not in str(entries)


def test_new_person_is_masked_too(call: Any, trail: Any) -> None:
    body = {"role": "ELDER", "name": "Fatma Su", "phone": "+905550107777", "location": {"lat": 41.0, "lon": 29.0}}
    assert call("admin", "POST", "/users", body).status_code == 201
    text_of_all = " ".join(f"{entry!r} {entry.metadata} {entry.recipient} {entry.body}" for entry in trail())
    assert not any(word in text_of_all for word in ("Fatma", "0107777", "0101000020E6"))
    [user] = changes(trail()[0], "users")
    assert (user.get("before"), user["after"]["role"], user["after"]["name"]) == (None, "ELDER", MASKED)


def test_words_of_a_template_are_told_and_secrets_are_not(call: Any, world: World, trail: Any) -> None:
    template, channel = (world.entries[name] for name in ("templateId", "channelId"))
    assert call("admin", "PATCH", f"/api/v1/templates/{template}", {"body": "Yeni"}).status_code == 200
    secret = call("admin", "POST", f"/api/v1/recipient-channels/{channel}/secret").json["secret"]
    words, rotated = trail()
    [change] = changes(words, "message_templates")
    assert (change["before"]["body"], change["after"]["body"]) == ("{{ degrees | default(40) }} °C", "Yeni")
    [change] = changes(rotated, "recipient_channels")
    assert change["after"]["secrets"] == MASKED
    assert secret not in rotated.metadata


def test_many_rows_of_one_deed_are_one_entry(call: Any, trail: Any) -> None:
    assert call("admin", "POST", "/api/v1/dead-letters/discard", {"all": True}).json["discarded"] == 2
    [entry] = trail()
    told = [(one["before"]["status"], one["after"]["status"]) for one in changes(entry, "dead_letters")]
    assert told == [("OPEN", "DISCARDED")] * 2


def test_deed_that_is_refused_leaves_no_entry(call: Any, world: World, trail: Any) -> None:
    assert call("coordinator", "PUT", f"/tasks/{world.task_id}/release").status_code == 409
    assert call("coordinator", "PUT", f"/tasks/{world.task_id}/assign", {"studentId": 999}).status_code == 400
    assert trail() == []


def test_elders_and_students_are_not_followed(call: Any, world: World, trail: Any) -> None:
    assert call("student", "PUT", f"/tasks/{world.task_id}/accept").status_code == 200
    assert call("elder", "PUT", f"/tasks/{world.task_id}/cancel").status_code == 200
    assert trail() == []


def test_change_and_entry_are_one_commit(call: Any, services: Services, world: World, trail: Any) -> None:
    """If the entry cannot be written, nothing is changed."""
    with services.db.transaction() as conn:
        conn.execute(text("ALTER TABLE audit_entries ADD CONSTRAINT full_ CHECK (false) NOT VALID"))
    try:
        assert call("coordinator", "PUT", f"/tasks/{world.task_id}/cancel").status_code == 500
    finally:
        with services.db.transaction() as conn:
            conn.execute(text("ALTER TABLE audit_entries DROP CONSTRAINT full_"))
    assert call("coordinator", "GET", f"/tasks/{world.task_id}").json["status"] == "PENDING"
    assert trail() == []


def test_coordinators_at_once_form_one_chain(call: Any, services: Services, world: World, trail: Any) -> None:
    def add(number: int) -> int:
        return call("admin", "POST", "/users", {"role": "ELDER", "name": f"E {number}"}).status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(add, range(24))) == {201}
    assert len(trail()) == 24
    assert audit_trail.verify_audit_trail(services.db).broken_id is None


def test_commands_of_operators_are_followed(settings: Settings, trail: Any) -> None:
    assert manage_users.main(settings, ["add", "--role", "ELDER", "--name", "Fatma Su"]) == 0
    assert manage_users.main(settings, ["list"]) == 0
    [entry] = trail()
    [user] = changes(entry, "users")
    assert (entry.author, entry.subject, user["after"]["name"]) == ("operator", "users", MASKED)


def test_next_request_on_the_same_connection_has_no_author(call: Any, services: Services, world: World) -> None:
    assert call("admin", "PATCH", f"/users/{world.ids['elder']}", {"locale": "en"}).status_code == 200
    for _ in range(20):
        with services.db.transaction() as conn:
            assert conn.execute(text("SELECT current_setting('yaninda.author', true)")).scalar_one() in ("", None)
