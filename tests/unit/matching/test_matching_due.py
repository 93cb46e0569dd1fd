import threading
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from app.foundation.clock import FakeClock
from app.foundation.ids import uuid7
from app.matching.due import DueTasks
from app.matching.follow_up import FollowUp
from app.matching.listener import Listener
from app.matching.metrics import MatcherMetrics
from app.matching.ticker import Ticker
from app.redis_store.contract import Due, TaskKeys


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


def listing(task_ids: list[UUID]) -> dict[UUID, list[int]]:
    return {task_id: [7] for task_id in task_ids}


class Recording:
    """A runner that notes the lists it is given, and fails where it is told to."""

    def __init__(self, fails: bool = False) -> None:
        self.clock = FakeClock()
        self.known: list[dict[UUID, Any]] = []
        self._fails = fails

    def advance(self, task_ids: list[UUID], known: Any, *, skip_locked: bool) -> FollowUp:
        self.known.append(dict(known))
        if self._fails:
            raise RuntimeError
        return FollowUp({task_id: TaskKeys(task_id) for task_id in task_ids})


class Deadlines:
    """Redis in which these tasks are due now, and the next one in 100 ms."""

    def __init__(self, clock: FakeClock, task_ids: list[UUID]) -> None:
        self._clock = clock
        self._task_ids = task_ids
        self.claims = 0

    def claim_due(self, now: datetime, most: int, candidates: int) -> Due:
        self.claims += 1
        taken, self._task_ids = self._task_ids[:most], self._task_ids[most:]
        next_at = now if self._task_ids else self._clock.now() + timedelta(milliseconds=100)
        return Due(taken, next_at, listing(taken))


def settling(runner: Any) -> tuple[DueTasks, threading.Thread]:
    due = DueTasks(runner, MatcherMetrics(), batch=3)
    thread = threading.Thread(target=due.run, daemon=True)
    thread.start()
    return due, thread


def test_one_claim_brings_lists_and_the_time_of_the_next_claim() -> None:
    runner = Recording()
    ids = [uuid7() for _ in range(5)]
    deadlines: Any = Deadlines(runner.clock, ids)
    due, thread = settling(runner)
    ticker = Ticker(deadlines, runner.clock, due, batch=3, cap=50)
    assert ticker.tick() == 0, "more are due"
    assert ticker.tick() == 0.1, "the next one is due in 100 ms"
    assert deadlines.claims == 2
    due.stop()
    thread.join()
    assert runner.known == [listing(ids[:3]), listing(ids[3:])]


def test_the_ticker_settles_by_itself_what_it_has_claimed() -> None:
    runner: Any = Recording()
    ids = [uuid7() for _ in range(2)]
    deadlines: Any = Deadlines(runner.clock, ids)
    without_thread = DueTasks(runner, MatcherMetrics(), batch=3)
    Ticker(deadlines, runner.clock, without_thread, batch=3, cap=50).tick()
    assert runner.known == [listing(ids)]
    assert without_thread.wait_until_idle(0)


class Slow(Recording):
    """Its first batch takes until `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.go_on = threading.Event(), threading.Event()

    def advance(self, task_ids: list[UUID], known: Any, *, skip_locked: bool) -> FollowUp:
        done = super().advance(task_ids, known, skip_locked=skip_locked)
        self.began.set()
        assert self.go_on.wait(30)
        return done


@pytest.mark.parametrize("first_by_ticker", [True, False])
def test_one_batch_is_settled_after_the_other(first_by_ticker: bool) -> None:
    runner = Slow()
    first, second = [uuid7()], [uuid7()]
    due, thread = settling(runner)
    ticker = threading.Thread(target=due.settle_or_add, args=(first, listing(first)), daemon=True)
    if first_by_ticker:
        ticker.start()
    else:
        due.add(first, lists=listing(first))
    assert runner.began.wait(30)
    if first_by_ticker:
        due.add(second, lists=listing(second))
    else:
        due.settle_or_add(second, listing(second))
    assert not due.wait_until_idle(0.05)
    assert runner.known == [listing(first)]
    runner.go_on.set()
    assert due.wait_until_idle(30)
    due.stop()
    thread.join()
    if first_by_ticker:
        ticker.join()
    assert runner.known == [listing(first), listing(second)]


def test_lists_of_a_batch_that_failed_are_read_again() -> None:
    runner = Recording(fails=True)
    ids = [uuid7() for _ in range(2)]
    due, thread = settling(runner)
    # To print the tracebacks may take longer than the pause before the next try.
    with capture_logs():
        due.add(ids, lists=listing(ids))
        due.wait_until_idle(5)
        due.stop()
        thread.join()
    assert runner.known == [listing(ids), {}, {}]


def test_listener_with_a_ticker_takes_only_what_fits() -> None:
    unused_runner: Any = None
    for room, accepted in ((3, 3), (None, 10)):
        stop = threading.Event()
        events: Any = Burst([uuid7() for _ in range(10)], stop)
        due = DueTasks(unused_runner, MatcherMetrics(), batch=3)
        Listener(events, due, lambda: None, room=room).run(stop)
        assert due.backlog() == accepted
