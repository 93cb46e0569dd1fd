import threading
from typing import Any
from uuid import UUID

from app.foundation.ids import uuid7
from app.matching.due import DueTasks
from app.matching.listener import Listener
from app.matching.metrics import MatcherMetrics


def test_events_are_dropped_without_room_but_other_tasks_never() -> None:
    nobody: Any = None
    due = DueTasks(nobody, MatcherMetrics(), batch=3)
    events, in_order = [uuid7() for _ in range(5)], [uuid7() for _ in range(4)]
    assert due.add(events, room=3) == 3
    assert due.add(events[:3], room=3) == 0, "they are here already"
    assert due.add(events[3:], room=3) == 0, "there is no room for them"
    assert due.add(in_order) == 4
    assert due.backlog() == 7


class Burst:
    """A Redis that tells of everything at once, and then no more."""

    def __init__(self, task_ids: list[UUID], over: threading.Event) -> None:
        self._task_ids = task_ids
        self._over = over

    def __enter__(self) -> "Burst":
        return self

    def __exit__(self, *_: object) -> None: ...

    def switch_on(self) -> bool:
        return False

    def tasks(self, timeout_s: float) -> list[UUID]:
        self._over.set()
        return self._task_ids


def test_listener_with_a_ticker_takes_only_what_fits() -> None:
    nobody: Any = None
    for room, taken in ((3, 3), (None, 10)):
        over = threading.Event()
        events: Any = Burst([uuid7() for _ in range(10)], over)
        due = DueTasks(nobody, MatcherMetrics(), batch=3)
        Listener(events, due, lambda: None, room=room).run(over)
        assert due.backlog() == taken
