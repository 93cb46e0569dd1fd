"""The time of the database, computed in Python."""

from datetime import UTC, datetime, timedelta

import pytest

from app.foundation.clock import DatabaseClock, FakeClock

NOON = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)


class Database:
    def __init__(self) -> None:
        self.reads = 0
        self.down = False

    def now(self) -> datetime:
        if self.down:
            raise ConnectionError
        self.reads += 1
        return NOON


def test_database_is_read_once_and_the_clock_runs_on() -> None:
    database = Database()
    clock = DatabaseClock(database.now)
    first, second = clock.now(), clock.now()
    assert database.reads == 1
    assert NOON <= first <= second < NOON + timedelta(seconds=5)


def test_clock_goes_by_the_shortest_reading_and_is_never_ahead() -> None:
    took_s = iter([0.014, 0.002, 0.009, 0.003, 0.005])
    machine_s = 0.0

    def read() -> datetime:
        """The time is read when the answer has come half of its way."""
        nonlocal machine_s
        half_s = next(took_s) / 2
        machine_s += 2 * half_s
        return NOON + timedelta(seconds=machine_s - half_s)

    clock = DatabaseClock(read, monotonic=lambda: machine_s)
    clock.now()
    machine_s += 10
    assert NOON + timedelta(seconds=machine_s) - clock.now() == timedelta(seconds=0.001)


def test_short_reading_is_enough() -> None:
    database = Database()
    DatabaseClock(database.now, monotonic=lambda: 0.0).now()
    assert database.reads == 1


def test_offset_is_measured_again() -> None:
    database = Database()
    clock = DatabaseClock(database.now, resync_s=0)
    clock.now()
    clock.now()
    assert database.reads == 2


def test_without_the_database_the_last_offset_is_used() -> None:
    database = Database()
    clock = DatabaseClock(database.now, resync_s=0)
    clock.now()
    database.down = True
    assert clock.now() >= NOON


def test_without_an_offset_the_error_is_raised() -> None:
    database = Database()
    database.down = True
    with pytest.raises(ConnectionError):
        DatabaseClock(database.now).now()


def test_fake_clock_moves_by_hand() -> None:
    clock = FakeClock(NOON)
    clock.advance(90)
    assert clock.now() == NOON + timedelta(seconds=90)
