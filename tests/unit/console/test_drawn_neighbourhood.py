"""The drawing that the map shows without tiles: streets on land, and the people of the demo beside them."""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from draw_neighbourhood import COAST, DRAWING, OPEN_SEA, STREETS, Point, distance_m, is_inside, lines

from app.jobs.city.neighbours import HOME, YOURS, metres_from_yours, others

SEA = (*COAST, *OPEN_SEA)
LARGEST_BYTES = 40_000


def places() -> Iterator[Point]:
    yield from ((HOME.lat + (one.metres or 0) / 111_320, HOME.lon) for one in YOURS)
    yield from ((one.home.lat, one.home.lon) for one in others())


def along(line: Sequence[Point], step_m: float) -> Iterator[Point]:
    for one, other in pairwise(line):
        steps = max(1, math.ceil(distance_m(one, other) / step_m))
        for step in range(steps + 1):
            yield one[0] + (other[0] - one[0]) * step / steps, one[1] + (other[1] - one[1]) * step / steps


def is_near(place: Point, spot: Point) -> bool:
    return abs(place[0] - spot[0]) < 0.0012 and distance_m(place, spot) < 130


def test_the_file_is_what_the_script_draws_and_small() -> None:
    assert DRAWING.read_text() == lines(), "run scripts/draw_neighbourhood.py"
    assert DRAWING.stat().st_size < LARGEST_BYTES


def test_streets_run_on_land() -> None:
    wet = [name for name, _, line in STREETS for spot in along(line, 50) if is_inside(spot, SEA)]
    assert wet == []
    assert is_inside((40.975, 29.015), SEA)


def test_people_of_the_demo_stand_on_land_near_a_street() -> None:
    lanes = [[(lat, lon) for lat, lon in lane] for lane in json.loads(DRAWING.read_text())["lanes"]]
    spots = [spot for line in [*lanes, *(line for _, _, line in STREETS)] for spot in along(line, 60)]
    assert [place for place in places() if not any(is_near(place, spot) for spot in spots)] == []
    assert not any(is_inside(place, SEA) for place in places())


def test_others_live_apart_and_are_called_differently() -> None:
    people = list(others())
    names = {one.name for one in (*YOURS, *people)}
    assert len(names) == len(YOURS) + len(people)
    assert min(metres_from_yours(one.home) for one in people) >= 1_300
    assert people == list(others())
