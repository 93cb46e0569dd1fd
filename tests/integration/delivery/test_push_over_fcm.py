"""From the notification row to a phone through the HTTP contract of Firebase, with the real dispatcher and database."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from app.bootstrap.delivery import build_channels
from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.role import FOLLOWERS
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.clock import DatabaseClock
from app.settings.settings import PushMode, Settings
from tests.support import fcm_server
from tests.support.breakers import MemoryBreakers
from tests.support.delivery import add_user, attempts, everything_stored, make_due, post, row
from tests.support.fcm_server import FcmServer, quota_exceeded


@pytest.fixture
def server() -> Iterator[FcmServer]:
    with FcmServer().running() as running:
        yield running


@pytest.fixture
def dispatcher(db: Database, settings: Settings, server: FcmServer, tmp_path: Path) -> Iterator[Dispatcher]:
    credentials = str(server.write_credentials(tmp_path / "account.json"))
    chosen = settings.model_copy(
        update={"push": PushMode.FCM, "fcm_base_url": server.base_url, "firebase_credentials": credentials}
    )
    clock = DatabaseClock(db.now)
    channels = build_channels(chosen, db, clock)
    yield Dispatcher(
        db, clock, channels, announcer=Announcer(settings.database_url), followers=FOLLOWERS, breakers=MemoryBreakers()
    )
    channels.close()


def registered(db: Database) -> list[str]:
    with db.transaction() as conn:
        return list(conn.execute(text("SELECT device_id FROM devices ORDER BY device_id")).scalars())


def test_offer_reaches_the_phone_with_the_data_of_the_app(
    db: Database, dispatcher: Dispatcher, server: FcmServer
) -> None:
    deadline = db.now() + timedelta(seconds=600)
    data = {"type": "offer", "taskId": "0190", "deadline": deadline.isoformat()}
    [id_] = post(db, [add_user(db, "phone")], data=data, expires_at=deadline)
    dispatcher.run_once()
    [message] = server.messages
    assert message["token"] == "token-phone"
    assert message["data"] == {**data, "notificationId": str(id_)}
    assert 590 <= int(message["android"]["ttl"].removesuffix("s")) <= 600
    assert row(db, id_).status == "SENT"


def test_unregistered_phone_is_removed(db: Database, dispatcher: Dispatcher, server: FcmServer) -> None:
    server.by_address["token-old"] = fcm_server.UNREGISTERED
    [id_] = post(db, [add_user(db, "old", "phone")])
    dispatcher.run_once()
    assert registered(db) == ["phone"]
    assert row(db, id_).status == "SENT"
    assert attempts(db, id_) == [(1, "old", "RECIPIENT_GONE", "UNREGISTERED"), (1, "phone", "SENT", None)]


def test_refused_payload_removes_no_device(db: Database, dispatcher: Dispatcher, server: FcmServer) -> None:
    server.answers.append(fcm_server.bad_field("message.data[0].value"))
    [id_] = post(db, [add_user(db, "phone")])
    dispatcher.run_once()
    assert registered(db) == ["phone"]
    assert (row(db, id_).status, row(db, id_).error_code) == ("DEAD", "INVALID_ARGUMENT")


def test_only_the_failed_phone_is_retried(db: Database, dispatcher: Dispatcher, server: FcmServer) -> None:
    server.by_address["token-tablet"] = fcm_server.UNAVAILABLE
    [id_] = post(db, [add_user(db, "phone", "tablet")])
    dispatcher.run_once()
    waiting = row(db, id_)
    assert waiting.status == "RETRYING"
    assert waiting.due_at >= db.now() + timedelta(seconds=9)
    del server.by_address["token-tablet"]
    make_due(db, id_)
    dispatcher.run_once()
    # The requests for the two phones are sent in parallel, in either order.
    asked = [message["token"] for message in server.messages]
    assert (sorted(asked[:2]), asked[2:]) == (["token-phone", "token-tablet"], ["token-tablet"])
    assert row(db, id_).status == "SENT"


def test_retry_after_of_firebase_is_respected(db: Database, dispatcher: Dispatcher, server: FcmServer) -> None:
    server.answers.append(quota_exceeded({"Retry-After": "42"}))
    [id_] = post(db, [add_user(db, "phone")])
    before = db.now()
    dispatcher.run_once()
    assert timedelta(seconds=42) <= row(db, id_).due_at - before <= timedelta(seconds=45)


def test_offer_that_expires_before_the_retry_is_not_retried(
    db: Database, dispatcher: Dispatcher, server: FcmServer
) -> None:
    server.answers.append(quota_exceeded())
    [id_] = post(db, [add_user(db, "phone")], expires_at=db.now() + timedelta(seconds=30))
    dispatcher.run_once()
    assert (row(db, id_).status, row(db, id_).error_code) == ("EXPIRED", "QUOTA_EXCEEDED")


def test_token_is_stored_only_in_the_device_row(db: Database, dispatcher: Dispatcher, server: FcmServer) -> None:
    told = "token-phone is not a token"
    server.answers.append(fcm_server.fcm_error(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", told))
    post(db, [add_user(db, "phone")] * 2)
    dispatcher.run_once()
    assert "token-phone" not in everything_stored(db)
