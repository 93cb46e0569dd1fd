"""The notifications that a channel worker has claimed and not recorded yet: how many there are, and whose.

A claim takes the oldest first, so a recipient with many would fill the memory and keep out everybody behind them. A
recipient who has a share of it belongs to the *crowd*: the worker claims those of others first, and keeps room for
them. In a small memory, one message is such a share.
"""

import threading
from collections import Counter
from collections.abc import Sequence

from app.delivery.messages.claims import NO_CROWD, Claimed, Crowd
from app.delivery.messages.values import URGENT_FIRST, Priority

CROWD_SHARE = 0.05
KEPT_SHARE = 0.25
"""The share of the room that is kept for others while there is a crowd."""


class HeldMessages:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._enough = 0
        """The worker waits until it holds no more than this number."""
        self._of: Counter[tuple[Priority, str]] = Counter()

    def add(self, claimed: Sequence[Claimed]) -> None:
        with self._changed:
            self._number += len(claimed)
            self._of.update(map(_owner, claimed))

    def remove(self, claimed: Sequence[Claimed]) -> None:
        with self._changed:
            self._number -= len(claimed)
            for owner in map(_owner, claimed):
                self._of[owner] -= 1
                if not self._of[owner]:
                    del self._of[owner]
            # The worker wakes once for a claim, not once for each record.
            if self._number <= self._enough:
                self._changed.notify()

    def room(self, capacity: int) -> int:
        return capacity - self._number

    def wait_for_room(self, capacity: int, least: int, timeout_s: float) -> None:
        with self._changed:
            self._enough = capacity - least
            self._changed.wait_for(lambda: self._number <= self._enough, timeout_s)

    def crowd(self, capacity: int) -> Crowd:
        least = max(1, int(capacity * CROWD_SHARE))
        with self._changed:
            crowd = [owner for owner, number in self._of.items() if number >= least]
        if not crowd:
            return NO_CROWD
        priorities = {priority for priority, _ in crowd}
        in_order = [priority for priority in URGENT_FIRST if priority in priorities]
        return Crowd([recipient for _, recipient in crowd], in_order)


def _owner(claimed: Claimed) -> tuple[Priority, str]:
    return claimed.notification.priority, claimed.notification.recipient
