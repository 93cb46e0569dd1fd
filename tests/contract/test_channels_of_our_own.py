"""The contract of the channels that write to our own database: the app's inbox and the audit trail."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import redis
from sqlalchemy import text

from app.bootstrap.delivery import build_channels
from app.db.database import Database, DatabaseUnavailable
from app.delivery.channels.audit import AuditChannel
from app.delivery.channels.base import Channel, OutgoingMessage
from app.delivery.channels.in_app import InAppChannel
from app.delivery.messages.values import NotificationType, Outcome
from app.foundation.clock import DatabaseClock
from app.foundation.errors import Unavailable
from app.redis_store import hints, keys
from app.settings.settings import Settings
from tests.support.api import NOBODY_LISTENS
from tests.support.delivery import add_user, outgoing

Stored = tuple[str, str, Any]


@dataclass
class Harness:
    channel: Channel
    type_: NotificationType
    db: Database
    user_id: int
    stored: Callable[[], list[Stored]]
    """Subject, body and data of the stored messages, in order."""

    def outgoing(self, **changes: Any) -> OutgoingMessage:
        own = {"notification_type": self.type_, "recipient": f"user:{self.user_id}", "recipient_user_id": self.user_id}
        return outgoing(None, **(own | changes))

    def send(self, *messages: OutgoingMessage) -> Sequence[Any]:
        return self.channel.handle(messages)


def _rows(db: Database, statement: str) -> list[Stored]:
    with db.reading() as conn:
        return [(one[0], one[1], one[2]) for one in conn.execute(text(statement))]


@contextmanager
def in_app(request: pytest.FixtureRequest) -> Iterator[Harness]:
    db: Database = request.getfixturevalue("db")
    channel = InAppChannel(db, hints.connect(request.getfixturevalue("redis_url"), 4))
    statement = "SELECT subject, body, data FROM in_app_messages ORDER BY id"
    yield Harness(channel, NotificationType.IN_APP, db, add_user(db), lambda: _rows(db, statement))
    channel.close()


@contextmanager
def audit(request: pytest.FixtureRequest) -> Iterator[Harness]:
    db: Database = request.getfixturevalue("db")
    statement = "SELECT subject, body, metadata -> 'data' FROM audit_entries ORDER BY id"
    yield Harness(AuditChannel(db), NotificationType.AUDIT, db, add_user(db), lambda: _rows(db, statement))


OpenHarness = Callable[[pytest.FixtureRequest], AbstractContextManager[Harness]]


@pytest.fixture(params=[in_app, audit], ids=["in_app", "audit"])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    open_harness: OpenHarness = request.param
    with open_harness(request) as made:
        yield made


def test_text_and_data_are_stored_unchanged(harness: Harness) -> None:
    one = harness.outgoing(subject="Ayşe'nin çağrısı 👵", body='"tırnak" \\ ve satır\nsonu')
    [result] = harness.send(one)
    assert (result.outcome, result.error_code) == (Outcome.SENT, None)
    assert result.provider_message_id == f"{harness.channel.name}:{one.id}"
    assert harness.stored() == [("Ayşe'nin çağrısı 👵", '"tırnak" \\ ve satır\nsonu', one.notification.data)]


def test_batch_is_stored_in_its_order(harness: Harness) -> None:
    messages = [harness.outgoing(subject=str(number)) for number in range(harness.channel.batch_size)]
    assert [result.outcome for result in harness.send(*messages)] == [Outcome.SENT] * len(messages)
    assert [subject for subject, _, _ in harness.stored()] == [message.notification.subject for message in messages]


def test_repeated_message_is_stored_once(harness: Harness) -> None:
    one, other = harness.outgoing(), harness.outgoing()
    for messages in ([one], [one, other], [other, one, one]):
        assert {result.outcome for result in harness.send(*messages)} == {Outcome.SENT}
    assert len(harness.stored()) == 2


def test_concurrently_repeated_message_is_stored_once(harness: Harness) -> None:
    messages = [harness.outgoing() for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda turn: harness.send(*messages[turn:], *messages[:turn]), range(8)))
    assert {result.outcome for batch in results for result in batch} == {Outcome.SENT}
    assert len(harness.stored()) == 8


def test_empty_batch_is_accepted(harness: Harness) -> None:
    assert list(harness.send()) == []
    assert harness.stored() == []


def test_missing_database_is_unavailable(harness: Harness) -> None:
    unreachable = Database("postgresql://nobody@127.0.0.1:9/none", connect_timeout_s=2)
    with pytest.raises(Unavailable):
        _on(unreachable, harness.type_).handle([harness.outgoing()])
    assert harness.stored() == []


def test_locked_table_ends_at_the_timeout_of_the_policy(harness: Harness, database_url: str) -> None:
    """The channel's own limit counts, also if the process has a longer one."""
    patient = Database(database_url, statement_timeout_ms=60_000, lock_timeout_ms=60_000)
    channel = _on(patient, harness.type_)
    channel.policy = replace(channel.policy, timeout_s=0.3)
    table = "audit_entries" if harness.type_ is NotificationType.AUDIT else "in_app_messages"
    with harness.db.transaction() as holder:
        holder.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(DatabaseUnavailable):
            channel.handle([harness.outgoing()])
    patient.close()
    assert harness.stored() == []
    assert harness.send(harness.outgoing())[0].outcome is Outcome.SENT


