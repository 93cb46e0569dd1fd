"""What every channel promises, whichever it is."""

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
from app.delivery.messages.values import Notification, Outcome
from app.foundation.clock import FakeClock
from tests.support.delivery import PHONE, TABLET, outgoing, shown
from tests.support.fcm_server import FcmServer


@dataclass
class Arrived:
    """What a phone got."""

    title: str | None
    body: str | None
    data: dict[str, str]


@dataclass
class Stage:
    channel: Channel
    arrived: Callable[[], list[Arrived]]


@contextmanager
def memory(request: pytest.FixtureRequest) -> Iterator[Stage]:
    channel = MemoryChannel(batch_size=10)
    yield Stage(channel, lambda: [_shown(one.notification) for one in channel.sent])


@contextmanager
def recording(request: pytest.FixtureRequest) -> Iterator[Stage]:
    db: Database = request.getfixturevalue("db")
    yield Stage(RecordingChannel(db), lambda: [Arrived(one.title, one.body, one.data) for one in shown(db)])


@contextmanager
def fcm(request: pytest.FixtureRequest) -> Iterator[Stage]:
    tmp_path: Path = request.getfixturevalue("tmp_path")
    with FcmServer().running() as server:
        credentials = server.write_credentials(tmp_path / "account.json")
        channel = FcmChannel(str(credentials), FakeClock(), base_url=server.base_url)
        yield Stage(channel, lambda: [_arrived(message) for message in server.messages])
        channel.close()


def _shown(event: Notification) -> Arrived:
    return Arrived(event.subject or None, event.body or None, event.data)


def _arrived(message: dict[str, Any]) -> Arrived:
    words = message.get("notification", {})
    return Arrived(words.get("title"), words.get("body"), message["data"])


Opened = Callable[[pytest.FixtureRequest], AbstractContextManager[Stage]]


@pytest.fixture(params=[memory, recording, fcm], ids=["memory", "recording", "fcm"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    opened: Opened = request.param
    with opened(request) as made:
        yield made


def test_phone_gets_text_and_data(stage: Stage) -> None:
    one = outgoing()
    [result] = stage.channel.handle([one])
    assert result.outcome is Outcome.SENT
    assert stage.arrived() == [Arrived("Yeni talep", "Yakınında yeni bir talep var!", one.notification.data)]
    assert set(one.notification.data) == {"type", "taskId", "deadline", "notificationId"}


def test_without_text_the_app_gets_only_data(stage: Stage) -> None:
    one = outgoing(subject="", body="")
    assert stage.channel.handle([one])[0].outcome is Outcome.SENT
    assert stage.arrived() == [Arrived(None, None, one.notification.data)]


def test_title_without_a_body_is_shown(stage: Stage) -> None:
    stage.channel.handle([outgoing(body="")])
    assert [(one.title, one.body) for one in stage.arrived()] == [("Yeni talep", None)]


def test_there_is_one_result_for_each_message(stage: Stage) -> None:
    results = stage.channel.handle([outgoing(), outgoing(TABLET), outgoing()])
    assert [result.outcome for result in results] == [Outcome.SENT] * 3
    assert len(stage.arrived()) == 3


def test_each_device_of_a_person_gets_the_message(stage: Stage) -> None:
    one = outgoing(PHONE)
    other = outgoing(TABLET, id=one.id, data=one.notification.data)
    stage.channel.handle([one, other])
    assert [arrived.data["notificationId"] for arrived in stage.arrived()] == [str(one.id)] * 2


def test_empty_batch_is_accepted(stage: Stage) -> None:
    assert stage.channel.handle([]) == []
    assert stage.arrived() == []


def test_text_in_every_alphabet_arrives_unchanged(stage: Stage) -> None:
    stage.channel.handle([outgoing(subject="Ayşe'nin çağrısı 👵", body='"tırnak" \\ ve satır\nsonu')])
    assert [(one.title, one.body) for one in stage.arrived()] == [("Ayşe'nin çağrısı 👵", '"tırnak" \\ ve satır\nsonu')]


def test_channel_describes_itself_to_the_dispatcher(stage: Stage) -> None:
    assert stage.channel.batch_size >= 1
    assert stage.channel.policy.timeout_s == 3
    assert stage.channel.policy.retries == 2
