"""The bounded queue in memory between whoever claims notifications and whoever carries them.

Neither side knows the other. A full queue holds the producer back, an empty one the consumers; both sleep meanwhile.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from app.delivery.models import Priority

Item = TypeVar("Item")

URGENT_FIRST = (Priority.URGENT, Priority.HIGH, Priority.NORMAL, Priority.LOW)
STARVED_TURN = 10
"""Every so often it is the turn of whoever has waited longest, so that the lowest priority still moves."""


class BufferClosed(Exception):
    """Nothing more is taken in."""


class Buffer(Generic[Item]):
    """First in, first out within a priority, and the higher priority first."""

    def __init__(self, capacity: int, priority_of: Callable[[Item], Priority]) -> None:
        self.capacity = capacity
        self._priority_of = priority_of
        self._waiting: dict[Priority, deque[tuple[int, Item]]] = {priority: deque() for priority in URGENT_FIRST}
        self._size = 0
        self._put = 0
        self._taken = 0
        self._closed = False
        lock = threading.Lock()
        self._room = threading.Condition(lock)
        self._work = threading.Condition(lock)

    def __len__(self) -> int:
        return self._size

    @property
    def free(self) -> int:
        return self.capacity - self._size

    def put(self, item: Item) -> None:
        """Waits for room for as long as it takes."""
        self._insert(item, None)

    def offer(self, item: Item, timeout_s: float = 0.0) -> bool:
        """False where there was no room, or none in time."""
        return self._insert(item, timeout_s)

    def _insert(self, item: Item, timeout_s: float | None) -> bool:
        priority = self._priority_of(item)
        with self._room:
            if not self._room.wait_for(lambda: self._closed or self._size < self.capacity, timeout_s):
                return False
            if self._closed:
                raise BufferClosed
            self._waiting[priority].append((self._put, item))
            self._put += 1
            self._size += 1
            self._work.notify()
            return True

    def take(self, most: int = 1, timeout_s: float | None = None) -> list[Item]:
        """At least one item and up to `most` that are there; none where the time was up, or the queue is closed."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        with self._work:
            while self._size == 0 and not self._closed:
                left_s = None if until is None else until - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return []
                self._work.wait(left_s)
            if self._closed:
                return []
            items = [self._next() for _ in range(min(most, self._size))]
            self._room.notify(len(items))
            return items

    def _next(self) -> Item:
        self._taken += 1
        self._size -= 1
        waiting = [queue for queue in self._waiting.values() if queue]
        starved = self._taken % STARVED_TURN == 0
        queue = min(waiting, key=lambda queue: queue[0][0]) if starved else waiting[0]
        return queue.popleft()[1]

    def close(self) -> list[Item]:
        """Lets everybody go who waits here, and returns what nobody has taken."""
        with self._work:
            self._closed = True
            left = [item for queue in self._waiting.values() for _, item in queue]
            for queue in self._waiting.values():
                queue.clear()
            self._size = 0
            self._work.notify_all()
            self._room.notify_all()
        return left