def test_every_process_has_the_channel_for_its_type(harness: Harness, settings: Settings) -> None:
    channels = build_channels(settings, harness.db, DatabaseClock(harness.db.now))
    assert type(channels.find(harness.type_)) is type(harness.channel)
    channels.close()


def test_channel_describes_itself_to_the_dispatcher(harness: Harness) -> None:
    assert harness.channel.policy.timeout_s == 2
    assert harness.channel.policy.retries == (0 if harness.type_ is NotificationType.AUDIT else 3)
    assert harness.channel.longest_s < 30
    assert not harness.channel.needs_device


def _on(db: Database, type_: NotificationType) -> Channel:
    return AuditChannel(db) if type_ is NotificationType.AUDIT else _in_app_without_redis(db)


def _in_app_without_redis(db: Database) -> InAppChannel:
    return InAppChannel(db, hints.connect(NOBODY_LISTENS, 1))


@pytest.fixture
def inbox(request: pytest.FixtureRequest) -> Iterator[Harness]:
    with in_app(request) as made:
        yield made


def test_open_app_gets_a_hint_after_the_commit(inbox: Harness, redis_url: str) -> None:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    with client.pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.subscribe(keys.in_app(inbox.user_id))
        subscription.get_message(timeout=5)
        one = inbox.outgoing()
        inbox.send(one)
        hint = subscription.get_message(timeout=5)
    client.close()
    assert json.loads(hint["data"]) == {"notificationId": str(one.id)}


def test_without_redis_the_message_is_stored(inbox: Harness) -> None:
    channel = _in_app_without_redis(inbox.db)
    for _ in range(2):
        assert [result.outcome for result in channel.handle([inbox.outgoing()])] == [Outcome.SENT]
    channel.close()
    assert len(inbox.stored()) == 2


def test_unknown_reader_does_not_block_the_batch(inbox: Harness) -> None:
    nobody = inbox.outgoing(recipient="user:4711", recipient_user_id=4711)
    nonsense = inbox.outgoing(recipient="nobody", recipient_user_id=None)
    by_address = inbox.outgoing(recipient_user_id=None)
    results = inbox.send(nobody, inbox.outgoing(), nonsense, by_address)
    assert [(one.outcome, one.error_code) for one in results] == [
        (Outcome.PERMANENT, "PERSON_NOT_FOUND"),
        (Outcome.SENT, None),
        (Outcome.PERMANENT, "INVALID_ADDRESS"),
        (Outcome.SENT, None),
    ]
    assert not any(one.counts_against_provider for one in results)
    assert inbox.send(nonsense)[0].error_code == "INVALID_ADDRESS"
    assert len(inbox.stored()) == 2
