"""A bounded queue in memory between threads that produce items and threads that consume them.

Producers sleep while the queue is full, consumers while it is empty.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

STARVED_TURN = 10
"""Every tenth item taken is the one that has waited longest, so that items of the lowest priority are taken too."""


class BufferClosed(Exception):
    """The buffer is closed and accepts no more items."""


class Buffer(Generic[Item]):
    """Items of a higher priority come first; items of the same priority are first in, first out."""

    def __init__(self, capacity: int, priorities: Sequence[Hashable], priority_of: Callable[[Item], Hashable]) -> None:
        """`priorities` are listed from the highest to the lowest."""
        self.capacity = capacity
        self._priority_of = priority_of
        self._waiting: dict[Hashable, deque[tuple[int, Item]]] = {priority: deque() for priority in priorities}
        self._size = 0
        self._put = 0
        self._taken = 0
        self._closed = False
        lock = threading.Lock()
        self._room = threading.Condition(lock)
        self._work = threading.Condition(lock)

    def __len__(self) -> int:
        return self._size

    def put(self, item: Item) -> None:
        """Waits until there is room."""
        with self._room:
            self._room.wait_for(lambda: self._closed or self._size < self.capacity)
            if self._closed:
                raise BufferClosed
            self._waiting[self._priority_of(item)].append((self._put, item))
            self._put += 1
            self._size += 1
            self._work.notify()

    def take(self, most: int = 1, timeout_s: float | None = None) -> list[Item]:
        """Waits for at least one item and returns up to `most`. Returns an empty list after the timeout, or if the
        buffer is closed."""
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
        """Wakes all waiting threads and returns the items that were not taken."""
        with self._work:
            self._closed = True
            left = [item for queue in self._waiting.values() for _, item in queue]
            for queue in self._waiting.values():
                queue.clear()
            self._size = 0
            self._work.notify_all()
            self._room.notify_all()
        return left
