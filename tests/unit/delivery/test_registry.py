"""Finding the channel modules, and the channel for a type."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.delivery import channels as package
from app.delivery.channels.base import Wiring
from app.delivery.channels.memory import MemoryChannel
from app.delivery.channels.registry import Channels, NoChannel, open_channels
from app.delivery.messages.values import Device, NotificationType
from app.foundation.clock import FakeClock
from app.settings.settings import Settings
from app.users.models import AddressKind
from tests.support.delivery import PHONE
from tests.support.fcm_server import FcmServer
from tests.support.push_service import new_settings

A_NEW_CHANNEL = """
from app.delivery.channels.base import SingleProvider
from app.delivery.messages.retry import RetryPolicy

class Carrier(SingleProvider):
    def handle(self, messages):
        return []

TYPES = ("PIGEON",)
POLICY = RetryPolicy(timeout_s=1, retries=0)
SETTINGS = ()

def open_channel(wiring):
    return Carrier("carrier", TYPES, POLICY)
"""


NO_HINTS = cast(Any, SimpleNamespace(close=lambda: None))


def wiring(**settings: Any) -> Wiring:
    values = {"database_url": "postgresql://nowhere/x", "redis_url": "redis://nowhere/0", "auth_secret": "x" * 40}
    return Wiring(Settings(**(values | settings)), cast(Any, None), FakeClock(), NO_HINTS)


def test_first_channel_that_handles_a_type_is_used() -> None:
    first, second = MemoryChannel(), MemoryChannel()
    assert Channels([MemoryChannel(type_=NotificationType.SMS), first, second]).find("PUSH") is first


def test_type_without_a_channel_fails_at_once_and_names_the_channels() -> None:
    with pytest.raises(NoChannel, match=r"No channel handles FAX; there are: memory\."):
        Channels([MemoryChannel()]).find("FAX")


def test_default_settings_give_every_type_a_channel() -> None:
    found = open_channels(wiring())
    assert {type_: found.find(type_).name for type_ in NotificationType} == {
        "EMAIL": "recording",
        "SMS": "recording",
        "PUSH": "recording",
        "WHATSAPP": "recording",
        "IN_APP": "in_app",
        "WEBHOOK": "webhook",
        "AUDIT": "audit",
    }
    found.close()


def test_configured_provider_replaces_recording() -> None:
    found = open_channels(wiring(sms_gateway_url="https://sms.example/send", sms_gateway_token="t"))
    assert found.find("SMS").name == "sms_gateway"
    assert found.find("EMAIL").name == "recording"
    found.close()


def handlers(found: Channels) -> list[str]:
    """What sends a push to a person without a device, to a phone and to a browser."""
    browser = Device("browser", "{}", AddressKind.WEB_PUSH)
    return [found.find("PUSH").handler(device) for device in (None, PHONE, browser)]


def test_without_keys_pushes_to_browsers_are_recorded(tmp_path: Path) -> None:
    recorded = open_channels(wiring())
    assert handlers(recorded) == ["recording"] * 3
    with FcmServer().running() as server:
        credentials = str(server.write_credentials(tmp_path / "key.json"))
        found = open_channels(wiring(push="fcm", firebase_credentials=credentials))
    assert handlers(found) == ["fcm", "fcm", "recording"]
    recorded.close()
    found.close()


def test_with_keys_pushes_to_browsers_are_sent() -> None:
    found = open_channels(wiring(**new_settings()))
    assert handlers(found) == ["recording", "recording", "web_push"]
    found.close()


def test_new_module_in_the_package_is_a_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pigeon.py").write_text(A_NEW_CHANNEL)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    found = open_channels(wiring())
    assert found.find("PIGEON").name == "carrier"
    found.close()
    sys.modules.pop("app.delivery.channels.pigeon")
