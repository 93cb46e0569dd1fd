import threading
from typing import Any
from uuid import UUID

from app.foundation.ids import uuid7
from app.matching.due import DueTasks
from app.matching.listener import Listener
from app.matching.metrics import MatcherMetrics


def test_events_are_dropped_without_room_but_other_tasks_never() -> None:
    unused_runner: Any = None
    due = DueTasks(unused_runner, MatcherMetrics(), batch=3)
    events, in_order = [uuid7() for _ in range(5)], [uuid7() for _ in range(4)]
    assert due.add(events, room=3) == 3
    assert due.add(events[:3], room=3) == 0, "already in the backlog"
    assert due.add(events[3:], room=3) == 0, "no room"
    assert due.add(in_order) == 4
    assert due.backlog() == 7


class Burst:
    """Redis that sends all its events at once, and then stops the listener."""

    def __init__(self, task_ids: list[UUID], stop: threading.Event) -> None:
        self._task_ids = task_ids
        self._over = stop

    def __enter__(self) -> "Burst":
        return self

    def __exit__(self, *_: object) -> None: ...

    def switch_on(self) -> bool:
        return False

    def tasks(self, timeout_s: float) -> list[UUID]:
        self._over.set()
        return self._task_ids


def test_listener_with_a_ticker_takes_only_what_fits() -> None:
    unused_runner: Any = None
    for room, accepted in ((3, 3), (None, 10)):
        stop = threading.Event()
        events: Any = Burst([uuid7() for _ in range(10)], stop)
        due = DueTasks(unused_runner, MatcherMetrics(), batch=3)
        Listener(events, due, lambda: None, room=room).run(stop)
        assert due.backlog() == accepted
