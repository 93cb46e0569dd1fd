"""Submit a notification over HTTP: accepted when it is committed, refused with all errors at once."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from app.api.services import Services
from app.bootstrap.api import create_app
from tests.support.delivery import row, statuses
from tests.support.world import World, authorization, settle_world

MAIL = {
    "notificationType": "EMAIL",
    "recipient": "ayse@ornek.org",
    "subject": "Merhaba",
    "body": "Hoş geldiniz",
    "priority": "NORMAL",
    "metadata": {"campaignId": "123"},
}
PATH = "/api/notifications"


@dataclass
class NotificationApi:
    services: Services
    app: Any
    world: World

    def post(self, body: Any, *, who: str = "coordinator", key: str | None = None, **headers: str) -> Any:
        headers |= authorization(self.world, self.services, who) | ({"Idempotency-Key": key} if key else {})
        return self.app.test_client().post(PATH, json=body, headers=headers)

    def get(self, path: str, who: str = "coordinator") -> Any:
        return self.app.test_client().get(path, headers=authorization(self.world, self.services, who))

    @property
    def number(self) -> int:
        with self.services.db.reading() as conn:
            return conn.execute(text("SELECT count(*) FROM notifications WHERE task_id IS NULL")).scalar_one()


@pytest.fixture
def notification_api(services: Services) -> Iterator[NotificationApi]:
    app = create_app(services)
    yield NotificationApi(services, app, settle_world(services))


def test_notification_is_accepted_and_can_be_read(notification_api: NotificationApi) -> None:
    answer = notification_api.post(MAIL)
    assert answer.status_code == 202
    assert set(answer.json) == {"id", "status", "message", "submittedAt"}
    assert (answer.json["status"], answer.json["message"]) == ("ACCEPTED", "Notification submitted for processing")
    shown = notification_api.get(f"{PATH}/{answer.json['id']}").json
    assert {name: shown[name] for name in MAIL} == MAIL
    assert (shown["createdAt"], shown["expiresAt"], shown["attempts"]) == (answer.json["submittedAt"], None, [])


def test_optional_fields_may_be_null(notification_api: NotificationApi) -> None:
    nulls = dict.fromkeys(("subject", "priority", "metadata", "expiresAt"))
    answer = notification_api.post(MAIL | nulls)
    assert answer.status_code == 202
    stored = row(notification_api.services.db, answer.json["id"])
    assert (stored.subject, stored.priority, stored.metadata, stored.expires_at) == ("", "NORMAL", {}, None)


def test_address_is_stored_in_its_canonical_form(notification_api: NotificationApi) -> None:
    answer = notification_api.post({"notificationType": "SMS", "recipient": "0555 123 45 67", "body": "Merhaba"})
    assert row(notification_api.services.db, answer.json["id"]).recipient == "+905551234567"


def test_line_endings_are_normalized(notification_api: NotificationApi) -> None:
    answer = notification_api.post(MAIL | {"body": "bir\r\niki\rüç\n"})
    assert row(notification_api.services.db, answer.json["id"]).body == "bir\niki\nüç\n"


WRONG: list[tuple[str, Any]] = [
    ("notificationType", "FAX"),
    ("notificationType", 5),
    ("recipient", ""),
    ("recipient", "   "),
    ("recipient", "nobody"),
    ("recipient", "ayse@ornek.org\r\nBcc: b@ornek.org"),
    ("recipient", 7),
    ("subject", "Merhaba\r\nBcc: b@ornek.org"),
    ("subject", "tab\there"),
    ("subject", "x" * 256),
    ("body", ""),
    ("body", " \r\n\t "),
    ("body", "bell \x07"),
    ("body", "x" * 32_769),
    ("priority", "SUPER"),
    ("metadata", []),
    ("metadata", {"a": "\x00"}),
    ("metadata", {"data": {"n": 5}}),
    ("metadata", {"addressKind": "EMAIL"}),
    ("metadata", {"a": "x" * 9000}),
    ("metadata", {"a": 10**400}),
    ("expiresAt", "2020-01-01T00:00:00Z"),
    ("expiresAt", "2099-01-01T00:00:00"),
    ("expiresAt", "0001-01-01T00:00:00+14:00"),
    ("expiresAt", "tomorrow"),
    ("expiresAt", 5),
    ("colour", "red"),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_refusal_names_the_field(notification_api: NotificationApi, field: str, value: Any) -> None:
    answer = notification_api.post(MAIL | {field: value})
    assert answer.status_code == 400
    assert [error["field"] for error in answer.get_json(force=True)["errors"]] == [field]
    assert notification_api.number == 0


def fields(answer: Any) -> set[str]:
    assert answer.status_code == 400
    return {error["field"] for error in answer.get_json(force=True)["errors"]}


def test_refusal_names_all_wrong_fields(notification_api: NotificationApi) -> None:
    all_wrong = {
        "notificationType": "PUSH",
        "recipient": "user:4711",
        "subject": "a\r\nb",
        "body": " ",
        "priority": "SUPER",
        "metadata": {"data": 5},
        "expiresAt": "2020-01-01T00:00:00Z",
    }
    assert fields(notification_api.post(all_wrong)) == {*all_wrong} - {"notificationType"}
    assert fields(notification_api.post(all_wrong | {"notificationType": "FAX"})) == {*all_wrong} - {"recipient"}
    right_shapes = all_wrong | {"subject": "a", "body": "b", "priority": "LOW"}
    assert fields(notification_api.post(right_shapes)) == {"recipient", "metadata", "expiresAt"}
    assert fields(notification_api.post(right_shapes | {"metadata": {}})) == {"recipient", "expiresAt"}
    assert fields(notification_api.post({})) == {"notificationType", "recipient", "body"}
    assert notification_api.post([]).status_code == 400


@pytest.mark.parametrize("type_", ["PUSH", "IN_APP"])
def test_unknown_user_is_refused(notification_api: NotificationApi, type_: str) -> None:
    assert fields(notification_api.post({"notificationType": type_, "recipient": "4711", "body": "b"})) == {"recipient"}


def test_refusal_of_an_unknown_type_lists_the_types(notification_api: NotificationApi) -> None:
    [error] = notification_api.post(MAIL | {"notificationType": "FAX"}).get_json(force=True)["errors"]
    for known in ("EMAIL", "SMS", "PUSH", "IN_APP", "WEBHOOK", "WHATSAPP", "AUDIT"):
        assert known in error["message"]


def test_refusal_does_not_repeat_the_address(notification_api: NotificationApi) -> None:
    assert "gizli" not in notification_api.post(MAIL | {"recipient": "gizli@"}).get_data(as_text=True)


def test_repeated_key_returns_the_same_notification(notification_api: NotificationApi) -> None:
    first, again = notification_api.post(MAIL, key="k"), notification_api.post(MAIL, key="k")
    assert (again.status_code, again.json) == (202, first.json)
    spelled_otherwise = MAIL | {"recipient": "ayse@ORNEK.org"}
    assert notification_api.post(spelled_otherwise, key="k").json == first.json
    other = notification_api.post(MAIL | {"body": "Güle güle"}, key="k")
    assert (other.status_code, other.get_json(force=True)["code"]) == (409, "idempotency_key_reused")
    assert notification_api.post(MAIL | {"body": "Güle güle"}, key="k", who="admin").status_code == 202
    assert notification_api.number == 2


def test_repeated_request_is_answered_after_the_notification_expired(notification_api: NotificationApi) -> None:
    soon = MAIL | {"expiresAt": (datetime.now(UTC) + timedelta(seconds=0.5)).isoformat()}
    first = notification_api.post(soon, key="k")
    with notification_api.services.db.reading() as conn:
        conn.execute(text("SELECT pg_sleep(0.6)"))
    assert notification_api.post(soon, key="k").json == first.json
    assert fields(notification_api.post(soon, key="another")) == {"expiresAt"}


@pytest.mark.parametrize("key", ["x" * 129, "ş", "\t"])
def test_invalid_key_is_refused(notification_api: NotificationApi, key: str) -> None:
    assert notification_api.post(MAIL, key=key).status_code == 400


def test_only_the_end_of_a_token_is_shown(notification_api: NotificationApi) -> None:
    push = {"notificationType": "PUSH", "recipient": "token-secret-1234", "body": "b"}
    id_ = notification_api.post(push | {"metadata": {"addressKind": "FID"}}).json["id"]
    assert row(notification_api.services.db, id_).recipient == "token-secret-1234"
    for answer in (notification_api.get(f"{PATH}/{id_}"), notification_api.get(PATH)):
        assert "token-secret" not in answer.get_data(as_text=True)
        assert "…1234" in answer.get_data(as_text=True)
    short = notification_api.post(push | {"recipient": "abc"}).json["id"]
    assert notification_api.get(f"{PATH}/{short}").json["recipient"] == "…"
    mine = notification_api.post(push | {"recipient": f"user:{notification_api.world.ids['elder']}"}).json["id"]
    assert notification_api.get(f"{PATH}/{mine}").json["recipient"] == f"user:{notification_api.world.ids['elder']}"


def test_client_cannot_mark_a_notification_as_secret(notification_api: NotificationApi) -> None:
    """Only notifications that verify a channel hold a secret."""
    id_ = notification_api.post(MAIL | {"metadata": {"verification": "code"}}).json["id"]
    assert notification_api.get(f"{PATH}/{id_}").json["body"] == MAIL["body"]


class TestBacklog:
    @pytest.fixture
    def environ(self) -> dict[str, Any]:
        return {"notification_backlog_limit": 5}

    def test_full_backlog_refuses_notifications(self, notification_api: NotificationApi) -> None:
        waiting = statuses(notification_api.services.db)["ACCEPTED"]
        codes = [notification_api.post(MAIL).status_code for _ in range(6)]
        assert codes == [202] * (5 - waiting) + [503] * (1 + waiting)
        refused = notification_api.post(MAIL)
        assert refused.get_json(force=True)["code"] == "backlog_full"
        assert int(refused.headers["Retry-After"]) >= 1


def test_each_submission_is_counted_once_whatever_its_way(call: Any, world: World) -> None:
    """An e-mail, the offer and the notice of the accept, and the entry of the audit trail about what it shows."""
    for _ in range(2):
        assert call("coordinator", "POST", PATH, MAIL, **{"Idempotency-Key": "once"}).status_code == 202
    assert call("coordinator", "POST", PATH, MAIL | {"recipient": "nobody"}).status_code == 400
    assert call("student", "PUT", f"/tasks/{world.task_id}/accept").status_code == 200
    shown = call("admin", "GET", "/metrics").text
    counted = re.findall(r'^yaninda_delivery_produced_total{type="(\w+)"} ([\d.]+)$', shown, re.MULTILINE)
    assert {type_: float(number) for type_, number in counted} == {"EMAIL": 1, "PUSH": 2, "AUDIT": 1}
