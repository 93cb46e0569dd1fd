"""The neighbourhoods of the demo city: the coast of Kadıköy, dense at the ferry and thinner inland."""

from dataclasses import dataclass

from app.users.models import LatLon


@dataclass(frozen=True)
class Quarter:
    name: str
    middle: LatLon
    spread_m: float
    """Most people live within this distance of the middle, on each axis."""
    people: int
    """Its share of the people, relative to the other quarters."""


QUARTERS = (
    Quarter("Caferağa", LatLon(40.9868, 29.0275), 380, 12),
    Quarter("Moda", LatLon(40.9815, 29.0268), 330, 10),
    Quarter("Osmanağa", LatLon(40.9905, 29.0300), 350, 9),
    Quarter("Rasimpaşa", LatLon(40.9965, 29.0305), 400, 9),
    Quarter("Hasanpaşa", LatLon(40.9962, 29.0430), 450, 6),
    Quarter("Fikirtepe", LatLon(40.9930, 29.0530), 450, 6),
    Quarter("Acıbadem", LatLon(41.0030, 29.0460), 600, 4),
    Quarter("Koşuyolu", LatLon(41.0090, 29.0360), 500, 3),
    Quarter("Feneryolu", LatLon(40.9795, 29.0490), 450, 6),
    Quarter("Fenerbahçe", LatLon(40.9710, 29.0420), 420, 3),
    Quarter("Göztepe", LatLon(40.9785, 29.0620), 600, 7),
    Quarter("Caddebostan", LatLon(40.9690, 29.0630), 500, 4),
    Quarter("Erenköy", LatLon(40.9725, 29.0760), 600, 5),
    Quarter("Merdivenköy", LatLon(40.9865, 29.0710), 600, 5),
    Quarter("Sahrayıcedit", LatLon(40.9855, 29.0860), 600, 4),
    Quarter("Suadiye", LatLon(40.9625, 29.0830), 500, 3),
    Quarter("Kozyatağı", LatLon(40.9730, 29.0970), 800, 3),
    Quarter("Bostancı", LatLon(40.9580, 29.0960), 600, 3),
)

# Drawn on the map a little inside the real coast, from Haydarpaşa south along the water and back inland. Straight lines
# are enough to keep people out of the sea.
LAND = (
    LatLon(41.0030, 29.0175),
    LatLon(40.9955, 29.0225),
    LatLon(40.9905, 29.0240),
    LatLon(40.9860, 29.0230),
    LatLon(40.9800, 29.0235),
    LatLon(40.9785, 29.0275),
    LatLon(40.9810, 29.0340),
    LatLon(40.9780, 29.0400),
    LatLon(40.9720, 29.0380),
    LatLon(40.9690, 29.0370),
    LatLon(40.9685, 29.0460),
    LatLon(40.9665, 29.0600),
    LatLon(40.9605, 29.0740),
    LatLon(40.9570, 29.0850),
    LatLon(40.9535, 29.0940),
    LatLon(40.9480, 29.1060),
    LatLon(40.9600, 29.1250),
    LatLon(41.0250, 29.0700),
    LatLon(41.0250, 29.0300),
)


def is_on_land(spot: LatLon) -> bool:
    """True inside the polygon: a line from the spot to the north crosses its border an odd number of times."""
    crossings = 0
    for one, next_ in zip(LAND, (*LAND[1:], LAND[0]), strict=True):
        if (one.lon > spot.lon) != (next_.lon > spot.lon):
            share = (spot.lon - one.lon) / (next_.lon - one.lon)
            crossings += one.lat + share * (next_.lat - one.lat) > spot.lat
    return crossings % 2 == 1
