"""A webhook of the directory is verified by what it answers, in the transaction that records the answer."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from app.db.database import Database
from app.delivery.channels.webhook import WebhookChannel
from app.delivery.messages.claims import claim
from app.delivery.messages.outcomes import Report, record
from app.delivery.messages.submit import NewSubmission, submit
from app.delivery.messages.values import NotificationType
from app.delivery.role import FOLLOWERS
from app.delivery.sending.sender import Sender
from app.foundation.clock import DatabaseClock
from app.settings import signing_secrets
from tests.support.delivery import make_due, row
from tests.support.provider_server import Answer, ProviderServer

SECRET = signing_secrets.create()
ECHO = Answer(200, {"challenge": "c-1"})


class Directory:
    """What its API does when a coordinator starts the verification of a webhook."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, target: str, **changes: Any) -> int:
        with self._db.transaction() as conn:
            profile = conn.execute(text("INSERT INTO recipient_profiles (name) VALUES ('Ops OnCall') RETURNING id"))
            return conn.execute(
                text(
                    "INSERT INTO recipient_channels (profile_id, channel_type, target, secrets)"
                    " VALUES (:profile_id, 'webhook', :target, :secrets) RETURNING id"
                ),
                {"profile_id": profile.scalar_one(), "target": target, "secrets": [SECRET]} | changes,
            ).scalar_one()

    def challenge(self, channel_id: int, target: str, *, lives_s: float = 600, metadata: Any = None) -> UUID:
        new = NewSubmission(
            NotificationType.WEBHOOK,
            target,
            "",
            metadata={"challenge": "c-1"} if metadata is None else metadata,
            channel_id=channel_id,
        )
        with self._db.transaction() as conn:
            id_ = submit(conn, new).id
            conn.execute(
                text(
                    "INSERT INTO channel_verifications (channel_id, notification_id, digest, tries_left, expires_at)"
                    " VALUES (:channel_id, :id, '', 1, clock_timestamp() + :lives)"
                    " ON CONFLICT (channel_id) DO UPDATE SET notification_id = excluded.notification_id"
                ),
                {"channel_id": channel_id, "id": id_, "lives": timedelta(seconds=lives_s)},
            )
        return id_

    def state(self, channel_id: int) -> tuple[str, bool, int]:
        """How far it is verified, whether it is enabled, and how many verifications of it are running."""
        with self._db.transaction() as conn:
            found = conn.execute(
                text(
                    "SELECT verify_status, enabled, (SELECT count(*) FROM channel_verifications v"
                    " WHERE v.channel_id = c.id) AS running FROM recipient_channels c WHERE id = :id"
                ),
                {"id": channel_id},
            ).one()
        return found.verify_status, found.enabled, found.running

    def change(self, channel_id: int, assignment: str) -> None:
        with self._db.transaction() as conn:
            conn.execute(text(f"UPDATE recipient_channels SET {assignment} WHERE id = :id"), {"id": channel_id})


@pytest.fixture
def directory(db: Database) -> Directory:
    return Directory(db)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer(ECHO).running() as running:
        yield running


@pytest.fixture
def target(server: ProviderServer) -> str:
    return f"{server.base_url}/"


@pytest.fixture
def sender(db: Database) -> Iterator[Sender]:
    clock = DatabaseClock(db.now)
    channel = WebhookChannel(clock, allow_private=True)
    yield Sender(channel, clock)
    channel.close()


def deliver(db: Database, sender: Sender) -> list[Report]:
    with db.transaction() as conn:
        taken = claim(conn, NotificationType.WEBHOOK, 100, 30, followers=FOLLOWERS).taken
    return sender.send(taken)


def deliver_and_record(db: Database, sender: Sender) -> None:
    reports = deliver(db, sender)
    with db.transaction() as conn:
        record(conn, reports, FOLLOWERS)


