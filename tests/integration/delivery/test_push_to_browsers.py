"""A person with a phone and browsers: one notification, sent by FCM and by Web Push."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.channels.fcm import FcmChannel
from app.delivery.channels.registry import Channels
from app.delivery.channels.web_push import WebPushChannel
from app.delivery.role import FOLLOWERS
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.clock import DatabaseClock
from app.settings.settings import Settings
from app.users import service as users
from app.users.models import AddressKind, Platform
from tests.support.breakers import MemoryBreakers
from tests.support.delivery import add_user, attempts, everything_stored, make_due, post, row
from tests.support.fcm_server import FcmServer
from tests.support.provider_server import Answer
from tests.support.push_service import RESOLVER, PushService, new_keys

KEYS = new_keys()


@pytest.fixture
def service(db: Database) -> Iterator[PushService]:
    with PushService(KEYS, lambda: db.now().timestamp()).running() as running:
        yield running


@pytest.fixture
def fcm() -> Iterator[FcmServer]:
    with FcmServer().running() as running:
        yield running


@pytest.fixture
def dispatcher(
    db: Database, settings: Settings, service: PushService, fcm: FcmServer, tmp_path: Path
) -> Iterator[Dispatcher]:
    assert service.certificate is not None
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(service.certificate)
    clock = DatabaseClock(db.now)
    credentials = str(fcm.write_credentials(tmp_path / "account.json"))
    phones = FcmChannel(credentials, clock, base_url=fcm.base_url)
    browsers = WebPushChannel(KEYS, clock, check=None, resolver=RESOLVER, ca_file=str(trusted))
    channels = Channels([phones, browsers])
    yield Dispatcher(
        db, clock, channels, announcer=Announcer(settings.database_url), followers=FOLLOWERS, breakers=MemoryBreakers()
    )
    channels.close()


def add_person(db: Database, service: PushService, *browsers: str) -> int:
    id_ = add_user(db, "phone")
    with db.transaction() as conn:
        for name in browsers:
            token = json.dumps(service.subscribe(name).subscription, separators=(",", ":"))
            device = users.DeviceRegistration(name, token, Platform.WEB, AddressKind.WEB_PUSH)
            users.put_device(conn, id_, device)
    return id_


def registered(db: Database) -> list[str]:
    with db.transaction() as conn:
        return list(conn.execute(text("SELECT device_id FROM devices ORDER BY device_id")).scalars())


def test_offer_reaches_the_phone_and_the_browser_with_the_same_content(
    db: Database, dispatcher: Dispatcher, service: PushService, fcm: FcmServer
) -> None:
    deadline = db.now() + timedelta(seconds=600)
    [id_] = post(db, [add_person(db, service, "page")], expires_at=deadline)
    dispatcher.run_once()
    [on_phone], [in_browser] = fcm.messages, service.shown
    assert in_browser == {"data": on_phone["data"], "notification": on_phone["notification"]}
    assert in_browser["data"]["notificationId"] == str(id_)
    assert 590 <= int(service.stored[0][1].headers["TTL"]) <= 600
    assert (row(db, id_).status, [one[2] for one in attempts(db, id_)]) == ("SENT", ["SENT", "SENT"])


def test_browser_that_is_gone_is_removed_and_one_that_failed_is_tried_again(
    db: Database, dispatcher: Dispatcher, service: PushService, fcm: FcmServer
) -> None:
    [id_] = post(db, [add_person(db, service, "away", "gone")])
    service.by_browser = {"away": Answer(503, ""), "gone": Answer(410, "")}
    dispatcher.run_once()
    assert registered(db) == ["away", "phone"]
    assert row(db, id_).status == "RETRYING"
    assert row(db, id_).due_at >= db.now() + timedelta(seconds=9)
    service.by_browser = {}
    make_due(db, id_)
    dispatcher.run_once()
    assert (row(db, id_).status, len(fcm.messages)) == ("SENT", 1)
    assert sorted(attempts(db, id_)) == [
        (1, "away", "TRANSIENT", "HTTP_503"),
        (1, "gone", "RECIPIENT_GONE", "SUBSCRIPTION_GONE"),
        (1, "phone", "SENT", None),
        (2, "away", "SENT", None),
    ]
    assert service.origin not in everything_stored(db)
