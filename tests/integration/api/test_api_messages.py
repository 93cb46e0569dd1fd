"""The messages in the app and the audit trail over HTTP."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.api.services import Services
from app.bootstrap.api import create_app
from app.delivery.channels import audit_trail
from app.delivery.channels.in_app import InAppChannel
from app.delivery.channels.recording import RecordingChannel
from app.delivery.messages.values import Device, NotificationType
from app.redis_store import hints
from tests.support.delivery import PHONE, TABLET, notification, outgoing
from tests.support.push_service import new_settings
from tests.support.world import World, authorization, settle_world


@dataclass
class Inbox:
    services: Services
    app: Any
    world: World

    def call(self, method: str, path: str, who: str = "student") -> Any:
        headers = authorization(self.world, self.services, who)
        return self.app.test_client().open(path, method=method, headers=headers)

    def send(self, who: str, *subjects: str) -> None:
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
def inbox(services: Services) -> Iterator[Inbox]:
    app = create_app(services)
    yield Inbox(services, app, settle_world(services))


def test_messages_are_listed_newest_first_for_their_reader_only(inbox: Inbox) -> None:
    inbox.send("student", "1", "2", "3")
    inbox.send("coordinator", "other")
    assert inbox.subjects("/me/messages") == ["3", "2", "1"]
    assert inbox.subjects("/me/messages", "coordinator") == ["other"]
    [shown] = inbox.call("GET", "/me/messages?limit=1").json["items"]
    assert set(shown) == {"id", "notificationId", "subject", "body", "data", "createdAt", "readAt"}
    assert (shown["data"], shown["readAt"]) == ({"k": "v"}, None)


def test_next_page_continues_after_the_previous_one(inbox: Inbox) -> None:
    inbox.send("student", "1", "2", "3")
    first = inbox.call("GET", "/me/messages?limit=2").json
    second = inbox.call("GET", f"/me/messages?limit=2&cursor={first['nextCursor']}").json
    assert [item["subject"] for item in first["items"] + second["items"]] == ["3", "2", "1"]
    assert second["nextCursor"] is None
    for cursor in ("somewhere", "99999999999999999999", "-1"):
        assert inbox.call("GET", f"/me/messages?cursor={cursor}").status_code == 400


def test_message_keeps_the_time_when_it_was_first_read(inbox: Inbox) -> None:
    inbox.send("student", "1", "2")
    newest = inbox.call("GET", "/me/messages").json["items"][0]
    path = f"/me/messages/{newest['id']}/read"
    assert inbox.call("PUT", path).status_code == 204
    read_at = inbox.call("GET", "/me/messages").json["items"][0]["readAt"]
    assert read_at is not None
    assert inbox.call("PUT", path).status_code == 204
    assert inbox.call("GET", "/me/messages").json["items"][0]["readAt"] == read_at
    assert inbox.subjects("/me/messages?unread=true") == ["1"]
    assert inbox.subjects("/me/messages?unread=false") == ["2", "1"]
    assert inbox.call("GET", "/me/messages?unread=maybe").status_code == 400


def test_message_can_be_marked_as_read_only_by_its_reader(inbox: Inbox) -> None:
    inbox.send("student", "1")
    id_ = inbox.call("GET", "/me/messages").json["items"][0]["id"]
    for path in (f"/me/messages/{id_}/read", "/me/messages/999999/read"):
        answer = inbox.call("PUT", path, "coordinator")
        assert (answer.status_code, answer.get_json(force=True)["code"]) == (404, "message_not_found")
    assert inbox.subjects("/me/messages?unread=true") == ["1"]


def test_admin_reads_the_audit_trail(inbox: Inbox) -> None:
    events = [
        notification(
            notification_type=NotificationType.AUDIT, recipient="ops", subject=str(number), metadata={"ş": number}
        )
        for number in range(3)
    ]
    with inbox.services.db.transaction() as conn:
        audit_trail.append(conn, events)
    first = inbox.call("GET", "/api/v1/audit?limit=2", "admin").json
    second = inbox.call("GET", f"/api/v1/audit?cursor={first['nextCursor']}", "admin").json
    items = first["items"] + second["items"]
    assert [item["subject"] for item in items] == ["2", "1", "0"]
    assert [item["previousHash"] for item in items] == [*(item["hash"] for item in items[1:]), "00" * 32]
    assert items[0]["metadata"] == '{"ş": 2}'
    assert second["nextCursor"] is None


def record(inbox: Inbox, who: str, *titles: str, devices: tuple[Device | None, ...] = (None,)) -> None:
    """As the delivery role does where pushes are not sent."""
    channel = RecordingChannel(inbox.services.db)
    for title in titles:
        one = outgoing(None, recipient_user_id=inbox.world.ids[who], subject=title)
        channel.handle([replace(one, device=device) for device in devices])


def test_recorded_pushes_are_listed_newest_first_for_their_reader_only(inbox: Inbox) -> None:
    record(inbox, "student", "1", "2", devices=(PHONE, TABLET))
    record(inbox, "elder", "other")
    sms = outgoing(None, notification_type="SMS", recipient_user_id=inbox.world.ids["student"], body="code 123456")
    RecordingChannel(inbox.services.db, ("SMS",)).handle([sms])
    first = inbox.call("GET", "/me/pushes?limit=1").json
    assert [item["title"] for item in first["items"]] == ["2"], "once, however many devices there are"
    [shown] = inbox.call("GET", f"/me/pushes?cursor={first['nextCursor']}").json["items"]
    assert (shown["title"], shown["body"]) == ("1", "Yakınında yeni bir talep var!")
    assert shown["data"]["type"] == "offer" and shown["data"]["notificationId"] == shown["notificationId"]
    assert [item["title"] for item in inbox.call("GET", "/me/pushes", "elder").json["items"]] == ["other"]


@pytest.mark.parametrize("environ", [{"push": "fcm", "firebase_credentials": "/key.json", **new_settings()}])
def test_where_pushes_are_sent_none_are_listed(inbox: Inbox) -> None:
    response = inbox.call("GET", "/me/pushes")
    assert (response.status_code, response.get_json(force=True)["code"]) == (404, "pushes_not_recorded")