def test_a_challenge_that_comes_back_verifies_the_channel(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert row(db, id_).status == "SENT"
    assert directory.state(channel_id) == ("verified", True, 0)


@pytest.mark.parametrize(
    ("answer", "code"),
    [(Answer(200, {"challenge": "c-2"}), "CHALLENGE_FAILED"), (Answer(404, ""), "HTTP_404")],
)
def test_anything_else_fails_it_and_an_operator_may_have_it_tried_anew(
    db: Database, directory: Directory, sender: Sender, server: ProviderServer, target: str, answer: Answer, code: str
) -> None:
    server.answers.append(answer)
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert (row(db, id_).status, row(db, id_).error_code) == ("DEAD", code)
    assert directory.state(channel_id) == ("failed", True, 1)
    with db.transaction() as conn:
        conn.execute(
            text(
                "UPDATE notifications SET status = 'ACCEPTED', due_at = clock_timestamp(), finished_at = NULL,"
                " fresh_from = attempts WHERE id = :id"
            ),
            {"id": id_},
        )
    deliver_and_record(db, sender)
    assert directory.state(channel_id) == ("verified", True, 0)


def test_as_long_as_it_is_tried_again_nothing_is_decided(
    db: Database, directory: Directory, sender: Sender, server: ProviderServer, target: str
) -> None:
    server.answers.append(Answer(503, ""))
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert row(db, id_).status == "RETRYING"
    assert directory.state(channel_id) == ("pending", True, 1)
    make_due(db, id_)
    deliver_and_record(db, sender)
    assert directory.state(channel_id) == ("verified", True, 0)


def test_who_is_gone_is_switched_off(
    db: Database, directory: Directory, sender: Sender, server: ProviderServer, target: str
) -> None:
    server.answers.append(Answer(410, ""))
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert row(db, id_).error_code == "HTTP_410"
    assert directory.state(channel_id) == ("failed", False, 1)


def test_an_ordinary_message_verifies_nothing(db: Database, directory: Directory, sender: Sender, target: str) -> None:
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target, metadata={})
    deliver_and_record(db, sender)
    assert row(db, id_).status == "SENT"
    assert directory.state(channel_id) == ("pending", True, 1)


def test_only_the_last_challenge_counts(
    db: Database, directory: Directory, sender: Sender, server: ProviderServer, target: str
) -> None:
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    before = deliver(db, sender)
    server.answers.append(Answer(500, ""))
    directory.challenge(channel_id, target)
    with db.transaction() as conn:
        record(conn, before, FOLLOWERS)
    assert directory.state(channel_id) == ("pending", True, 1)


@pytest.mark.parametrize("change", ["target = 'https://elsewhere.example/'", "retired_at = clock_timestamp()"])
def test_what_was_changed_meanwhile_has_not_answered(
    db: Database, directory: Directory, sender: Sender, target: str, change: str
) -> None:
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    reports = deliver(db, sender)
    directory.change(channel_id, change)
    with db.transaction() as conn:
        record(conn, reports, FOLLOWERS)
    assert directory.state(channel_id)[0] == "pending"


def test_a_challenge_that_came_back_too_late_does_not_count(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    channel_id = directory.add(target)
    directory.challenge(channel_id, target, lives_s=-1)
    deliver_and_record(db, sender)
    assert directory.state(channel_id)[0] == "pending"


def test_a_challenge_for_another_channel_does_not_count(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    mine, other = directory.add(target), directory.add(target)
    id_ = directory.challenge(mine, target)
    with db.transaction() as conn:
        conn.execute(text("UPDATE channel_verifications SET channel_id = :id"), {"id": other})
    deliver_and_record(db, sender)
    assert row(db, id_).status == "SENT"
    assert directory.state(mine)[0] == directory.state(other)[0] == "pending"


def test_if_the_record_is_not_committed_nothing_is_verified(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    reports = deliver(db, sender)
    with pytest.raises(ZeroDivisionError), db.transaction() as conn:
        record(conn, reports, FOLLOWERS)
        raise ZeroDivisionError
    assert directory.state(channel_id) == ("pending", True, 1)


def test_no_secret_is_stored_with_what_was_sent(
    db: Database, directory: Directory, sender: Sender, target: str
) -> None:
    channel_id = directory.add(target)
    id_ = directory.challenge(channel_id, target)
    deliver_and_record(db, sender)
    assert SECRET not in str(row(db, id_))


def test_what_a_new_address_is_trusted_with_is_not_told_to_the_old_one(db: Database, directory: Directory, target: str):
    """A message that waits for another try goes where it was meant to go when it was written."""
    channel_id = directory.add(target)
    directory.challenge(channel_id, target)
    directory.change(channel_id, """target = 'https://yeni.org/', target_meta = '{"headers": {"X-Key": "s3cret"}}'""")
    with db.transaction() as conn:
        [taken] = claim(conn, NotificationType.WEBHOOK, 1, 30, followers=FOLLOWERS).taken
    assert taken.notification.recipient == target
    assert taken.recipient_channel is not None
    assert taken.recipient_channel.meta == {}
    directory.challenge(channel_id, "https://yeni.org/")
    with db.transaction() as conn:
        [taken] = claim(conn, NotificationType.WEBHOOK, 1, 30, followers=FOLLOWERS).taken
    assert taken.recipient_channel is not None
    assert taken.recipient_channel.meta == {"headers": {"X-Key": "s3cret"}}
