"""Handing in a notification over HTTP: accepted once it cannot be lost, refused with everything that is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from app.api.app import create_app
from app.api.services import Services
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
class Desk:
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
def desk(services: Services) -> Iterator[Desk]:
    app = create_app(services)
    yield Desk(services, app, settle_world(services))


def test_it_is_accepted_and_can_be_followed(desk: Desk) -> None:
    answer = desk.post(MAIL)
    assert answer.status_code == 202
    assert set(answer.json) == {"id", "status", "message", "submittedAt"}
    assert (answer.json["status"], answer.json["message"]) == ("ACCEPTED", "Notification submitted for processing")
    shown = desk.get(f"{PATH}/{answer.json['id']}").json
    assert {name: shown[name] for name in MAIL} == MAIL
    assert (shown["createdAt"], shown["expiresAt"], shown["attempts"]) == (answer.json["submittedAt"], None, [])


def test_what_may_be_left_out_may_be_null(desk: Desk) -> None:
    nulls = dict.fromkeys(("subject", "priority", "metadata", "expiresAt"))
    answer = desk.post(MAIL | nulls)
    assert answer.status_code == 202
    stored = row(desk.services.db, answer.json["id"])
    assert (stored.subject, stored.priority, stored.metadata, stored.expires_at) == ("", "NORMAL", {}, None)


def test_an_address_is_kept_in_its_one_form(desk: Desk) -> None:
    answer = desk.post({"notificationType": "SMS", "recipient": "0555 123 45 67", "body": "Merhaba"})
    assert row(desk.services.db, answer.json["id"]).recipient == "+905551234567"


def test_lines_end_as_they_do_everywhere(desk: Desk) -> None:
    answer = desk.post(MAIL | {"body": "bir\r\niki\rüç\n"})
    assert row(desk.services.db, answer.json["id"]).body == "bir\niki\nüç\n"


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
def test_a_field_that_is_wrong_is_named(desk: Desk, field: str, value: Any) -> None:
    answer = desk.post(MAIL | {field: value})
    assert answer.status_code == 400
    assert [error["field"] for error in answer.get_json(force=True)["errors"]] == [field]
    assert desk.number == 0


def fields(answer: Any) -> set[str]:
    assert answer.status_code == 400
    return {error["field"] for error in answer.get_json(force=True)["errors"]}


def test_everything_that_is_wrong_is_named_at_once(desk: Desk) -> None:
    all_wrong = {
        "notificationType": "PUSH",
        "recipient": "user:4711",
        "subject": "a\r\nb",
        "body": " ",
        "priority": "SUPER",
        "metadata": {"data": 5},
        "expiresAt": "2020-01-01T00:00:00Z",
    }
    assert fields(desk.post(all_wrong)) == {*all_wrong} - {"notificationType"}
    assert fields(desk.post(all_wrong | {"notificationType": "FAX"})) == {*all_wrong} - {"recipient"}
    right_shapes = all_wrong | {"subject": "a", "body": "b", "priority": "LOW"}
    assert fields(desk.post(right_shapes)) == {"recipient", "metadata", "expiresAt"}
    assert fields(desk.post(right_shapes | {"metadata": {}})) == {"recipient", "expiresAt"}
    assert fields(desk.post({})) == {"notificationType", "recipient", "body"}
    assert desk.post([]).status_code == 400


@pytest.mark.parametrize("type_", ["PUSH", "IN_APP"])
def test_a_user_nobody_knows_is_refused(desk: Desk, type_: str) -> None:
    assert fields(desk.post({"notificationType": type_, "recipient": "4711", "body": "b"})) == {"recipient"}


def test_an_unknown_type_is_told_which_ones_there_are(desk: Desk) -> None:
    [error] = desk.post(MAIL | {"notificationType": "FAX"}).get_json(force=True)["errors"]
    for known in ("EMAIL", "SMS", "PUSH", "IN_APP", "WEBHOOK", "WHATSAPP", "AUDIT"):
        assert known in error["message"]


def test_a_problem_never_repeats_the_address(desk: Desk) -> None:
    assert "gizli" not in desk.post(MAIL | {"recipient": "gizli@"}).get_data(as_text=True)


def test_a_repeat_with_the_same_key_is_the_same_notification(desk: Desk) -> None:
    first, again = desk.post(MAIL, key="k"), desk.post(MAIL, key="k")
    assert (again.status_code, again.json) == (202, first.json)
    spelled_otherwise = MAIL | {"recipient": "ayse@ORNEK.org"}
    assert desk.post(spelled_otherwise, key="k").json == first.json
    other = desk.post(MAIL | {"body": "Güle güle"}, key="k")
    assert (other.status_code, other.get_json(force=True)["code"]) == (409, "idempotency_key_reused")
    assert desk.post(MAIL | {"body": "Güle güle"}, key="k", who="admin").status_code == 202
    assert desk.number == 2


def test_a_repeat_is_answered_when_its_time_is_over(desk: Desk) -> None:
    soon = MAIL | {"expiresAt": (datetime.now(UTC) + timedelta(seconds=0.5)).isoformat()}
    first = desk.post(soon, key="k")
    with desk.services.db.reading() as conn:
        conn.execute(text("SELECT pg_sleep(0.6)"))
    assert desk.post(soon, key="k").json == first.json
    assert fields(desk.post(soon, key="another")) == {"expiresAt"}


@pytest.mark.parametrize("key", ["x" * 129, "ş", "\t"])
def test_a_key_that_is_none_is_refused(desk: Desk, key: str) -> None:
    assert desk.post(MAIL, key=key).status_code == 400


def test_of_a_token_only_the_end_is_shown(desk: Desk) -> None:
    push = {"notificationType": "PUSH", "recipient": "token-secret-1234", "body": "b"}
    id_ = desk.post(push | {"metadata": {"addressKind": "FID"}}).json["id"]
    assert row(desk.services.db, id_).recipient == "token-secret-1234"
    for answer in (desk.get(f"{PATH}/{id_}"), desk.get(PATH)):
        assert "token-secret" not in answer.get_data(as_text=True)
        assert "…1234" in answer.get_data(as_text=True)
    short = desk.post(push | {"recipient": "abc"}).json["id"]
    assert desk.get(f"{PATH}/{short}").json["recipient"] == "…"
    mine = desk.post(push | {"recipient": f"user:{desk.world.ids['elder']}"}).json["id"]
    assert desk.get(f"{PATH}/{mine}").json["recipient"] == f"user:{desk.world.ids['elder']}"


def test_nobody_hides_what_they_send(desk: Desk) -> None:
    """Only what verifies an entry of the directory holds a secret."""
    id_ = desk.post(MAIL | {"metadata": {"verification": "code"}}).json["id"]
    assert desk.get(f"{PATH}/{id_}").json["body"] == MAIL["body"]


class TestBacklog:
    @pytest.fixture
    def environ(self) -> dict[str, Any]:
        return {"notification_backlog_limit": 5}

    def test_no_more_is_taken_than_can_be_sent(self, desk: Desk) -> None:
        waiting = statuses(desk.services.db)["ACCEPTED"]
        codes = [desk.post(MAIL).status_code for _ in range(6)]
        assert codes == [202] * (5 - waiting) + [503] * (1 + waiting)
        refused = desk.post(MAIL)
        assert refused.get_json(force=True)["code"] == "backlog_full"
        assert int(refused.headers["Retry-After"]) >= 1
