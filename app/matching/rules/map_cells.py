"""Places snapped to the cells of a map, for everything from which a position must not follow.

What a student sees before accepting is computed from the cell of the elder, and what an elder sees of students from the
cells of the students. So the answers for two places in one cell are the same, however often and from wherever somebody
asks, and no average of them says more than the cell.

The map is that of `map_distance.py`. Its cells depend on nothing that a caller sends. On the ground a cell becomes
smaller towards the poles: in Turkey it is three quarters as long as on the equator.
"""

import math
from dataclasses import dataclass

from app.matching.rules.map_distance import A, E, northing, stretch
from app.users.models import LatLon

DISTANCE_STEP_M = 100
LAST_LATITUDE = 85.0
"""The map ends here, and so does `students.plane`."""


@dataclass(frozen=True)
class MapPoint:
    x: float
    y: float


def on_the_map(spot: LatLon) -> MapPoint:
    return MapPoint(A * math.radians(spot.lon), northing(max(-LAST_LATITUDE, min(LAST_LATITUDE, spot.lat))))


def middle_of_cell(point: MapPoint, cell_m: float) -> MapPoint:
    return MapPoint((math.floor(point.x / cell_m) + 0.5) * cell_m, (math.floor(point.y / cell_m) + 0.5) * cell_m)


def metres_between(one: MapPoint, other: MapPoint) -> float:
    """Right to a metre within 50 km."""
    around = 2 * math.pi * A
    return math.hypot(math.remainder(one.x - other.x, around), one.y - other.y) / _stretch_at((one.y + other.y) / 2)


def _stretch_at(y: float) -> float:
    latitude = 0.0
    for _ in range(6):  # Each round divides the error by 150.
        latitude = math.atan(math.sinh(y / A + E * math.atanh(E * math.sin(latitude))))
    return stretch(math.degrees(latitude))


def shown_distance_m(student: MapPoint, elder: LatLon, cell_m: float) -> float:
    """What a student sees: the distance between the two cells, in steps, rounded up."""
    metres = metres_between(middle_of_cell(student, cell_m), middle_of_cell(on_the_map(elder), cell_m))
    return max(1, math.ceil(metres / DISTANCE_STEP_M)) * float(DISTANCE_STEP_M)


def metres_to_cell(student: MapPoint, elder: LatLon, cell_m: float) -> float:
    """From the place of a student, who knows it, to the cell of an elder."""
    return metres_between(student, middle_of_cell(on_the_map(elder), cell_m))


def circle_of_cells(spot: LatLon, radius_m: float, cell_m: float) -> str:
    """The circle on the map, as PostgreSQL writes it, that holds the middles of all cells within the radius of the cell
    of this place."""
    middle = middle_of_cell(on_the_map(spot), cell_m)
    return f"<({middle.x!r},{middle.y!r}),{radius_m * _stretch_at(middle.y)!r}>"
