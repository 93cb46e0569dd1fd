"""The inbox of the app, and the audit trail, as they are read over HTTP."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from app.api.app import create_app
from app.api.services import Services
from app.delivery.channels import audit_trail
from app.delivery.channels.in_app import InAppChannel
from app.delivery.messages.values import NotificationType
from app.redis_store import hints
from tests.support.delivery import notification, outgoing
from tests.support.world import World, authorization, settle_world


@dataclass
class Door:
    services: Services
    app: Any
    world: World

    def call(self, method: str, path: str, who: str = "student") -> Any:
        headers = authorization(self.world, self.services, who)
        return self.app.test_client().open(path, method=method, headers=headers)

    def tell(self, who: str, *subjects: str) -> None:
        channel = InAppChannel(self.services.db, hints.connect(self.services.settings.redis_url, 1))
        for subject in subjects:
            user_id = self.world.ids[who]
            channel.handle(
                [
                    outgoing(
                        None, notification_type="IN_APP", recipient_user_id=user_id, subject=subject, data={"k": "v"}
                    )
                ]
            )
        channel.close()

    def subjects(self, path: str, who: str = "student") -> list[str]:
        return [item["subject"] for item in self.call("GET", path, who).json["items"]]


@pytest.fixture
def door(services: Services) -> Iterator[Door]:
    app = create_app(services)
    yield Door(services, app, settle_world(services))


def test_messages_are_listed_newest_first_and_only_to_their_reader(door: Door) -> None:
    door.tell("student", "1", "2", "3")
    door.tell("coordinator", "other")
    assert door.subjects("/me/messages") == ["3", "2", "1"]
    assert door.subjects("/me/messages", "coordinator") == ["other"]
    [shown] = door.call("GET", "/me/messages?limit=1").json["items"]
    assert set(shown) == {"id", "notificationId", "subject", "body", "data", "createdAt", "readAt"}
    assert (shown["data"], shown["readAt"]) == ({"k": "v"}, None)


def test_a_list_goes_on_where_it_stopped(door: Door) -> None:
    door.tell("student", "1", "2", "3")
    first = door.call("GET", "/me/messages?limit=2").json
    second = door.call("GET", f"/me/messages?limit=2&cursor={first['nextCursor']}").json
    assert [item["subject"] for item in first["items"] + second["items"]] == ["3", "2", "1"]
    assert second["nextCursor"] is None
    for cursor in ("somewhere", "99999999999999999999", "-1"):
        assert door.call("GET", f"/me/messages?cursor={cursor}").status_code == 400


def test_what_was_read_stays_read_since_then(door: Door) -> None:
    door.tell("student", "1", "2")
    newest = door.call("GET", "/me/messages").json["items"][0]
    path = f"/me/messages/{newest['id']}/read"
    assert door.call("PUT", path).status_code == 204
    read_at = door.call("GET", "/me/messages").json["items"][0]["readAt"]
    assert read_at is not None
    assert door.call("PUT", path).status_code == 204
    assert door.call("GET", "/me/messages").json["items"][0]["readAt"] == read_at
    assert door.subjects("/me/messages?unread=true") == ["1"]
    assert door.subjects("/me/messages?unread=false") == ["2", "1"]
    assert door.call("GET", "/me/messages?unread=maybe").status_code == 400


def test_nobody_reads_for_another(door: Door) -> None:
    door.tell("student", "1")
    id_ = door.call("GET", "/me/messages").json["items"][0]["id"]
    for path in (f"/me/messages/{id_}/read", "/me/messages/999999/read"):
        answer = door.call("PUT", path, "coordinator")
        assert (answer.status_code, answer.get_json(force=True)["code"]) == (404, "message_not_found")
    assert door.subjects("/me/messages?unread=true") == ["1"]


def test_an_administrator_reads_the_audit_trail(door: Door) -> None:
    events = [
        notification(
            notification_type=NotificationType.AUDIT, recipient="ops", subject=str(number), metadata={"ş": number}
        )
        for number in range(3)
    ]
    with door.services.db.transaction() as conn:
        audit_trail.append(conn, events)
    first = door.call("GET", "/api/v1/audit?limit=2", "admin").json
    second = door.call("GET", f"/api/v1/audit?cursor={first['nextCursor']}", "admin").json
    items = first["items"] + second["items"]
    assert [item["subject"] for item in items] == ["2", "1", "0"]
    assert [item["previousHash"] for item in items] == [*(item["hash"] for item in items[1:]), "00" * 32]
    assert items[0]["metadata"] == '{"ş": 2}'
    assert second["nextCursor"] is None
