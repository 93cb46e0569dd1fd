"""Fails with the name of the part that a channel lacks. CONTRIBUTING.md has the list of parts."""

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.delivery.channels.base import Channel, Wiring
from app.delivery.channels.registry import Channels, channel_modules, open_channels
from app.delivery.messages.addresses import InvalidAddress, check_address
from app.delivery.messages.retry import RetryPolicy, policy_of
from app.delivery.messages.traits import TRAITS, AddressForm
from app.delivery.messages.values import NotificationType
from app.foundation.clock import FakeClock
from app.settings.settings import Settings
from tests.support.fcm_server import FcmServer

MODULES = channel_modules()
DELIVERY = Path(__file__).resolve().parents[2] / "app" / "delivery"
STAND_IN = "recording"
STORES: dict[str, Any] = {
    "database_url": "postgresql://nowhere/x",
    "redis_url": "redis://nowhere/0",
    "auth_secret": "x" * 40,
}
# Settings that open the channels that need a provider.
PROVIDERS: dict[str, dict[str, str]] = {
    "email": {"smtp_url": "smtps://user:word@mail.example", "smtp_from": "bildirim@ornek.org"},
    "fcm": {"push": "fcm"},
    "sms_gateway": {"sms_gateway_url": "https://sms.example/send"},
    "twilio": {"twilio_account_sid": "AC0", "twilio_auth_token": "t", "twilio_from": "+15005550006"},
    "web_push": {
        "vapid_public_key": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "vapid_private_key": "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
        "vapid_subject": "mailto:nobet@ornek.org",
    },
    "whatsapp": {"whatsapp_phone_number_id": "1", "whatsapp_access_token": "t"},
}


