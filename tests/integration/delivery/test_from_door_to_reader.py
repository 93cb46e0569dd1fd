"""From a submitted notification to its reader, through the channels that need no provider."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from app.api.services import Services
from app.bootstrap.api import create_app
from app.bootstrap.delivery import build_channels
from app.db.wake import Announcer
from app.delivery.channels import audit_trail
from app.delivery.channels.audit_list import list_audit_entries
from app.delivery.role import FOLLOWERS
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.clock import DatabaseClock
from tests.support.breakers import MemoryBreakers
from tests.support.delivery import shown
from tests.support.world import World, authorization, settle_world


class ActionHarness:
    def __init__(self, services: Services) -> None:
        self.services = services
        self.world: World = settle_world(services)
        self.app = create_app(services)
        self.channels = build_channels(services.settings, services.db, DatabaseClock(services.db.now))

    def call(self, method: str, path: str, body: Any = None, who: str = "coordinator") -> Any:
        headers = authorization(self.world, self.services, who)
        return self.app.test_client().open(path, method=method, json=body, headers=headers)

    def submit(self, type_: str, recipient: str, **more: Any) -> UUID:
        body = {"notificationType": type_, "recipient": recipient, "body": "Merhaba", **more}
        return UUID(self.call("POST", "/api/notifications", body).json["id"])

    def work(self) -> None:
        clock = DatabaseClock(self.services.db.now)
        Dispatcher(
            self.services.db,
            clock,
            self.channels,
            announcer=Announcer(self.services.settings.database_url),
            followers=FOLLOWERS,
            breakers=MemoryBreakers(),
        ).run_once()

    def follow(self, id_: UUID) -> Any:
        return self.call("GET", f"/api/notifications/{id_}").json


@pytest.fixture
def harness(services: Services) -> Iterator[ActionHarness]:
    harness = ActionHarness(services)
    yield harness
    harness.channels.close()


def test_submitted_notification_reaches_its_reader(harness: ActionHarness) -> None:
    elder = harness.world.ids["elder"]
    message = harness.submit("IN_APP", str(elder), subject="Yanında", metadata={"data": {"type": "hello"}})
    entry = harness.submit("AUDIT", "door 7", metadata={"who": "Zeynep"})
    harness.work()
    for id_ in (message, entry):
        followed = harness.follow(id_)
        assert (followed["status"], [one["outcome"] for one in followed["attempts"]]) == ("SENT", ["SENT"])
        assert [one["deviceId"] for one in followed["attempts"]] == [None]
    newest = harness.call("GET", "/me/messages", who="elder").json["items"][0]
    assert (newest["notificationId"], newest["subject"]) == (str(message), "Yanında")
    assert newest["data"] == {"type": "hello", "notificationId": str(message)}
    assert audit_trail.verify_audit_trail(harness.services.db).count == 1
    with harness.services.db.reading() as conn:
        assert list_audit_entries(conn).items[0].notification_id == entry


def test_push_goes_to_all_phones_of_a_user_or_to_one_token(harness: ActionHarness) -> None:
    person = harness.submit("PUSH", f"user:{harness.world.ids['elder']}")
    token = harness.submit("PUSH", "fid-of-a-phone", metadata={"addressKind": "FID"})
    harness.work()
    assert [one["deviceId"] for one in harness.follow(person)["attempts"]] == ["phone"]
    assert [(one["deviceId"], one["outcome"]) for one in harness.follow(token)["attempts"]] == [(None, "SENT")]
    assert {person, token} <= {one.notification_id for one in shown(harness.services.db)}
