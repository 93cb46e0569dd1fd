"""The channel for types that no other channel sends. It gives notifications up, so that they do not wait forever."""

from collections.abc import Sequence

from app.delivery.channels.base import OutgoingMessage, SingleProvider
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Outcome

NO_CHANNEL = SendResult(Outcome.PERMANENT, "NO_CHANNEL", at_fault=False)


class UnservedChannel(SingleProvider):
    batch_size = 100

    def __init__(self, type_: str) -> None:
        super().__init__("none", (type_,), RetryPolicy(timeout_s=1.0, retries=0))

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        return [NO_CHANNEL] * len(messages)
