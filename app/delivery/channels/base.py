"""The contract between the dispatcher and whatever carries a message to a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from app.delivery.messages.retry import Result, RetryPolicy
from app.delivery.messages.values import Device, Notification, NotificationType, RecipientChannel


@dataclass(frozen=True)
class OutgoingMessage:
    """One message for one address."""

    notification: Notification
    device: Device | None = None
    """Where a push goes to; for other types, `notification.recipient` is the address."""
    recipient_channel: RecipientChannel | None = None

    @property
    def id(self) -> UUID:
        return self.notification.id


class Channel(Protocol):
    """Sends, and says what became of it. It never tries again by itself: the one retry policy is the dispatcher's.

    Expected failures are results; whatever it raises leaves open whether the message went out, except `Unavailable`,
    which says that nothing was tried because a store of our own does not answer. It is called by several threads.
    """

    @property
    def name(self) -> str:
        """Its label in metrics and logs."""
        ...

    @property
    def policy(self) -> RetryPolicy: ...

    @property
    def batch_size(self) -> int:
        """Most messages in one `handle`."""
        ...

    @property
    def needs_device(self) -> bool:
        """Whether a person without a device cannot be reached at all."""
        ...

    @property
    def longest_s(self) -> float:
        """Longest time that one `handle` may take."""
        ...

    def can_handle(self, notification_type: str) -> bool: ...

    def provider(self, message: OutgoingMessage) -> str:
        """Who would be in trouble together if this one fails: what a breaker is kept for."""
        ...

    def handle(self, messages: Sequence[OutgoingMessage]) -> Sequence[Result | None]:
        """One result for each message, in their order; None where there was no time left to begin."""
        ...

    def close(self) -> None: ...


class SingleProvider:
    """What most channels have in common: one type, one provider, one message at a time."""

    batch_size = 1
    needs_device = False

    def __init__(self, name: str, type_: NotificationType, policy: RetryPolicy) -> None:
        self.name = name
        self.type = type_
        self.policy = policy

    @property
    def longest_s(self) -> float:
        return 2 * self.policy.timeout_s

    def can_handle(self, notification_type: str) -> bool:
        return notification_type == self.type

    def provider(self, message: OutgoingMessage) -> str:
        return self.name

    def close(self) -> None:
        """Nothing is open."""
