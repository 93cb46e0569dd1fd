"""The people of the demo city, made from a seed: the same seed makes the same people, and a larger number adds to them.

Names are Turkish, drawn from two lists. No phone number of Turkey begins with +90 000, so nobody can be called.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from app.jobs.city.town_plan import QUARTERS, Quarter, is_on_land
from app.users.models import LatLon, Role

_FIRST_NAMES = (
    "Ahmet Ali Arda Ayşe Ayşegül Aslı Başak Berat Burak Büşra Can Ceren Çağla Çağrı Defne Deniz Derya Duygu Ebru "
    "Ece Efe Elif Emine Emre Eylül Fatma Fırat Gizem Gökçe Gökhan Gül Gülşen Hasan Hatice Hüseyin Işıl İbrahim "
    "İlayda İpek İrem Kaan Kerem Leyla Mehmet Melis Mert Meryem Mustafa Nazlı Nesrin Nur Oğuz Onur Ömer Özge "
    "Özlem Pınar Selin Sevgi Sıla Şeyma Şule Tuğba Tuğçe Umut Ümit Yağmur Yiğit Yusuf Zehra Zeynep"
)
_LAST_NAMES = (
    "Acar Akgün Aksoy Aktaş Akın Arslan Aslan Aydın Ateş Avcı Başaran Bayrak Bulut Can Coşkun Çakır Çelik Çetin "
    "Çiftçi Demir Demirel Doğan Duman Durmaz Eren Erdoğan Ergün Gök Güler Gümüş Güneş Güngör Işık İnan Kahraman "
    "Kaplan Kara Karaca Kaya Keskin Kılıç Koç Korkmaz Köse Kurt Öz Özcan Özdemir Özer Özkan Öztürk Polat Sarı "
    "Şahin Şen Şimşek Tekin Toprak Turan Tunç Uçar Ünal Ünlü Yalçın Yavuz Yıldırım Yıldız Yılmaz Yiğit Yüksel"
)
FIRST_NAMES, LAST_NAMES = _FIRST_NAMES.split(), _LAST_NAMES.split()

METRES_PER_DEGREE = 111_320.0
FICTITIOUS = "+90000"
_SHARES = tuple(accumulate(quarter.people for quarter in QUARTERS))


@dataclass(frozen=True)
class Resident:
    key: str
    """Kept as the Firebase uid, where it is unique. It tells the people of this seed from all others."""
    role: Role
    name: str
    phone: str
    home: LatLon
    institution_id: int | None
    draw: float
    """Between 0 and 1; decides whether a student is on duty."""


def key_prefix(seed: int) -> str:
    return f"demo-city/{seed}/"


def residents(seed: int, role: Role, how_many: int, institutions: Sequence[int] = ()) -> Iterator[Resident]:
    # Each role has its own sequence, so that more students do not change the elders.
    draws = Random(f"{seed}/{role}")
    for number in range(1, how_many + 1):
        quarter = draws.choices(QUARTERS, cum_weights=_SHARES)[0]
        name = f"{draws.choice(FIRST_NAMES)} {draws.choice(LAST_NAMES)}"
        home = home_in(quarter, draws)
        # Drawn in any case, so that the institutions do not change the people.
        place, draw = draws.random(), draws.random()
        yield Resident(
            key=f"{key_prefix(seed)}{role.lower()}/{number}",
            role=role,
            name=name,
            phone=f"{FICTITIOUS}{1 if role is Role.ELDER else 2}{number:07}",
            home=home,
            institution_id=institutions[int(place * len(institutions))] if institutions else None,
            draw=draw,
        )


def home_in(quarter: Quarter, draws: Random) -> LatLon:
    """Near the middle of the quarter; drawn again while it is in the sea."""
    while True:
        north, east = (draws.gauss(0.0, quarter.spread_m / 2) for _ in range(2))
        lat = quarter.middle.lat + north / METRES_PER_DEGREE
        lon = quarter.middle.lon + east / (METRES_PER_DEGREE * math.cos(math.radians(quarter.middle.lat)))
        spot = LatLon(round(lat, 6), round(lon, 6))
        if is_on_land(spot):
            return spot
