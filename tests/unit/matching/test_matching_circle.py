import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.matching.rules.map_distance import A, SearchCircle, northing, stretch


def test_at_the_equator_the_map_is_true_and_towards_the_poles_it_stretches() -> None:
    assert stretch(0) == 1
    assert stretch(60) == pytest.approx(2, rel=0.003)
    assert stretch(-41) == stretch(41)


def test_within_a_kilometre_of_kadikoy_the_map_is_in_doubt_about_micrometres() -> None:
    assert 1e-6 < SearchCircle(40.987, 29.028, 1000).doubt_m < 20e-6


def test_the_corners_of_the_map() -> None:
    assert SearchCircle(0, 0, 1).x == SearchCircle(0, 0, 1).y == 0
    assert SearchCircle(0, 180, 1).x == pytest.approx(math.pi * A)
    assert SearchCircle(40.987, 29.028, 1).y == pytest.approx(4_980_000, rel=0.01)


@pytest.mark.parametrize(
    ("lat", "lon", "radius_m", "on_the_map"),
    [
        (40.987, 29.028, 1000, True),
        (-77.85, 166.67, 1000, True),
        (83.98, 0, 1000, True),
        (83.999, 0, 1000, False),
        (-83.999, 0, 1000, False),
        (90, 0, 1, False),
        (0, 179.99, 1000, True),
        (0, 179.999, 1000, False),
        (0, -180, 1, False),
        (-17.7, 178.1, 100_000, True),
        (-17.7, 179.1, 100_000, False),
        (83, 0, 100_000, True),
        (83.2, 0, 100_000, False),
    ],
)
def test_where_the_map_tears(lat: float, lon: float, radius_m: float, on_the_map: bool) -> None:
    assert SearchCircle(lat, lon, radius_m).on_the_map is on_the_map


@given(st.floats(-83, 83), st.floats(-178, 178), st.sampled_from([1.0, 50.0, 1000.0, 100_000.0]))
def test_the_search_reaches_beyond_the_rim_and_the_halfway_factor_is_the_one_of_the_centre_at_the_centre(
    lat: float, lon: float, radius_m: float
) -> None:
    circle = SearchCircle(lat, lon, radius_m)
    at, northwards = circle.halfway_stretch
    assert circle.outer / stretch(lat) > radius_m
    assert at + northwards * circle.y == pytest.approx(stretch(lat), rel=1e-12)


@given(st.floats(-83, 83), st.floats(-1, 1))
def test_halfway_to_a_place_means_the_factor_between_the_two(lat: float, north_km: float) -> None:
    circle = SearchCircle(lat, 0, 1000)
    at, northwards = circle.halfway_stretch
    elsewhere = lat + north_km / 111
    factor = at + northwards * northing(elsewhere)
    assert factor == pytest.approx((stretch(lat) + stretch(elsewhere)) / 2, rel=1e-6)