class RecordedSettings:
    """Records the names of settings that are read, also by properties that combine several."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        declared = inspect.getattr_static(Settings, name, None)
        if isinstance(declared, property):
            assert declared.fget is not None
            return declared.fget(self)
        self.names.add(name)
        return getattr(self.settings, name)


def wiring(settings: Any) -> Wiring:
    hints = cast(Any, SimpleNamespace(close=lambda: None))
    return Wiring(settings, cast(Any, None), FakeClock(), hints)


def open_with(name: str, settings: dict[str, Any]) -> tuple[Channel | None, set[str]]:
    """Returns the channel and the names of the settings that it read."""
    recorded = RecordedSettings(Settings(**(STORES | settings)))
    channel = MODULES[name].open_channel(wiring(recorded))
    if channel is not None:
        channel.close()
    return channel, recorded.names


@pytest.fixture(scope="module")
def channels_of_a_new_copy() -> Iterator[Channels]:
    found = open_channels(wiring(Settings(**STORES)))
    yield found
    found.close()


@pytest.mark.parametrize("type_", NotificationType)
def test_every_type_has_its_traits(type_: NotificationType) -> None:
    assert type_ in TRAITS, f"app/delivery/messages/traits.py has no row for {type_}"


@pytest.mark.parametrize("form", AddressForm)
def test_every_form_of_an_address_has_its_check(form: AddressForm) -> None:
    type_ = next((type_ for type_, traits in TRAITS.items() if traits.address is form), None)
    assert type_ is not None, f"no type has the form {form}"
    with suppress(InvalidAddress):
        check_address(type_, "nobody", "90")


# A push goes to phones, an entry of the audit trail to a plan, and webhooks are signed. No other type is told apart.
NAMES_TYPES = {
    "actions/targets.py": {"AUDIT", "PUSH"},
    "directory/service.py": {"WEBHOOK"},
    "messages/claims.py": {"PUSH"},
    "messages/views.py": {"PUSH"},
}


def test_no_other_module_names_a_type() -> None:
    """So that a new type needs only what CONTRIBUTING.md lists."""
    found: dict[str, set[str]] = {}
    for path in sorted(DELIVERY.rglob("*.py")):
        name = str(path.relative_to(DELIVERY))
        types = set(re.findall(r"NotificationType\.([A-Z_]+)\b", path.read_text()))
        if types and not name.startswith("channels/") and name != "messages/traits.py":
            found[name] = types
    assert found == NAMES_TYPES


@pytest.mark.parametrize("name", MODULES)
def test_a_channel_names_its_types_once(name: str) -> None:
    """Its module may name them in `TYPES` and in checks of addresses, but hands `TYPES` to its channel."""
    source = (DELIVERY / "channels" / f"{name}.py").read_text()
    assert not re.search(r"super\(\)\.__init__\([^)]*NotificationType", source)


@pytest.mark.parametrize("type_", NotificationType)
def test_every_type_has_a_channel(type_: NotificationType) -> None:
    assert any(type_ in module.TYPES for name, module in MODULES.items() if name != STAND_IN), (
        f"no file of app/delivery/channels has {type_} in its TYPES"
    )


@pytest.mark.parametrize("type_", NotificationType)
def test_every_type_is_handled_without_a_provider(type_: NotificationType, channels_of_a_new_copy: Channels) -> None:
    assert any(channel.can_handle(type_) for channel in channels_of_a_new_copy.all), (
        f"without its settings nothing handles {type_}: add it to Settings.recorded_types and to recording.TYPES"
    )


@pytest.mark.parametrize("name", MODULES)
def test_a_channel_declares_its_types_retries_and_settings(name: str) -> None:
    module = MODULES[name]
    for declared in ("TYPES", "POLICY", "SETTINGS"):
        assert hasattr(module, declared), f"app/delivery/channels/{name}.py does not declare {declared}"
    assert module.TYPES and set(module.TYPES) <= set(NotificationType)
    assert isinstance(module.POLICY, RetryPolicy)


@pytest.mark.parametrize(("name", "setting"), [(name, one) for name in MODULES for one in MODULES[name].SETTINGS])
def test_the_settings_of_a_channel_exist(name: str, setting: str) -> None:
    assert setting in Settings.model_fields, f"app/settings/settings.py lacks {setting}, which {name}.py reads"


@pytest.mark.parametrize("name", MODULES)
def test_a_channel_reads_the_settings_that_it_declares(name: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = PROVIDERS.get(name, {})
    if name == "fcm":
        with FcmServer().running() as server:
            settings = settings | {"firebase_credentials": str(server.write_credentials(tmp_path / "key.json"))}
    channel, names = open_with(name, settings)
    assert channel is not None, f"PROVIDERS in this file lacks what opens {name}"
    assert {type_ for type_ in NotificationType if channel.can_handle(type_)} <= set(MODULES[name].TYPES)
    assert names == set(MODULES[name].SETTINGS)


@pytest.mark.parametrize("name", [name for name in MODULES if name != STAND_IN])
def test_the_settings_have_the_declared_retries_as_defaults(name: str) -> None:
    module = MODULES[name]
    assert policy_of(Settings(**STORES), module.TYPES[0], module.POLICY) == module.POLICY


def test_settings_change_the_retries_of_one_type() -> None:
    settings = Settings(**STORES, sms_timeout_s=4, sms_retries=5, sms_backoff_s="2,20")
    channel, _ = open_with("sms_gateway", {**PROVIDERS["sms_gateway"], "sms_retries": 5, "sms_backoff_s": "2,20"})
    assert channel is not None
    assert (channel.policy.retries, channel.policy.backoff_s) == (5, (2.0, 20.0))
    declared = MODULES["email"].POLICY
    assert policy_of(settings, NotificationType.EMAIL, declared) == declared


@pytest.mark.parametrize("pauses", ["", "1,,5", "0", "1;5", "nan", "inf", "1e9", "one"])
def test_pauses_that_are_none_are_refused(pauses: str) -> None:
    with pytest.raises(ValueError, match="seconds"):
        Settings(**STORES, push_backoff_s=cast(Any, pauses))


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_channel_without_settings_of_its_provider_is_not_opened(name: str) -> None:
    channel, names = open_with(name, {})
    assert channel is None
    assert names <= set(MODULES[name].SETTINGS)
