from typing import Any

from app.ids import uuid7
from app.matching.due import DueTasks
from app.matching.metrics import MatcherMetrics


def test_events_wait_only_where_there_is_room_and_what_comes_in_order_always_does() -> None:
    nobody: Any = None
    due = DueTasks(nobody, MatcherMetrics(), batch=3)
    events, in_order = [uuid7() for _ in range(5)], [uuid7() for _ in range(4)]
    assert due.add(events, room=3) == 3
    assert due.add(events[:3], room=3) == 0, "they are here already"
    assert due.add(events[3:], room=3) == 0, "there is no room for them"
    assert due.add(in_order) == 4
    assert due.backlog() == 7
