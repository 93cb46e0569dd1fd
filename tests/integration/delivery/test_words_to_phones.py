"""From the notification row through the HTTP contracts of Twilio and WhatsApp, with a real dispatcher and database."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from app.bootstrap.delivery import build_channels
from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.messages.submit import NewSubmission, submit
from app.delivery.messages.values import NotificationType
from app.delivery.role import FOLLOWERS
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.clock import DatabaseClock
from app.settings.settings import Settings
from tests.support.breakers import MemoryBreakers
from tests.support.delivery import attempts, everything_stored, make_due, row
from tests.support.phone_providers import (
    ACCESS_TOKEN,
    ACCOUNT_SID,
    AUTH_TOKEN,
    NUMBER_ID,
    CloudApiServer,
    TwilioServer,
    cloud_error,
    twilio_error,
)
from tests.support.provider_server import Answer, Reset

PHONE = "+905551234567"
SMS, WHATSAPP = NotificationType.SMS, NotificationType.WHATSAPP


@pytest.fixture
def twilio() -> Iterator[TwilioServer]:
    with TwilioServer().running() as running:
        yield running


@pytest.fixture
def cloud() -> Iterator[CloudApiServer]:
    with CloudApiServer().running() as running:
        yield running


@pytest.fixture
def dispatcher(db: Database, settings: Settings, twilio: TwilioServer, cloud: CloudApiServer) -> Iterator[Dispatcher]:
    chosen = settings.model_copy(
        update={
            "twilio_account_sid": ACCOUNT_SID,
            "twilio_auth_token": AUTH_TOKEN,
            "twilio_from": "+15005550006",
            "twilio_base_url": twilio.base_url,
            "whatsapp_phone_number_id": NUMBER_ID,
            "whatsapp_access_token": ACCESS_TOKEN,
            "whatsapp_base_url": f"{cloud.base_url}/v21.0",
        }
    )
    clock = DatabaseClock(db.now)
    channels = build_channels(chosen, db, clock)
    yield Dispatcher(
        db,
        clock,
        channels,
        announcer=Announcer(settings.database_url),
        types=(SMS, WHATSAPP),
        followers=FOLLOWERS,
        breakers=MemoryBreakers(),
    )
    channels.close()


def hand_in(db: Database, type_: NotificationType, recipient: str = PHONE, **changes: Any) -> UUID:
    with db.transaction() as conn:
        return submit(conn, NewSubmission(type_, recipient, body="Kabul eder misin?", **changes)).id


def dead_letter_codes(db: Database) -> list[tuple[str, str]]:
    with db.transaction() as conn:
        rows = conn.execute(text("SELECT channel_type, error_code FROM dead_letters"))
        return sorted((one.channel_type, one.error_code) for one in rows)


def add_channel(db: Database) -> int:
    with db.transaction() as conn:
        return conn.execute(
            text(
                """
                WITH profile AS (INSERT INTO recipient_profiles (name) VALUES ('Nöbetçi') RETURNING id)
                INSERT INTO recipient_channels (profile_id, channel_type, target, verify_status)
                SELECT id, 'sms', :phone, 'verified' FROM profile RETURNING id
                """
            ),
            {"phone": PHONE},
        ).scalar_one()


def is_enabled(db: Database, channel_id: int) -> bool:
    with db.transaction() as conn:
        found = conn.execute(text("SELECT enabled FROM recipient_channels WHERE id = :id"), {"id": channel_id})
        return found.scalar_one()


def test_messages_reach_phones(
    db: Database, dispatcher: Dispatcher, twilio: TwilioServer, cloud: CloudApiServer
) -> None:
    ids = [hand_in(db, SMS), hand_in(db, WHATSAPP)]
    dispatcher.run_once()
    assert [row(db, id_).status for id_ in ids] == ["SENT", "SENT"]
    assert [request.form()["Body"] for request in twilio.requests] == ["Kabul eder misin?"]
    assert [request.json()["text"]["body"] for request in cloud.requests] == ["Kabul eder misin?"]


def test_message_that_may_have_arrived_is_not_sent_again(
    db: Database, dispatcher: Dispatcher, twilio: TwilioServer, cloud: CloudApiServer
) -> None:
    twilio.answers.append(Reset())
    cloud.answers.append(Answer(200, "<html>"))
    ids = [hand_in(db, SMS), hand_in(db, WHATSAPP)]
    dispatcher.run_once()
    dispatcher.run_once()
    assert [row(db, id_).status for id_ in ids] == ["DEAD", "DEAD"]
    assert dead_letter_codes(db) == [("sms", "CONNECTION_LOST"), ("whatsapp", "INVALID_ANSWER")]
    assert (len(twilio.requests), len(cloud.requests)) == (1, 1)


def test_refused_message_is_retried_after_the_providers_delay(
    db: Database, dispatcher: Dispatcher, twilio: TwilioServer
) -> None:
    twilio.answers.append(twilio_error(429, 20429, **{"Retry-After": "42"}))
    id_ = hand_in(db, SMS)
    before = db.now()
    dispatcher.run_once()
    waiting = row(db, id_)
    assert waiting.status == "RETRYING"
    assert timedelta(seconds=42) <= waiting.due_at - before <= timedelta(seconds=45)
    make_due(db, id_)
    dispatcher.run_once()
    assert [outcome for _, _, outcome, _ in attempts(db, id_)] == ["TRANSIENT", "SENT"]


def test_recipient_who_opted_out_gets_no_more_messages(
    db: Database, dispatcher: Dispatcher, twilio: TwilioServer
) -> None:
    channel_id = add_channel(db)
    twilio.answers.append(twilio_error(400, 21610))
    id_ = hand_in(db, SMS, channel_id=channel_id)
    dispatcher.run_once()
    assert (row(db, id_).status, row(db, id_).error_code) == ("DEAD", "TWILIO_21610")
    assert not is_enabled(db, channel_id)


def test_invalid_number_is_one_dead_letter_and_no_request(
    db: Database, dispatcher: Dispatcher, twilio: TwilioServer
) -> None:
    hand_in(db, SMS, "555")
    dispatcher.run_once()
    assert dead_letter_codes(db) == [("sms", "INVALID_ADDRESS")]
    assert twilio.requests == []


def test_only_the_error_code_of_a_provider_is_stored(
    db: Database, dispatcher: Dispatcher, twilio: TwilioServer, cloud: CloudApiServer
) -> None:
    twilio.answers.append(twilio_error(401, 20003, f"{AUTH_TOKEN} is not for {PHONE}"))
    cloud.answers.append(cloud_error(401, 190, message=f"{ACCESS_TOKEN} is not for {PHONE}"))
    hand_in(db, SMS)
    hand_in(db, WHATSAPP)
    dispatcher.run_once()
    assert dead_letter_codes(db) == [("sms", "AUTH_REJECTED"), ("whatsapp", "AUTH_REJECTED")]
    stored = everything_stored(db)
    assert "is not for" not in stored
    assert AUTH_TOKEN not in stored and ACCESS_TOKEN not in stored
