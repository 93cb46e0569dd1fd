"""The limit of notifications that wait."""

import pytest

from app.delivery.messages.backlog import Backlog, BacklogFull


class CountedBacklog:
    def __init__(self, live: int, limit: int) -> None:
        self.live, self.counts, self.time = live, 0, 0.0
        self.backlog = Backlog(self._count, limit, lambda: self.time)

    def _count(self) -> int:
        self.counts += 1
        return self.live

    @property
    def is_full(self) -> bool:
        try:
            self.backlog.admit()
        except BacklogFull:
            return True
        return False


def test_backlog_is_full_at_its_limit() -> None:
    assert not CountedBacklog(9, limit=10).is_full
    assert CountedBacklog(10, limit=10).is_full


def test_notifications_are_counted_once_a_second_and_additions_are_included() -> None:
    counted = CountedBacklog(8, limit=10)
    for _ in range(2):
        assert not counted.is_full
        counted.backlog.note_added()
    assert counted.is_full
    assert counted.counts == 1


def test_free_room_is_seen_at_the_next_count() -> None:
    counted = CountedBacklog(10, limit=10)
    assert counted.is_full
    counted.live = 3
    counted.time = 0.9
    assert counted.is_full
    counted.time = 1.0
    assert not counted.is_full


def test_failed_count_is_repeated() -> None:
    counted = CountedBacklog(10, limit=10)

    def fail() -> int:
        raise ZeroDivisionError

    backlog = Backlog(fail, 10, lambda: counted.time)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            backlog.admit()
