"""Sends pushes to the devices of a person where devices of different kinds have different channels."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from app.delivery.channels.base import Channel, MayBegin, OutgoingMessage
from app.delivery.messages.retry import SendResult
from app.delivery.messages.values import Device
from app.foundation.errors import Unavailable
from app.users.models import AddressKind


@dataclass(frozen=True)
class _Ended:
    """A channel has answered for its part of a batch, or has failed."""

    error: Exception | None = None


_Answers = SimpleQueue[tuple[int, SendResult | None] | _Ended]


class ByAddressKind:
    """A message goes to the channel of its device's kind, and without a device to that of tokens."""

    name = "by_address_kind"

    def __init__(self, channels: Mapping[AddressKind, Channel]) -> None:
        self._channels = channels
        every = tuple(channels.values())
        # The settings are those of the type. Only the pauses after a 5xx differ, which a recorded push never gets.
        self.policy = max((one.policy for one in every), key=lambda policy: policy.overloaded_backoff_s or ())
        self.batch_size = min(one.batch_size for one in every)
        self.needs_device = self._of(None).needs_device
        self.address_kinds = frozenset(channels)

    @property
    def longest_s(self) -> float:
        return max(one.longest_s for one in self._channels.values())

    def can_handle(self, notification_type: str) -> bool:
        return self._of(None).can_handle(notification_type)

    def handler(self, device: Device | None) -> str:
        return self._of(device).handler(device)

    def provider(self, message: OutgoingMessage) -> str:
        return self._of(message.device).provider(message)

    def recipient(self, message: OutgoingMessage) -> str:
        return self._of(message.device).recipient(message)

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult | None]:
        results = dict(self.answers(messages, lambda: True))
        return [results[place] for place in range(len(messages))]

    def answers(
        self, messages: Sequence[OutgoingMessage], may_begin: MayBegin
    ) -> Iterator[tuple[int, SendResult | None]]:
        """All channels at the same time, because each may take as long as a lease allows."""
        parts: dict[Channel, list[int]] = {}
        for place, message in enumerate(messages):
            parts.setdefault(self._of(message.device), []).append(place)
        if len(parts) == 1:
            (only,) = parts
            yield from only.answers(messages, may_begin)
            return
        answered = _Answers()
        for channel, places in parts.items():
            threading.Thread(
                target=_answer, args=(channel, messages, places, may_begin, answered), name="by-kind", daemon=True
            ).start()
        yield from _collected(answered, len(parts))

    def close(self) -> None:
        """Whoever has opened the channels closes them."""

    def _of(self, device: Device | None) -> Channel:
        return self._channels[device.address_kind if device is not None else AddressKind.TOKEN]


def _answer(
    channel: Channel,
    messages: Sequence[OutgoingMessage],
    places: Sequence[int],
    may_begin: MayBegin,
    answered: _Answers,
) -> None:
    try:
        for number, result in channel.answers([messages[place] for place in places], may_begin):
            answered.put((places[number], result))
    except Exception as error:
        answered.put(_Ended(error))
    else:
        answered.put(_Ended())


def _collected(answered: _Answers, parts: int) -> Iterator[tuple[int, SendResult | None]]:
    """The failure of one channel reaches the caller after the answers of the others. It is then the result of those
    without an answer; `Unavailable` means that nothing was sent, so another failure goes first."""
    failures: list[Exception] = []
    while parts:
        one = answered.get()
        if not isinstance(one, _Ended):
            yield one
            continue
        parts -= 1
        failures += [one.error] if one.error is not None else []
    if failures:
        raise min(failures, key=lambda error: isinstance(error, Unavailable))
