"""A circle on the ground, drawn on the Mercator map of `students.plane`.

On an ellipsoidal Mercator map (EPSG:3395) a short distance is stretched by a factor that depends on the latitude
alone. Within a circle the factor stays between its values at the southern and the northern rim, so a distance on
the map tells between which two bounds the true one lies. Within 1 km at 41° north these are 27 cm apart: the map
decides about nearly everybody, and only the few in between are measured exactly.
"""

import math
from dataclasses import dataclass

A = 6_378_137.0  # WGS 84: equatorial radius in metres
E2 = 0.00669437999014  # and squared eccentricity
E = math.sqrt(E2)
SHORTEST_MERIDIAN_RADIUS = A * (1 - E2)
SLACK_M = 0.001  # more than any rounding on the map


def stretch(lat: float) -> float:
    sine = math.sin(math.radians(lat))
    return math.sqrt(1 - E2 * sine * sine) / math.cos(math.radians(lat))


@dataclass(frozen=True)
class Circle:
    lat: float
    lon: float
    radius_m: float

    @property
    def on_the_map(self) -> bool:
        """False near the poles and the date line, where the map tears; PostgreSQL then measures everybody."""
        rim = abs(self.lat) + self._rim_degrees
        return rim < 84.0 and abs(self.x) + self.outer < math.pi * A

    @property
    def x(self) -> float:
        return A * math.radians(self.lon)

    @property
    def y(self) -> float:
        lat = math.radians(self.lat)
        return A * (math.asinh(math.tan(lat)) - E * math.atanh(E * math.sin(lat)))

    @property
    def inner(self) -> float:
        """Whoever is nearer than this on the map is inside."""
        return self.radius_m * self._least - SLACK_M

    @property
    def outer(self) -> float:
        """Whoever is farther than this on the map is outside."""
        return self.radius_m * self._most + SLACK_M

    def least_ground(self, map_distance: float) -> float:
        """The true distance is not less than this."""
        return (map_distance - SLACK_M) / self._most

    @property
    def _rim_degrees(self) -> float:
        return math.degrees(self.radius_m / SHORTEST_MERIDIAN_RADIUS)

    @property
    def _least(self) -> float:
        return stretch(max(abs(self.lat) - self._rim_degrees, 0.0))

    @property
    def _most(self) -> float:
        return stretch(abs(self.lat) + self._rim_degrees)
