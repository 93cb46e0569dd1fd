"""Figures of a month are read once for many who look at them."""

import threading
from datetime import UTC, datetime

import pytest

from app.jobs.reports.figures_at_hand import KEPT_S, MOST, MOST_WAITING, FiguresAtHand
from app.jobs.reports.month_figures import FiguresTooSlow, MonthFigures
from app.jobs.reports.report_month import Month

MONTH = Month(2026, 11, "Europe/Istanbul")
FIGURES = MonthFigures(MONTH, datetime(2026, 11, 19, tzinfo=UTC), {}, {}, {}, {}, {}, [])


class Readings:
    def __init__(self) -> None:
        self.read: list[tuple[Month, int | None]] = []
        self.now = 0.0
        self.is_slow = False

    def __call__(self, month: Month, institution: int | None) -> MonthFigures:
        self.read.append((month, institution))
        if self.is_slow:
            raise FiguresTooSlow("too many")
        return FIGURES


@pytest.fixture
def readings() -> Readings:
    return Readings()


@pytest.fixture
def at_hand(readings: Readings) -> FiguresAtHand:
    return FiguresAtHand(readings, lambda: readings.now, wait_s=0)


def test_figures_are_kept_for_a_minute_for_each_institution(at_hand: FiguresAtHand, readings: Readings) -> None:
    for institution in (None, 1, None, 1):
        assert at_hand.of(MONTH, institution) is FIGURES
    assert readings.read == [(MONTH, None), (MONTH, 1)]
    readings.now = KEPT_S + 1
    at_hand.of(MONTH, 1)
    assert readings.read[2:] == [(MONTH, 1)]


def test_that_a_month_takes_too_long_is_kept_as_well(at_hand: FiguresAtHand, readings: Readings) -> None:
    readings.is_slow = True
    for _ in range(2):
        with pytest.raises(FiguresTooSlow):
            at_hand.of(MONTH, None)
    assert len(readings.read) == 1


def test_other_errors_are_not_kept(readings: Readings) -> None:
    calls: list[int] = []

    def fail_once(_month: Month, _institution: int | None) -> MonthFigures:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError
        return FIGURES

    at_hand = FiguresAtHand(fail_once, lambda: 0.0)
    with pytest.raises(ConnectionError):
        at_hand.of(MONTH, None)
    assert at_hand.of(MONTH, None) is FIGURES


def test_one_reading_runs_at_a_time(readings: Readings) -> None:
    began, go_on = threading.Event(), threading.Event()

    def wait(month: Month, institution: int | None) -> MonthFigures:
        began.set()
        assert go_on.wait(10)
        return readings(month, institution)

    at_hand = FiguresAtHand(wait, lambda: 0.0, wait_s=0)
    first = threading.Thread(target=lambda: at_hand.of(MONTH, None))
    first.start()
    assert began.wait(10)
    with pytest.raises(FiguresTooSlow):
        at_hand.of(MONTH, 1)
    go_on.set()
    first.join(10)
    assert at_hand.of(MONTH, None) is FIGURES
    assert readings.read == [(MONTH, None)]


def test_many_who_wait_for_figures_leave_threads_for_others(readings: Readings) -> None:
    began, go_on, refused = threading.Event(), threading.Event(), threading.Semaphore(0)

    def wait(month: Month, institution: int | None) -> MonthFigures:
        began.set()
        assert go_on.wait(10)
        return readings(month, institution)

    def look(institution: int) -> None:
        try:
            at_hand.of(MONTH, institution)
        except FiguresTooSlow:
            refused.release()

    at_hand = FiguresAtHand(wait, lambda: 0.0, wait_s=10)
    lookers = [threading.Thread(target=look, args=(institution,)) for institution in range(8)]
    for looker in lookers:
        looker.start()
    assert began.wait(10)
    assert all(refused.acquire(timeout=5) for _ in range(8 - 1 - MOST_WAITING))
    go_on.set()
    for looker in lookers:
        looker.join(10)
    assert len(readings.read) == 1 + MOST_WAITING


def test_few_months_are_kept(at_hand: FiguresAtHand, readings: Readings) -> None:
    for institution in range(MOST + 1):
        at_hand.of(MONTH, institution)
    at_hand.of(MONTH, MOST)
    assert len(readings.read) == MOST + 1
    at_hand.of(MONTH, 0)
    assert len(readings.read) == MOST + 2
