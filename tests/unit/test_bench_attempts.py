"""A measurement of `scripts/bench` that fails keeps what it has measured."""

from typing import Any, cast

import pytest
from benchmarks.attempts import attempt, keeping
from benchmarks.bench import Bench
from benchmarks.report import Row, Section, table


class FakeBench:
    """A server with databases, and no connections."""

    def __init__(self) -> None:
        self.held = {"postgres", "city_10"}

    def databases(self) -> frozenset[str]:
        return frozenset(self.held)

    def create(self, name: str) -> None:
        self.held.add(name)

    def drop(self, *names: str) -> None:
        self.held -= set(names)


def measured(measure: Any, bench: FakeBench | None = None) -> Section:
    return attempt("x", measure, cast(Bench, bench or FakeBench()))


def test_rows_before_an_error_are_kept_and_the_error_is_printed_in_one_line() -> None:
    def measure(_bench: Bench) -> Section:
        rows: list[Row] = []
        with keeping(lambda: Section("x", "x: what it is", rows)):
            rows.append(Row("first", 1.0, 2.0))
            raise AssertionError("every task has\nsomebody left to ask")
        return Section("x", "x: what it is", rows)

    section = measured(measure)
    assert [row.name for row in section.rows] == ["first"]
    printed = table([section], {}).splitlines()
    assert "    FAILED: AssertionError: every task has somebody left to ask" in printed
    assert any("first" in line and "0.50x" in line for line in printed)


def test_measurement_that_fails_before_its_first_row_has_no_rows() -> None:
    def measure(_bench: Bench) -> Section:
        rounds: list[float] = []
        with keeping(lambda: Section("x", "x: what it is", [Row("fastest", min(rounds))])):
            raise OSError
        raise AssertionError("the block must not swallow its error")

    section = measured(measure)
    assert (section.name, section.rows, section.failed) == ("x", [], "OSError")


def test_databases_of_a_failed_measurement_are_dropped_and_others_stay() -> None:
    def measure(bench: Bench) -> Section:
        bench.create("half_filled")
        raise OSError("no space left")

    bench = FakeBench()
    measured(measure, bench)
    assert bench.databases() == {"postgres", "city_10"}


def test_interrupt_is_not_a_failed_measurement() -> None:
    def measure(_bench: Bench) -> Section:
        with keeping(lambda: Section("x", "x: what it is", [])):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(measure)
