"""What the channels promise that end in our own database: the inbox of the app, and the audit trail."""

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

Kept = tuple[str, str, Any]


@dataclass
class Stage:
    channel: Channel
    type_: NotificationType
    db: Database
    user_id: int
    kept: Callable[[], list[Kept]]
    """Subject, body and data of what arrived, in order."""

    def outgoing(self, **changes: Any) -> OutgoingMessage:
        own = {"notification_type": self.type_, "recipient": f"user:{self.user_id}", "recipient_user_id": self.user_id}
        return outgoing(None, **(own | changes))

    def send(self, *messages: OutgoingMessage) -> Sequence[Any]:
        return self.channel.handle(messages)


def _rows(db: Database, statement: str) -> list[Kept]:
    with db.reading() as conn:
        return [(one[0], one[1], one[2]) for one in conn.execute(text(statement))]


@contextmanager
def in_app(request: pytest.FixtureRequest) -> Iterator[Stage]:
    db: Database = request.getfixturevalue("db")
    channel = InAppChannel(db, hints.connect(request.getfixturevalue("redis_url"), 4))
    statement = "SELECT subject, body, data FROM in_app_messages ORDER BY id"
    yield Stage(channel, NotificationType.IN_APP, db, add_user(db), lambda: _rows(db, statement))
    channel.close()


@contextmanager
def audit(request: pytest.FixtureRequest) -> Iterator[Stage]:
    db: Database = request.getfixturevalue("db")
    statement = "SELECT subject, body, metadata -> 'data' FROM audit_entries ORDER BY id"
    yield Stage(AuditChannel(db), NotificationType.AUDIT, db, add_user(db), lambda: _rows(db, statement))


Opened = Callable[[pytest.FixtureRequest], AbstractContextManager[Stage]]


@pytest.fixture(params=[in_app, audit], ids=["in_app", "audit"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    opened: Opened = request.param
    with opened(request) as made:
        yield made


def test_text_and_data_are_stored_unchanged(stage: Stage) -> None:
    one = stage.outgoing(subject="Ayşe'nin çağrısı 👵", body='"tırnak" \\ ve satır\nsonu')
    [result] = stage.send(one)
    assert (result.outcome, result.error_code) == (Outcome.SENT, None)
    assert result.provider_message_id == f"{stage.channel.name}:{one.id}"
    assert stage.kept() == [("Ayşe'nin çağrısı 👵", '"tırnak" \\ ve satır\nsonu', one.notification.data)]


def test_batch_is_stored_in_its_order(stage: Stage) -> None:
    messages = [stage.outgoing(subject=str(number)) for number in range(stage.channel.batch_size)]
    assert [result.outcome for result in stage.send(*messages)] == [Outcome.SENT] * len(messages)
    assert [subject for subject, _, _ in stage.kept()] == [message.notification.subject for message in messages]


def test_repeated_message_is_stored_once(stage: Stage) -> None:
    one, other = stage.outgoing(), stage.outgoing()
    for messages in ([one], [one, other], [other, one, one]):
        assert {result.outcome for result in stage.send(*messages)} == {Outcome.SENT}
    assert len(stage.kept()) == 2


def test_concurrently_repeated_message_is_stored_once(stage: Stage) -> None:
    messages = [stage.outgoing() for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda turn: stage.send(*messages[turn:], *messages[:turn]), range(8)))
    assert {result.outcome for batch in results for result in batch} == {Outcome.SENT}
    assert len(stage.kept()) == 8


def test_empty_batch_is_accepted(stage: Stage) -> None:
    assert list(stage.send()) == []
    assert stage.kept() == []


def test_missing_database_is_unavailable(stage: Stage) -> None:
    away = Database("postgresql://nobody@127.0.0.1:9/none", connect_timeout_s=2)
    with pytest.raises(Unavailable):
        _on(away, stage.type_).handle([stage.outgoing()])
    assert stage.kept() == []


def test_locked_table_ends_at_the_timeout_of_the_policy(stage: Stage, database_url: str) -> None:
    """The limit is the channel's own, also where the process is more patient."""
    patient = Database(database_url, statement_timeout_ms=60_000, lock_timeout_ms=60_000)
    channel = _on(patient, stage.type_)
    channel.policy = replace(channel.policy, timeout_s=0.3)
    table = "audit_entries" if stage.type_ is NotificationType.AUDIT else "in_app_messages"
    with stage.db.transaction() as holder:
        holder.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(DatabaseUnavailable):
            channel.handle([stage.outgoing()])
    patient.close()
    assert stage.kept() == []
    assert stage.send(stage.outgoing())[0].outcome is Outcome.SENT


def test_every_process_has_the_channel_for_its_type(stage: Stage, settings: Settings) -> None:
    channels = build_channels(settings, stage.db, DatabaseClock(stage.db.now))
    assert type(channels.find(stage.type_)) is type(stage.channel)
    channels.close()


def test_channel_describes_itself_to_the_dispatcher(stage: Stage) -> None:
    assert stage.channel.policy.timeout_s == 2
    assert stage.channel.policy.retries == (0 if stage.type_ is NotificationType.AUDIT else 3)
    assert stage.channel.longest_s < 30
    assert not stage.channel.needs_device


def _on(db: Database, type_: NotificationType) -> Channel:
    return AuditChannel(db) if type_ is NotificationType.AUDIT else _in_app_without_redis(db)


def _in_app_without_redis(db: Database) -> InAppChannel:
    return InAppChannel(db, hints.connect(NOBODY_LISTENS, 1))


@pytest.fixture
def inbox(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with in_app(request) as made:
        yield made


def test_open_app_gets_a_hint_after_the_commit(inbox: Stage, redis_url: str) -> None:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    with client.pubsub(ignore_subscribe_messages=True) as ear:
        ear.subscribe(keys.in_app(inbox.user_id))
        ear.get_message(timeout=5)
        one = inbox.outgoing()
        inbox.send(one)
        heard = ear.get_message(timeout=5)
    client.close()
    assert json.loads(heard["data"]) == {"notificationId": str(one.id)}


def test_without_redis_the_message_is_stored(inbox: Stage) -> None:
    channel = _in_app_without_redis(inbox.db)
    for _ in range(2):
        assert [result.outcome for result in channel.handle([inbox.outgoing()])] == [Outcome.SENT]
    channel.close()
    assert len(inbox.kept()) == 2


def test_unknown_reader_does_not_block_the_batch(inbox: Stage) -> None:
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
    assert len(inbox.kept()) == 2
