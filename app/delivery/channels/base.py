"""The contract between the dispatcher and whatever carries a message to a person."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from app.delivery.retry import Result, RetryPolicy
from app.users.models import AddressKind


@dataclass(frozen=True)
class Device:
    device_id: str
    token: str = field(repr=False)
    """Whoever has it can reach the phone: it stays out of logs and errors."""
    address_kind: AddressKind


@dataclass(frozen=True)
class Parcel:
    """One message for one device."""

    notification_id: UUID
    user_id: int
    title: str
    body: str
    data: dict[str, str]
    expires_at: datetime | None
    device: Device | None

    @property
    def is_data_only(self) -> bool:
        return not self.title and not self.body


class Channel(Protocol):
    """Sends, and says what became of it. It never tries again by itself: the one retry policy is the dispatcher's.

    Expected failures are results; whatever it raises leaves open whether the message went out, except `Unavailable`,
    which says that nothing was tried because a store of our own does not answer.
    """

    @property
    def policy(self) -> RetryPolicy: ...

    @property
    def batch_size(self) -> int:
        """Most parcels in one `send`."""
        ...

    @property
    def needs_device(self) -> bool:
        """Whether a person without a device cannot be reached at all."""
        ...

    def send(self, parcels: Sequence[Parcel]) -> list[Result]:
        """One result for each parcel, in their order."""
        ...

    def close(self) -> None: ...
