"""The contract between the dispatcher and the channels that send messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from app.delivery.messages.retry import Result, RetryPolicy
from app.delivery.messages.values import Device, Notification, NotificationType, RecipientChannel


@dataclass(frozen=True)
class OutgoingMessage:
    """A notification for one of its addresses."""

    notification: Notification
    device: Device | None = None
    """The address of a push; for other types the address is `notification.recipient`."""
    recipient_channel: RecipientChannel | None = None

    @property
    def id(self) -> UUID:
        return self.notification.id


class Channel(Protocol):
    """Sends messages and returns their results. It never retries: only the dispatcher does, by the channel's policy.

    An expected failure is a result. After any exception the message may have been sent, except after `Unavailable`: it
    means that nothing was sent because one of our own stores does not answer. Several threads call a channel.
    """

    @property
    def name(self) -> str:
        """Its label in metrics and logs."""
        ...

    @property
    def policy(self) -> RetryPolicy: ...

    @property
    def batch_size(self) -> int:
        """The most messages in one call of `handle`."""
        ...

    @property
    def needs_device(self) -> bool:
        """Whether it sends to devices only, so that it cannot reach a person without one."""
        ...

    @property
    def longest_s(self) -> float:
        """The longest time that one call of `handle` may take."""
        ...

    def can_handle(self, notification_type: str) -> bool: ...

    def provider(self, message: OutgoingMessage) -> str:
        """The name of the breaker for this message: messages that fail together share a breaker."""
        ...

    def handle(self, messages: Sequence[OutgoingMessage]) -> Sequence[Result | None]:
        """One result for each message, in their order; None if there was no time left to begin it."""
        ...

    def close(self) -> None: ...


class SingleProvider:
    """The common part of most channels: one type, one provider, one message at a time."""

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
        """Closes nothing, because nothing is open."""
