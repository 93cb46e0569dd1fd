"""A circle on the ground, on the Mercator map of `students.plane`.

An ellipsoidal Mercator map (EPSG:3395) stretches a short distance by a factor that depends on the latitude alone.
The factor halfway between two places turns their distance on the map into metres. Within a kilometre the error is
micrometres; it grows with the cube of the distance and has a known bound. If two distances differ by less than that
bound, their order on the map is in doubt, and PostGIS measures them.
"""

import math
from dataclasses import dataclass

A = 6_378_137.0  # WGS 84: equatorial radius in metres
E2 = 0.00669437999014  # WGS 84: squared eccentricity
E = math.sqrt(E2)
SHORTEST_MERIDIAN_RADIUS = A * (1 - E2)
SLACK_M = 0.001  # added to the radius of the search: more than any rounding on the map
ROUNDING_M = 1e-6
HALF_SPAN_DEGREES = 0.001


def stretch(lat: float) -> float:
    sine = math.sin(math.radians(lat))
    return math.sqrt(1 - E2 * sine * sine) / math.cos(math.radians(lat))


def northing(lat: float) -> float:
    radians = math.radians(lat)
    return A * (math.asinh(math.tan(radians)) - E * math.atanh(E * math.sin(radians)))


@dataclass(frozen=True)
class SearchCircle:
    lat: float
    lon: float
    radius_m: float

    @property
    def on_the_map(self) -> bool:
        """False near the poles and the date line, where the map ends. PostgreSQL then measures all students."""
        rim = abs(self.lat) + self._rim_degrees
        return rim < 84.0 and abs(self.x) + self.outer < math.pi * A

    @property
    def x(self) -> float:
        return A * math.radians(self.lon)

    @property
    def y(self) -> float:
        return northing(self.lat)

    @property
    def outer(self) -> float:
        """The radius on the map, in units of the map. Every place outside it is outside the circle on the ground."""
        return self.radius_m * stretch(abs(self.lat) + self._rim_degrees) + SLACK_M

    @property
    def halfway_stretch(self) -> tuple[float, float]:
        """(a, b): the factor halfway between the centre and a place at `y` on the map is a + b * y."""
        south, north = self.lat - HALF_SPAN_DEGREES, self.lat + HALF_SPAN_DEGREES
        slope = (stretch(north) - stretch(south)) / (northing(north) - northing(south))
        return stretch(self.lat) - slope * self.y / 2, slope / 2

    @property
    def doubt_m(self) -> float:
        """Within the circle, a distance from the map differs from the true distance by less than this.

        The greatest term that the halfway factor leaves out is d³/6a² at the equator. The share of the other terms
        grows with tan² of the latitude, at less than a tenth. A quarter in place of the sixth is more than all of them.
        """
        return self.radius_m**3 / (4 * A * A * math.cos(math.radians(self.lat)) ** 2) + ROUNDING_M

    @property
    def _rim_degrees(self) -> float:
        return math.degrees(self.radius_m / SHORTEST_MERIDIAN_RADIUS)
