"""A bounded queue in memory between threads that produce items and threads that consume them.

Producers sleep while the queue is full, consumers while it is empty.
"""

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

STARVED_TURN = 10
"""Every tenth item taken is of the line that has waited longest, so that items of the lowest priority are taken too."""


class BufferClosed(Exception):
    """The buffer is closed and accepts no more items. `refused` is the number of those that were not put in."""

    def __init__(self, refused: int) -> None:
        super().__init__(refused)
        self.refused = refused


class _Line(Generic[Item]):
    """The items of one priority. Every owner's first item comes before the second one of any, so an owner of many does
    not delay the others. In the same round it is first in, first out. After an item of weight three, its owner's next
    one comes three rounds later."""

    def __init__(self) -> None:
        self._round = 0
        self._next_rounds: dict[Hashable, int] = {}
        self._waiting: Counter[Hashable] = Counter()
        self.heap: list[tuple[int, int, Hashable, Item]] = []

    def put(self, number: int, owner: Hashable, item: Item, weight: int) -> None:
        own_round = max(self._round, self._next_rounds.get(owner, 0))
        self._next_rounds[owner] = own_round + weight
        self._waiting[owner] += 1
        heapq.heappush(self.heap, (own_round, number, owner, item))

    def take(self) -> Item:
        self._round, _, owner, item = heapq.heappop(self.heap)
        self._waiting[owner] -= 1
        if not self._waiting[owner]:
            del self._waiting[owner], self._next_rounds[owner]
        return item

    def clear(self) -> list[Item]:
        left = [item for *_, item in sorted(self.heap, key=lambda entry: entry[:2])]
        self.heap.clear()
        self._next_rounds.clear()
        self._waiting.clear()
        return left


class Buffer(Generic[Item]):
    """Items of a higher priority come first; items of the same priority are fair to their owners."""

    def __init__(
        self,
        capacity: int,
        priorities: Sequence[Hashable],
        priority_of: Callable[[Item], Hashable],
        owner_of: Callable[[Item], Hashable],
        weight_of: Callable[[Item], int] = lambda _: 1,
    ) -> None:
        """`priorities` are listed from the highest to the lowest."""
        self.capacity = capacity
        self._priority_of = priority_of
        self._owner_of = owner_of
        self._weight_of = weight_of
        self._waiting: dict[Hashable, _Line[Item]] = {priority: _Line() for priority in priorities}
        self._size = 0
        self._put = 0
        self._taken = 0
        self._closed = False
        lock = threading.Lock()
        self._room = threading.Condition(lock)
        self._work = threading.Condition(lock)

    def __len__(self) -> int:
        return self._size

    def put(self, *items: Item) -> None:
        """Waits until there is room for each."""
        with self._room:
            for number, item in enumerate(items):
                while self._size >= self.capacity and not self._closed:
                    self._room.wait()
                if self._closed:
                    raise BufferClosed(len(items) - number)
                self._waiting[self._priority_of(item)].put(self._put, self._owner_of(item), item, self._weight_of(item))
                self._put += 1
                self._size += 1
                self._work.notify()

    def take(self, most: int = 1, timeout_s: float | None = None) -> list[Item]:
        """Waits for at least one item and returns items until they weigh `most`. Returns an empty list after the
        timeout, or if the buffer is closed."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        with self._work:
            while self._size == 0 and not self._closed:
                left_s = None if until is None else until - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return []
                self._work.wait(left_s)
            if self._closed:
                return []
            items: list[Item] = []
            weight = 0
            while self._size and weight < most:
                items.append(self._next())
                weight += self._weight_of(items[-1])
            self._room.notify(len(items))
            return items

    def _next(self) -> Item:
        self._taken += 1
        self._size -= 1
        waiting = [line for line in self._waiting.values() if line.heap]
        starved = self._taken % STARVED_TURN == 0
        line = min(waiting, key=lambda line: line.heap[0][1]) if starved else waiting[0]
        return line.take()

    def close(self) -> list[Item]:
        """Wakes all waiting threads and returns the items that were not taken."""
        with self._work:
            self._closed = True
            left = [item for line in self._waiting.values() for item in line.clear()]
            self._size = 0
            self._work.notify_all()
            self._room.notify_all()
        return left
