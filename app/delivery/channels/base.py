"""The contract between the dispatcher and the channels that send messages."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from app.db.database import Database
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Device, Notification, RecipientChannel
from app.foundation.clock import Clock
from app.redis_store.hints import Hints
from app.settings.settings import Settings
from app.users.models import AddressKind


@dataclass(frozen=True)
class OutgoingMessage:
    """A notification with one of its addresses."""

    notification: Notification
    device: Device | None = None
    """The address of a push; for other types the address is `notification.recipient`."""
    recipient_channel: RecipientChannel | None = None

    @property
    def id(self) -> UUID:
        return self.notification.id

    @property
    def address(self) -> str:
        return self.device.token if self.device is not None else self.notification.recipient


MayBegin = Callable[[], bool]
"""False once the worker may begin no further message: it is stopping, or others have taken over its messages."""


@dataclass(frozen=True)
class Wiring:
    """The dependencies of `open_channel`."""

    settings: Settings
    db: Database
    clock: Clock
    hints: Hints


class Channel(Protocol):
    """Sends messages and returns their results. It never retries: only the dispatcher does, by the channel's policy.

    An expected failure is a result. `Unavailable` means that nothing was sent because one of our own stores does not
    answer. After any other exception the message may have been sent. A channel is called by several threads.
    """

    @property
    def name(self) -> str:
        """The name of the channel in logs."""
        ...

    @property
    def policy(self) -> RetryPolicy: ...

    @property
    def batch_size(self) -> int:
        """The highest number of messages in one call of `handle`."""
        ...

    @property
    def address_kinds(self) -> frozenset[AddressKind]:
        """The kinds of devices that it sends to; all of them for types without devices."""
        ...

    @property
    def needs_device(self) -> bool:
        """True if the channel sends only to devices, so that a person without a device cannot be reached."""
        ...

    @property
    def longest_s(self) -> float:
        """The longest time that one call of `handle` may take."""
        ...

    def can_handle(self, notification_type: str) -> bool: ...

    def handler(self, device: Device | None) -> str:
        """The label in metrics of what sends to this device."""
        ...

    def provider(self, message: OutgoingMessage) -> str:
        """The name of the breaker for this message: messages that fail together share a breaker."""
        ...

    def recipient(self, message: OutgoingMessage) -> str:
        """Whose failures count once for the breaker, however many messages fail."""
        ...

    def handle(self, messages: Sequence[OutgoingMessage]) -> Sequence[SendResult | None]:
        """One result for each message, in the same order; None if no time was left to begin the message."""
        ...

    def answers(
        self, messages: Sequence[OutgoingMessage], may_begin: MayBegin
    ) -> Iterator[tuple[int, SendResult | None]]:
        """As `handle`, but each result as soon as it is known, with the place of its message."""
        ...

    def close(self) -> None: ...


class SingleProvider:
    """The common part of most channels: one provider, and by default one message at a time."""

    address_kinds: frozenset[AddressKind] = frozenset(AddressKind)
    batch_size = 1
    needs_device = False

    def __init__(self, name: str, types: Collection[str], policy: RetryPolicy) -> None:
        self.name = name
        self.types = tuple(types)
        self.policy = policy

    @property
    def longest_s(self) -> float:
        return 2 * self.policy.timeout_s

    def can_handle(self, notification_type: str) -> bool:
        return notification_type in self.types

    def handler(self, device: Device | None) -> str:
        return self.name

    def provider(self, message: OutgoingMessage) -> str:
        return self.name

    def recipient(self, message: OutgoingMessage) -> str:
        return message.address

    def handle(self, messages: Sequence[OutgoingMessage]) -> Sequence[SendResult | None]:
        raise NotImplementedError

    def answers(
        self, messages: Sequence[OutgoingMessage], may_begin: MayBegin
    ) -> Iterator[tuple[int, SendResult | None]]:
        yield from enumerate(self.handle(messages))

    def close(self) -> None:
        """Nothing to close by default."""
