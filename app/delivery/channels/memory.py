"""A channel for unit tests. It keeps the messages in a list, and a function decides their results."""

import threading
from collections.abc import Callable, Sequence

from app.delivery.channels.base import OutgoingMessage, SingleProvider
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import NotificationType, Outcome

POLICY = RetryPolicy(timeout_s=3.0, retries=2)
SENT = SendResult(Outcome.SENT)


class MemoryChannel(SingleProvider):
    def __init__(
        self,
        answer: Callable[[OutgoingMessage], SendResult] = lambda message: SENT,
        *,
        type_: NotificationType = NotificationType.PUSH,
        policy: RetryPolicy = POLICY,
        batch_size: int = 1,
        needs_device: bool = True,
    ) -> None:
        super().__init__("memory", (type_,), policy)
        self.batch_size = batch_size
        self.needs_device = needs_device
        self.sent: list[OutgoingMessage] = []
        self._answer = answer
        self._lock = threading.Lock()

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        with self._lock:
            self.sent.extend(messages)
        return [self._answer(message) for message in messages]
