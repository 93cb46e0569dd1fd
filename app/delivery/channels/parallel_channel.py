"""The common part of push channels, whose providers take one message in a request: a batch is sent over several
connections at the same time."""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue

import structlog

from app.delivery.channels.base import MayBegin, OutgoingMessage, SingleProvider
from app.delivery.messages.retry import RetryPolicy, SendResult
from app.delivery.messages.values import Outcome
from app.foundation.logs import describe_error

log = structlog.get_logger(__name__)

# If the provider answers slowly, the other messages of a batch are not begun, because their leases would run out.
BEGIN_WITHIN_S = 5.0


class ParallelChannel(SingleProvider, ABC):
    needs_device = True

    def __init__(
        self, name: str, types: Collection[str], policy: RetryPolicy, *, connections: int, begin_within_s: float
    ) -> None:
        super().__init__(name, types, policy)
        self._begin_within_s = begin_within_s
        self._connections = connections
        # Enough that the connections seldom wait for the last answers of a batch, and so few that a message which comes
        # later does not wait long for its own.
        self.batch_size = 4 * connections
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix=name)

    @abstractmethod
    def send(self, message: OutgoingMessage) -> SendResult:
        """Sends one message in one request."""

    @property
    def longest_s(self) -> float:
        # Preparing a message, such as fetching an access token, and sending it may take one timeout each.
        return self._begin_within_s + 2 * self.policy.timeout_s

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult | None]:
        results = dict(self.answers(messages, lambda: True))
        return [results[place] for place in range(len(messages))]

    def answers(
        self, messages: Sequence[OutgoingMessage], may_begin: MayBegin
    ) -> Iterator[tuple[int, SendResult | None]]:
        """Holds no more messages at once than there are connections, so that two batches share them evenly."""
        until = time.monotonic() + self._begin_within_s
        answered: SimpleQueue[tuple[int, SendResult | None]] = SimpleQueue()

        def send(place: int) -> None:
            begins = may_begin() and time.monotonic() <= until
            answered.put((place, self._send_apart(messages[place]) if begins else None))

        if len(messages) == 1:
            send(0)
            yield answered.get()
            return
        waiting = iter(range(len(messages)))
        for place in islice(waiting, self._connections):
            self._pool.submit(send, place)
        for _ in messages:
            answer = answered.get()
            for place in islice(waiting, 1):
                self._pool.submit(send, place)
            yield answer

    def _send_apart(self, message: OutgoingMessage) -> SendResult:
        """An unexpected error of one message must not lose the results of the others in its batch."""
        try:
            return self.send(message)
        except Exception as error:
            log.error("channel_failed", channel=self.name, notification_id=str(message.id), **describe_error(error))
            return SendResult(Outcome.UNKNOWN, "CHANNEL_ERROR")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
