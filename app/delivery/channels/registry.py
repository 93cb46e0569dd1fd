"""Finds the channels. Each module of this package that has an `open_channel` offers one, or none where the settings
do not ask for it: to add a channel is to add a file.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from app.db.database import Database
from app.delivery import channels as package
from app.delivery.channels.base import Channel
from app.foundation.clock import Clock
from app.redis_store.hints import Hints
from app.settings.settings import Settings


@dataclass(frozen=True)
class Wiring:
    """What a channel may need to open itself."""

    settings: Settings
    db: Database
    clock: Clock
    hints: Hints


OpenChannel = Callable[[Wiring], Channel | None]


class NoChannel(LookupError):
    """Nobody carries messages of this type."""


class Channels:
    """The first channel that can handle a type serves it."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self.all = tuple(channels)
        self._found: dict[str, Channel] = {}

    def find(self, notification_type: str) -> Channel:
        if notification_type not in self._found:
            self._found[notification_type] = self._search(notification_type)
        return self._found[notification_type]

    def _search(self, notification_type: str) -> Channel:
        for channel in self.all:
            if channel.can_handle(notification_type):
                return channel
        names = ", ".join(channel.name for channel in self.all) or "none"
        raise NoChannel(f"No channel handles {notification_type}; there are: {names}.")

    def close(self) -> None:
        for channel in self.all:
            channel.close()


def open_channels(wiring: Wiring) -> Channels:
    opened = [open_channel(wiring) for open_channel in _openers()]
    return Channels([channel for channel in opened if channel is not None])


def _openers() -> list[OpenChannel]:
    modules = [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]
    return [module.open_channel for module in modules if hasattr(module, "open_channel")]
