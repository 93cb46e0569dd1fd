"""The people of the demo neighbourhood: the same ones in every copy.

The first of each role belong to whoever tries the demo, as the README does. They live around Ayşe's home in Caferağa,
so far from all others that no other elder's task reaches their students, and no other student is asked for Ayşe.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from app.jobs.city.residents import FICTITIOUS, FIRST_NAMES, LAST_NAMES, METRES_PER_DEGREE, Resident, home_in
from app.jobs.city.town_plan import QUARTERS
from app.users.models import LatLon, Role
from app.users.service import DEMO_COUNTS, DEMO_RESERVED, demo_key

HOME = LatLon(40.9870, 29.0280)
"""Ayşe's."""
INSTITUTION = 1
WITHOUT_INSTITUTION = 5
"""Every fifth elder belongs to none, so the coordinators of the institution see less than those of none."""
APART_M = 1_300
"""More than the radius of a search, so that nobody is reached who moves about a little."""
ON_DUTY = 0.85
SEED = "demo neighbourhood"


@dataclass(frozen=True)
class Neighbour:
    role: Role
    number: int
    name: str
    phone: str | None
    institution_id: int | None = INSTITUTION
    metres: float | None = None
    """A student's distance to the north of Ayşe's home; exactly this far, because the README says so."""

    @property
    def key(self) -> str:
        return demo_key(self.role, self.number)


YOURS = (
    Neighbour(Role.ADMIN, 1, "Yönetici", None, None),
    Neighbour(Role.COORDINATOR, 1, "Zeynep Koç", "+905550100001"),
    Neighbour(Role.ELDER, 1, "Ayşe Yılmaz", "+905550100002", metres=0),
    Neighbour(Role.ELDER, 2, "Hüseyin Öztürk", "+905550100003", metres=0),
    Neighbour(Role.STUDENT, 1, "Ahmet Çelik", "+905550100011", metres=120),
    Neighbour(Role.STUDENT, 2, "Berat Şahin", "+905550100012", metres=350),
    Neighbour(Role.STUDENT, 3, "Ceren Güneş", "+905550100013", metres=600),
    Neighbour(Role.STUDENT, 4, "Deniz Işık", "+905550100014", metres=900),
    Neighbour(Role.STUDENT, 5, "Emre Doğan", "+905550100015", metres=1600),
    Neighbour(Role.COORDINATOR, 2, "Selim Aydın", "+905550100005", None),
)
_ELSEWHERE = tuple(quarter for quarter in QUARTERS if quarter.middle.lon > 29.04)
_SHARES = tuple(accumulate(quarter.people for quarter in _ELSEWHERE))


def others() -> Iterator[Resident]:
    """The elders and students who live by themselves."""
    draws = Random(SEED)
    taken = {neighbour.name for neighbour in YOURS}
    for role in (Role.ELDER, Role.STUDENT):
        for number in range(DEMO_RESERVED[role] + 1, DEMO_COUNTS[role] + 1):
            name = _name(draws, taken)
            belongs = role is Role.STUDENT or number % WITHOUT_INSTITUTION
            yield Resident(
                key=demo_key(role, number),
                role=role,
                name=name,
                phone=f"{FICTITIOUS}{3 if role is Role.ELDER else 4}{number:07}",
                home=_home(draws),
                institution_id=INSTITUTION if belongs else None,
                draw=draws.random(),
            )
            taken.add(name)


def _name(draws: Random, taken: set[str]) -> str:
    while (name := f"{draws.choice(FIRST_NAMES)} {draws.choice(LAST_NAMES)}") in taken:
        pass
    return name


def _home(draws: Random) -> LatLon:
    while metres_from_yours(home := home_in(draws.choices(_ELSEWHERE, cum_weights=_SHARES)[0], draws)) < APART_M:
        pass
    return home


def metres_from_yours(spot: LatLon) -> float:
    """To the line from Ayşe's home to the north, on which those stand who are reserved."""
    north = (spot.lat - HOME.lat) * METRES_PER_DEGREE
    east = (spot.lon - HOME.lon) * METRES_PER_DEGREE * math.cos(math.radians(HOME.lat))
    last = max(neighbour.metres or 0 for neighbour in YOURS)
    return math.hypot(east, north - min(max(north, 0), last))
