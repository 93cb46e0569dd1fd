from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobs.reports.evenness import evenness, lorenz

LOADS = st.lists(st.integers(0, 500), min_size=1, max_size=60)


def gini_of(loads: list[int]) -> float:
    """The definition: the mean difference of all pairs, over twice the mean."""
    n = len(loads)
    return sum(abs(one - other) for one in loads for other in loads) / (2 * n * sum(loads))


@given(LOADS)
def test_gini_is_the_mean_difference_of_all_pairs(loads: list[int]) -> None:
    found = evenness(Counter(loads))
    assert (found.students, found.total) == (len(loads), sum(loads))
    if sum(loads):
        assert found.gini == pytest.approx(gini_of(loads), abs=1e-12)
    else:
        assert (found.gini, found.jain) == (None, None)


@given(LOADS.filter(any))
def test_jain_is_the_square_of_the_sum_over_n_sums_of_squares(loads: list[int]) -> None:
    squares = sum(load * load for load in loads)
    assert evenness(Counter(loads)).jain == pytest.approx(sum(loads) ** 2 / (len(loads) * squares))


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_equal_loads_are_exactly_even(students: int, load: int) -> None:
    found = evenness({load: students})
    assert (found.gini, found.jain) == (0.0, 1.0)


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_one_student_with_everything_is_as_uneven_as_can_be(others: int, load: int) -> None:
    found = evenness({0: others, load: 1})
    assert found.gini == pytest.approx(others / (others + 1))
    assert found.jain == pytest.approx(1 / (others + 1))


@given(LOADS.filter(any), st.integers(2, 9))
def test_indices_do_not_depend_on_the_unit(loads: list[int], times: int) -> None:
    one, more = evenness(Counter(loads)), evenness(Counter(load * times for load in loads))
    assert (more.gini, more.jain) == (pytest.approx(one.gini), pytest.approx(one.jain))


@given(LOADS.filter(any))
def test_the_lorenz_curve_rises_below_the_diagonal_from_nothing_to_all(loads: list[int]) -> None:
    points = lorenz(Counter(loads))
    assert (points[0], points[-1]) == ((0.0, 0.0), (1.0, 1.0))
    assert points == sorted(points)
    assert all(y <= x + 1e-12 for x, y in points)
