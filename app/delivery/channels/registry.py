"""Finds the channels: the modules of this package that follow the protocol `ChannelModule`.

CONTRIBUTING.md lists the parts of a new channel; `tests/policy/test_parts_of_a_channel.py` reports missing parts.
"""

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from app.delivery import channels as package
from app.delivery.channels.base import Channel, Wiring
from app.delivery.channels.by_address_kind import ByAddressKind
from app.delivery.channels.unserved import UnservedChannel
from app.delivery.messages.retry import RetryPolicy
from app.delivery.messages.values import NotificationType
from app.foundation.loading import lean_imports
from app.users.models import AddressKind


class ChannelModule(Protocol):
    """The declarations in the module of a channel."""

    @property
    def TYPES(self) -> tuple[NotificationType, ...]:
        """The types of notifications that the channel can send."""
        ...

    @property
    def POLICY(self) -> RetryPolicy:
        """The timeout and the retries of the channel."""
        ...

    @property
    def SETTINGS(self) -> tuple[str, ...]:
        """The settings that `open_channel` reads."""
        ...

    def open_channel(self, wiring: Wiring) -> Channel | None:
        """None if the settings do not set up this channel."""
        ...


class NoChannel(LookupError):
    """No open channel sends notifications of this type."""


class Channels:
    """The open channels. A type is sent by the first channel that can handle it; pushes to each kind of device by the
    first channel of that kind."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self.all = tuple(channels)
        self._found: dict[str, Channel] = {}

    def find(self, notification_type: str) -> Channel:
        if notification_type not in self._found:
            self._found[notification_type] = self._search(notification_type)
        return self._found[notification_type]

    def _search(self, notification_type: str) -> Channel:
        found = [channel for channel in self.all if channel.can_handle(notification_type)]
        if not found:
            names = ", ".join(channel.name for channel in self.all) or "none"
            raise NoChannel(f"No channel handles {notification_type}; there are: {names}.")
        unserved = UnservedChannel(notification_type)
        by_kind = {
            kind: next((channel for channel in found if kind in channel.address_kinds), unserved)
            for kind in AddressKind
        }
        return found[0] if set(by_kind.values()) == {found[0]} else ByAddressKind(by_kind)

    def close(self) -> None:
        for channel in self.all:
            channel.close()


def open_channels(wiring: Wiring) -> Channels:
    opened = [module.open_channel(wiring) for module in channel_modules().values()]
    return Channels([channel for channel in opened if channel is not None])


def channel_modules() -> dict[str, ChannelModule]:
    """The modules of the channels, by file name."""
    names = [module.name for module in iter_modules(package.__path__)]
    with lean_imports():
        modules = {name: import_module(f"{package.__name__}.{name}") for name in names}
    return {name: cast(ChannelModule, module) for name, module in modules.items() if hasattr(module, "open_channel")}
