"""The contract of every push channel."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.db.database import Database
from app.delivery.channels.base import Channel
from app.delivery.channels.fcm import FcmChannel
from app.delivery.channels.memory import MemoryChannel
from app.delivery.channels.recording import RecordingChannel
from app.delivery.channels.web_push import WebPushChannel
from app.delivery.messages.values import Device, Notification, Outcome
from app.foundation.clock import FakeClock
from tests.support.delivery import PHONE, TABLET, outgoing, shown
from tests.support.fcm_server import FcmServer
from tests.support.push_service import RESOLVER, PushService, new_keys


@dataclass
class Arrived:
    """A push as a phone received it."""

    title: str | None
    body: str | None
    data: dict[str, str]


@dataclass
class Harness:
    channel: Channel
    arrived: Callable[[], list[Arrived]]
    phone: Device = PHONE
    tablet: Device = TABLET


@contextmanager
def memory(request: pytest.FixtureRequest) -> Iterator[Harness]:
    channel = MemoryChannel(batch_size=10)
    yield Harness(channel, lambda: [_shown(one.notification) for one in channel.sent])


@contextmanager
def recording(request: pytest.FixtureRequest) -> Iterator[Harness]:
    db: Database = request.getfixturevalue("db")
    yield Harness(RecordingChannel(db), lambda: [Arrived(one.title, one.body, one.data) for one in shown(db)])


@contextmanager
def fcm(request: pytest.FixtureRequest) -> Iterator[Harness]:
    tmp_path: Path = request.getfixturevalue("tmp_path")
    with FcmServer().running() as server:
        credentials = server.write_credentials(tmp_path / "account.json")
        channel = FcmChannel(str(credentials), FakeClock(), base_url=server.base_url)
        yield Harness(channel, lambda: [_arrived(message) for message in server.messages])
        channel.close()


@contextmanager
def web_push(request: pytest.FixtureRequest) -> Iterator[Harness]:
    clock, keys = FakeClock(), new_keys()
    with PushService(keys, lambda: clock.now().timestamp()).running() as service:
        assert service.certificate is not None
        trusted = Path(request.getfixturevalue("tmp_path")) / "trusted.pem"
        trusted.write_bytes(service.certificate)
        channel = WebPushChannel(keys, clock, check=None, resolver=RESOLVER, ca_file=str(trusted))
        phone, tablet = (service.subscribe(name).device for name in ("phone", "tablet"))
        yield Harness(channel, lambda: [_arrived(message) for message in service.shown], phone, tablet)
        channel.close()


def _shown(notification: Notification) -> Arrived:
    return Arrived(notification.subject or None, notification.body or None, notification.data)


def _arrived(message: dict[str, Any]) -> Arrived:
    text = message.get("notification", {})
    return Arrived(text.get("title"), text.get("body"), message["data"])


OpenHarness = Callable[[pytest.FixtureRequest], AbstractContextManager[Harness]]


@pytest.fixture(params=[memory, recording, fcm, web_push], ids=["memory", "recording", "fcm", "web_push"])
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    open_harness: OpenHarness = request.param
    with open_harness(request) as harness:
        yield harness


def test_phone_gets_text_and_data(harness: Harness) -> None:
    one = outgoing(harness.phone)
    [result] = harness.channel.handle([one])
    assert result.outcome is Outcome.SENT
    assert harness.arrived() == [Arrived("Yeni talep", "Yakınında yeni bir talep var!", one.notification.data)]
    assert set(one.notification.data) == {"type", "taskId", "deadline", "notificationId"}


def test_without_text_the_app_gets_only_data(harness: Harness) -> None:
    one = outgoing(harness.phone, subject="", body="")
    assert harness.channel.handle([one])[0].outcome is Outcome.SENT
    assert harness.arrived() == [Arrived(None, None, one.notification.data)]


def test_title_without_a_body_is_shown(harness: Harness) -> None:
    harness.channel.handle([outgoing(harness.phone, body="")])
    assert [(one.title, one.body) for one in harness.arrived()] == [("Yeni talep", None)]


def test_there_is_one_result_for_each_message(harness: Harness) -> None:
    results = harness.channel.handle([outgoing(device) for device in (harness.phone, harness.tablet, harness.phone)])
    assert [result.outcome for result in results] == [Outcome.SENT] * 3
    assert len(harness.arrived()) == 3


def test_each_device_of_a_person_gets_the_message(harness: Harness) -> None:
    one = outgoing(harness.phone)
    other = outgoing(harness.tablet, id=one.id, data=one.notification.data)
    harness.channel.handle([one, other])
    assert [arrived.data["notificationId"] for arrived in harness.arrived()] == [str(one.id)] * 2


def test_empty_batch_is_accepted(harness: Harness) -> None:
    assert harness.channel.handle([]) == []
    assert harness.arrived() == []


def test_text_in_every_alphabet_arrives_unchanged(harness: Harness) -> None:
    harness.channel.handle([outgoing(harness.phone, subject="Ayşe'nin çağrısı 👵", body='"tırnak" \\ ve satır\nsonu')])
    assert [(one.title, one.body) for one in harness.arrived()] == [
        ("Ayşe'nin çağrısı 👵", '"tırnak" \\ ve satır\nsonu')
    ]


def test_channel_describes_itself_to_the_dispatcher(harness: Harness) -> None:
    assert harness.channel.batch_size >= 1
    assert harness.channel.policy.timeout_s == 3
    assert harness.channel.policy.retries == 2
