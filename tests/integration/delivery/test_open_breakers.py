"""Plans go on while the breaker of a provider is open."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from app.db.database import Database
from app.db.wake import Announcer
from app.delivery.channels.memory import MemoryChannel
from app.delivery.channels.registry import Channels
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import NotificationType, Outcome
from app.delivery.role import FOLLOWERS
from app.delivery.sending.dispatcher import Dispatcher
from app.foundation.clock import DatabaseClock
from app.redis_store.breakers import BreakerRules, BreakerState, RedisBreakers
from app.redis_store.client import open_client
from app.settings.settings import Settings
from tests.support.actions import ActionHarness
from tests.support.delivery import add_user, make_due, post

RULES = BreakerRules(failures=3)
ELDER, ON_CALL = "+905550000001", "+905550000099"
SENT = SendResult(Outcome.SENT)


class Firebase(MemoryChannel):
    """Refuses every push until it is mended."""

    def __init__(self) -> None:
        self.is_down = True
        super().__init__(lambda _: SendResult(Outcome.TRANSIENT, "UNAVAILABLE") if self.is_down else SENT)


class Providers:
    """A provider of pushes with an open breaker in Redis, and an SMS gateway that works."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self.now = 1_000.0
        self.push, self.sms = Firebase(), MemoryChannel(type_=NotificationType.SMS, needs_device=False)
        self.push.name, self.sms.name = "fcm", "sms"
        self.breakers = RedisBreakers(open_client(settings.redis_url), RULES, lambda: self.now)
        self._dispatcher = Dispatcher(
            db,
            DatabaseClock(db.now),
            Channels([self.push, self.sms]),
            announcer=Announcer(settings.database_url),
            types=[NotificationType.PUSH, NotificationType.SMS],
            breakers=self.breakers,
            followers=FOLLOWERS,
        )
        post(db, [add_user(db, f"phone-{number}") for number in range(RULES.failures)])
        self.send()
        assert self.breakers.states() == {"fcm": BreakerState.OPEN}

    def send(self) -> None:
        self._dispatcher.run_once()


@pytest.fixture
def harness(db: Database) -> ActionHarness:
    return ActionHarness(db)


@pytest.fixture
def providers(db: Database, settings: Settings) -> Iterator[Providers]:
    made = Providers(db, settings)
    yield made
    made.breakers.close()


def an_elder_with_the_app(harness: ActionHarness, phone: str | None) -> int:
    elder = harness.user(phone)
    harness.sql(
        "INSERT INTO devices (device_id, user_id, token, platform, address_kind)"
        " VALUES ('elder', :elder, 'token-elder', 'ANDROID', 'TOKEN')",
        elder=elder,
    )
    return elder


def somebody_is_on_call(harness: ActionHarness) -> None:
    [profile] = harness.sql(
        "UPDATE recipient_profiles SET status = true WHERE key = 'coordinator.on_call' RETURNING id"
    )
    harness.channel(profile.id, "sms", ON_CALL)


def nobody_found(harness: ActionHarness, elder: int) -> UUID:
    return harness.ask("matching.nobody_found", elder, variables={"elder": "Ayşe", "phone": "yok"})


def test_coordinator_on_call_hears_of_an_elder_without_a_phone_number(
    harness: ActionHarness, providers: Providers
) -> None:
    somebody_is_on_call(harness)
    id_ = nobody_found(harness, an_elder_with_the_app(harness, phone=None))
    providers.send()
    harness.settle()
    assert harness.states(id_) == ["RUNNING", "WAITING"]
    harness.pass_time(id_, 60)
    harness.settle()
    providers.send()
    harness.settle()
    assert [message.address for message in providers.sms.sent] == [ON_CALL]
    assert harness.states(id_) == ["RUNNING", "SENT"], "the push to the elder still waits for the provider"

    providers.push.is_down, providers.now = False, providers.now + RULES.open_s
    make_due(harness.db, harness.notifications(id_)[0].id)
    providers.send()
    harness.settle()
    assert (harness.states(id_), harness.status(id_)) == (["SENT", "SENT"], "DONE")
    assert harness.dead_letters(id_) == []


def test_elder_with_a_phone_number_gets_the_sms_instead(harness: ActionHarness, providers: Providers) -> None:
    id_ = nobody_found(harness, an_elder_with_the_app(harness, ELDER))
    providers.send()
    harness.pass_time(id_, 60)
    harness.settle()
    providers.send()
    harness.settle()
    assert [message.address for message in providers.sms.sent] == [ELDER]
    assert harness.sent_to(id_) == [("PUSH", "CANCELLED"), ("SMS", "SENT")]
    assert len(providers.push.sent) == RULES.failures, "the breaker let no further push pass"
