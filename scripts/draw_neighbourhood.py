#!/usr/bin/env python3
"""Draws Kadıköy for maps without tiles: `app/console/static/console/kadikoy.json`.

    .venv/bin/python scripts/draw_neighbourhood.py

The coast, the main streets and the parks are drawn by hand, from memory of the place: right within 200 m or so. Lanes
are made up: evenly spaced lines through each quarter, so that people do not stand in the middle of nothing. Points are
[latitude, longitude], as Leaflet takes them.
"""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from app.jobs.city.town_plan import QUARTERS, Quarter  # noqa: E402

DRAWING = ROOT / "app" / "console" / "static" / "console" / "kadikoy.json"
Point = tuple[float, float]
Line = Sequence[Point]

BOUNDS: tuple[Point, Point] = ((40.936, 28.995), (41.022, 29.135))
# From Harem in the north to Maltepe.
COAST: Line = (
    *((41.0400, 29.0180), (41.0250, 29.0085), (41.0180, 29.0068), (41.0125, 29.0078), (41.0095, 29.0098)),
    # The quays of the port.
    *((41.0082, 29.0092), (41.0070, 29.0118), (41.0050, 29.0112), (41.0043, 29.0135), (41.0022, 29.0125)),
    *((41.0014, 29.0152), (40.9990, 29.0145), (40.9982, 29.0172)),
    # The station of Haydarpaşa, and the harbour.
    *((40.9962, 29.0176), (40.9957, 29.0196), (40.9966, 29.0210), (40.9969, 29.0226), (40.9955, 29.0233)),
    *((40.9938, 29.0236), (40.9927, 29.0226), (40.9913, 29.0228), (40.9902, 29.0213), (40.9888, 29.0208)),
    # Moda.
    *((40.9868, 29.0204), (40.9846, 29.0199), (40.9826, 29.0201), (40.9808, 29.0212), (40.9793, 29.0230)),
    *((40.9782, 29.0248), (40.9775, 29.0270), (40.9780, 29.0288), (40.9793, 29.0305), (40.9806, 29.0326)),
    # The mouth of the Kurbağalıdere, and the bay of Kalamış.
    *((40.9812, 29.0342), (40.9808, 29.0352), (40.9797, 29.0362), (40.9783, 29.0380), (40.9767, 29.0386)),
    *((40.9750, 29.0379), (40.9734, 29.0371), (40.9720, 29.0360), (40.9712, 29.0345)),
    # The cape of Fenerbahçe.
    *((40.9704, 29.0330), (40.9691, 29.0318), (40.9682, 29.0330), (40.9679, 29.0352), (40.9681, 29.0380)),
    *((40.9683, 29.0405), (40.9678, 29.0440), (40.9672, 29.0475), (40.9669, 29.0520), (40.9659, 29.0560)),
    # Caddebostan, Suadiye, Bostancı, and on to Maltepe.
    *((40.9651, 29.0600), (40.9639, 29.0640), (40.9618, 29.0682), (40.9595, 29.0718), (40.9579, 29.0758)),
    *((40.9569, 29.0800), (40.9557, 29.0838), (40.9541, 29.0880), (40.9526, 29.0920), (40.9514, 29.0948)),
    *((40.9503, 29.0972), (40.9490, 29.1010), (40.9469, 29.1058), (40.9450, 29.1105), (40.9425, 29.1160)),
    *((40.9395, 29.1215), (40.9360, 29.1270), (40.9310, 29.1340), (40.9240, 29.1450)),
)
# Round the drawing, so that the coast closes to a polygon.
OPEN_SEA: Line = ((40.8800, 29.1450), (40.8800, 28.9000), (41.0400, 28.9000))
PIERS: Sequence[Line] = (
    ((41.0066, 29.0060), (41.0020, 29.0075), (40.9975, 29.0108), (40.9958, 29.0128)),
    ((40.9782, 29.0248), (40.9771, 29.0247)),
    ((40.9772, 29.0368), (40.9757, 29.0349), (40.9738, 29.0341), (40.9726, 29.0346)),
    ((40.9927, 29.0226), (40.9922, 29.0213)),
    ((40.9902, 29.0213), (40.9907, 29.0200)),
    ((40.9514, 29.0948), (40.9503, 29.0943)),
)
STREAM: Line = (
    *((40.9812, 29.0345), (40.9828, 29.0350), (40.9845, 29.0344), (40.9862, 29.0350), (40.9882, 29.0378)),
    *((40.9905, 29.0402), (40.9930, 29.0448), (40.9952, 29.0500), (40.9958, 29.0560), (40.9940, 29.0630)),
    *((40.9905, 29.0740), (40.9880, 29.0860)),
)
# Name, kind, line.
STREETS: Sequence[tuple[str, str, Line]] = (
    (
        "D-100",
        "motorway",
        (
            *((41.0125, 29.0110), (41.0100, 29.0190), (41.0055, 29.0260), (41.0030, 29.0340), (41.0015, 29.0430)),
            *((40.9992, 29.0530), (40.9965, 29.0620), (40.9925, 29.0720), (40.9875, 29.0830), (40.9825, 29.0930)),
            *((40.9765, 29.1020), (40.9690, 29.1110), (40.9600, 29.1205), (40.9500, 29.1320), (40.9440, 29.1400)),
        ),
    ),
    ("O-1", "motorway", ((40.9992, 29.0530), (41.0060, 29.0540), (41.0140, 29.0500), (41.0260, 29.0440))),
    ("O-4", "motorway", ((40.9825, 29.0930), (40.9870, 29.1010), (40.9900, 29.1120), (40.9930, 29.1300))),
    (
        "Bağdat Caddesi",
        "main",
        (
            *((40.9868, 29.0388), (40.9835, 29.0412), (40.9800, 29.0448), (40.9768, 29.0492), (40.9740, 29.0545)),
            *((40.9717, 29.0595), (40.9692, 29.0645), (40.9668, 29.0700), (40.9642, 29.0762), (40.9612, 29.0825)),
            *((40.9580, 29.0885), (40.9548, 29.0945), (40.9520, 29.1010), (40.9490, 29.1085), (40.9450, 29.1170)),
        ),
    ),
    (
        "Fahrettin Kerim Gökay Caddesi",
        "main",
        (
            *((40.9918, 29.0376), (40.9902, 29.0440), (40.9872, 29.0505), (40.9838, 29.0565), (40.9808, 29.0625)),
            *((40.9785, 29.0690), (40.9758, 29.0750)),
        ),
    ),
    (
        "Şemsettin Günaltay Caddesi",
        "main",
        ((40.9758, 29.0750), (40.9720, 29.0815), (40.9683, 29.0880), (40.9645, 29.0945), (40.9605, 29.1015)),
    ),
    ("Söğütlüçeşme Caddesi", "main", ((40.9912, 29.0238), (40.9904, 29.0292), (40.9908, 29.0335), (40.9918, 29.0376))),
    ("Rıhtım Caddesi", "main", ((40.9978, 29.0242), (40.9952, 29.0244), (40.9930, 29.0243), (40.9912, 29.0238))),
    ("Bahariye Caddesi", "main", ((40.9904, 29.0292), (40.9882, 29.0290), (40.9858, 29.0291), (40.9838, 29.0294))),
    (
        "Moda Caddesi",
        "main",
        ((40.9896, 29.0262), (40.9870, 29.0262), (40.9842, 29.0260), (40.9818, 29.0258), (40.9798, 29.0262)),
    ),
    (
        "Acıbadem Caddesi",
        "main",
        ((40.9968, 29.0345), (41.0000, 29.0415), (41.0030, 29.0470), (41.0062, 29.0520), (41.0092, 29.0590)),
    ),
    (
        "Kayışdağı Caddesi",
        "main",
        ((40.9808, 29.0625), (40.9825, 29.0720), (40.9822, 29.0820), (40.9820, 29.0930), (40.9815, 29.1060)),
    ),
    ("Mühürdar Caddesi", "street", ((40.9905, 29.0236), (40.9880, 29.0232), (40.9855, 29.0226), (40.9832, 29.0222))),
    ("Karakolhane Caddesi", "street", ((40.9918, 29.0262), (40.9942, 29.0268), (40.9965, 29.0285), (40.9985, 29.0305))),
    ("Dr. Esat Işık Caddesi", "street", ((40.9838, 29.0294), (40.9826, 29.0305), (40.9822, 29.0328))),
    ("Kuşdili Caddesi", "street", ((40.9904, 29.0292), (40.9885, 29.0325), (40.9868, 29.0362), (40.9868, 29.0388))),
    ("Recep Peker Caddesi", "street", ((40.9835, 29.0412), (40.9858, 29.0430), (40.9880, 29.0455), (40.9902, 29.0440))),
    ("Uzunçayır Caddesi", "street", ((40.9918, 29.0376), (40.9945, 29.0420), (40.9968, 29.0475), (40.9992, 29.0530))),
    ("Mandıra Caddesi", "street", ((40.9872, 29.0505), (40.9900, 29.0520), (40.9930, 29.0530), (40.9965, 29.0545))),
    ("Koşuyolu Caddesi", "street", ((41.0030, 29.0340), (41.0068, 29.0345), (41.0105, 29.0360), (41.0140, 29.0385))),
    (
        "Fener Kalamış Caddesi",
        "street",
        (
            *((40.9826, 29.0408), (40.9800, 29.0400), (40.9770, 29.0405), (40.9742, 29.0408), (40.9718, 29.0400)),
            *((40.9706, 29.0375), (40.9698, 29.0345)),
        ),
    ),
    (
        "Cemil Topuzlu Caddesi",
        "street",
        ((40.9718, 29.0400), (40.9716, 29.0450), (40.9708, 29.0505), (40.9696, 29.0560), (40.9676, 29.0615)),
    ),
    (
        "Sahil Yolu",
        "street",
        (
            *((40.9708, 29.0505), (40.9684, 29.0545), (40.9672, 29.0590), (40.9657, 29.0638), (40.9634, 29.0685)),
            *((40.9608, 29.0725), (40.9592, 29.0768), (40.9581, 29.0810), (40.9567, 29.0848), (40.9550, 29.0892)),
            *((40.9532, 29.0935), (40.9514, 29.0985), (40.9498, 29.1025), (40.9476, 29.1072), (40.9448, 29.1130)),
        ),
    ),
    ("Plaj Yolu", "street", ((40.9657, 29.0638), (40.9676, 29.0640), (40.9692, 29.0645))),
    (
        "Tütüncü Mehmet Efendi Caddesi",
        "street",
        ((40.9692, 29.0645), (40.9730, 29.0660), (40.9770, 29.0668), (40.9808, 29.0680), (40.9850, 29.0705)),
    ),
    (
        "Ethem Efendi Caddesi",
        "street",
        ((40.9668, 29.0700), (40.9700, 29.0722), (40.9730, 29.0738), (40.9758, 29.0750)),
    ),
    ("Atatürk Caddesi", "street", ((40.9758, 29.0750), (40.9790, 29.0800), (40.9822, 29.0850), (40.9850, 29.0880))),
    (
        "Noter Sokağı",
        "street",
        ((40.9642, 29.0762), (40.9672, 29.0790), (40.9700, 29.0800), (40.9720, 29.0815)),
    ),
    (
        "İnönü Caddesi",
        "street",
        ((40.9683, 29.0880), (40.9712, 29.0915), (40.9738, 29.0960), (40.9765, 29.1020)),
    ),
    (
        "Değirmen Yolu",
        "street",
        ((40.9605, 29.1015), (40.9640, 29.1035), (40.9668, 29.1065), (40.9690, 29.1110)),
    ),
    (
        "Tibbiye Caddesi",
        "street",
        ((40.9978, 29.0242), (41.0010, 29.0225), (41.0045, 29.0205), (41.0080, 29.0180), (41.0100, 29.0190)),
    ),
)
RAILWAY: Line = (
    *((40.9965, 29.0196), (40.9980, 29.0225), (40.9978, 29.0275), (40.9958, 29.0325), (40.9926, 29.0378)),
    *((40.9890, 29.0412), (40.9852, 29.0448), (40.9815, 29.0490), (40.9785, 29.0545), (40.9762, 29.0605)),
    *((40.9735, 29.0668), (40.9710, 29.0728), (40.9680, 29.0790), (40.9650, 29.0850), (40.9618, 29.0908)),
    *((40.9585, 29.0965), (40.9550, 29.1030), (40.9515, 29.1110), (40.9475, 29.1190)),
)
PARKS: Sequence[tuple[str, Line]] = (
    (
        "Yoğurtçu Parkı",
        ((40.9822, 29.0333), (40.9850, 29.0331), (40.9862, 29.0341), (40.9845, 29.0338), (40.9824, 29.0342)),
    ),
    (
        "Moda Sahili",
        (
            (40.9845, 29.0203),
            (40.9846, 29.0212),
            (40.9822, 29.0216),
            (40.9802, 29.0230),
            (40.9798, 29.0228),
            (40.9808, 29.0216),
            (40.9826, 29.0205),
        ),
    ),
    (
        "Fenerbahçe Parkı",
        ((40.9704, 29.0333), (40.9692, 29.0321), (40.9684, 29.0331), (40.9682, 29.0350), (40.9692, 29.0352)),
    ),
    ("Özgürlük Parkı", ((40.9782, 29.0515), (40.9796, 29.0535), (40.9778, 29.0562), (40.9758, 29.0548))),
    ("Göztepe 60. Yıl Parkı", ((40.9706, 29.0572), (40.9716, 29.0590), (40.9698, 29.0622), (40.9684, 29.0606))),
    (
        "Caddebostan Sahili",
        (
            (40.9669, 29.0545),
            (40.9682, 29.0546),
            (40.9669, 29.0590),
            (40.9654, 29.0637),
            (40.9632, 29.0682),
            (40.9622, 29.0680),
            (40.9641, 29.0640),
            (40.9653, 29.0600),
        ),
    ),
    (
        "Suadiye Sahili",
        (
            (40.9593, 29.0727),
            (40.9604, 29.0724),
            (40.9588, 29.0768),
            (40.9577, 29.0808),
            (40.9563, 29.0846),
            (40.9546, 29.0888),
            (40.9543, 29.0882),
            (40.9559, 29.0838),
            (40.9571, 29.0800),
            (40.9581, 29.0758),
        ),
    ),
    ("Haydarpaşa Çayırı", ((40.9992, 29.0200), (41.0022, 29.0185), (41.0032, 29.0205), (41.0002, 29.0222))),
    (
        "Karacaahmet",
        (
            (41.0075, 29.0225),
            (41.0118, 29.0195),
            (41.0165, 29.0215),
            (41.0168, 29.0280),
            (41.0120, 29.0300),
            (41.0080, 29.0275),
        ),
    ),
    (
        "Validebağ Korusu",
        ((41.0118, 29.0400), (41.0160, 29.0405), (41.0178, 29.0445), (41.0150, 29.0475), (41.0118, 29.0455)),
    ),
    ("Sahrayıcedit Mezarlığı", ((40.9856, 29.0775), (40.9876, 29.0770), (40.9878, 29.0805), (40.9858, 29.0810))),
    ("Şükrü Saracoğlu Stadı", ((40.9868, 29.0360), (40.9879, 29.0352), (40.9890, 29.0368), (40.9879, 29.0380))),
)
# Clockwise from north, in degrees: how the lanes of a quarter run.
DIRECTIONS = {
    "Caferağa": 2, "Moda": 0, "Osmanağa": 8, "Rasimpaşa": 28, "Hasanpaşa": 60, "Fikirtepe": 20, "Acıbadem": 55,
    "Koşuyolu": 10, "Feneryolu": 40, "Fenerbahçe": 5, "Göztepe": 30, "Caddebostan": 25, "Erenköy": 25,
    "Merdivenköy": 20, "Sahrayıcedit": 40, "Suadiye": 28, "Kozyatağı": 40, "Bostancı": 30,
}  # fmt: skip
METRES_PER_DEGREE = 111_320.0
LANES_APART_M = 130.0
LANE_STEP_M = 25.0
SHORTEST_LANE_M = 80.0
REACH = 1.8
"""Lanes go so much farther from the middle of a quarter than most of its people live."""


def is_inside(spot: Point, polygon: Line) -> bool:
    crossings = 0
    for one, next_ in zip(polygon, (*polygon[1:], polygon[0]), strict=True):
        if (one[1] > spot[1]) != (next_[1] > spot[1]):
            share = (spot[1] - one[1]) / (next_[1] - one[1])
            crossings += one[0] + share * (next_[0] - one[0]) > spot[0]
    return crossings % 2 == 1


def moved(spot: Point, north_m: float, east_m: float) -> Point:
    east = east_m / (METRES_PER_DEGREE * math.cos(math.radians(spot[0])))
    return spot[0] + north_m / METRES_PER_DEGREE, spot[1] + east


def distance_m(one: Point, other: Point) -> float:
    east = (one[1] - other[1]) * METRES_PER_DEGREE * math.cos(math.radians(one[0]))
    return math.hypot((one[0] - other[0]) * METRES_PER_DEGREE, east)


def middle_of(quarter: Quarter) -> Point:
    return quarter.middle.lat, quarter.middle.lon


def lanes_of(quarter: Quarter) -> Iterator[Line]:
    along = math.radians(DIRECTIONS[quarter.name])
    reach = quarter.spread_m * REACH
    count = int(reach / LANES_APART_M)
    for angle in (along, along + math.pi / 2):
        for number in range(-count, count + 1):
            yield from _pieces(quarter, angle, number * LANES_APART_M, reach)


def _pieces(quarter: Quarter, angle: float, aside_m: float, reach_m: float) -> Iterator[Line]:
    """The parts of one line that are on land and nearest to this quarter."""
    middle, piece = middle_of(quarter), list[Point]()
    steps = int(math.sqrt(max(reach_m**2 - aside_m**2, 0)) / LANE_STEP_M)
    for step in range(-steps, steps + 2):
        way_m = step * LANE_STEP_M
        north = math.cos(angle) * way_m - math.sin(angle) * aside_m
        east = math.sin(angle) * way_m + math.cos(angle) * aside_m
        spot = moved(middle, north, east)
        if step <= steps and _is_here(spot, quarter):
            piece.append(spot)
        elif piece:
            if distance_m(piece[0], piece[-1]) >= SHORTEST_LANE_M:
                yield piece[0], piece[-1]
            piece = []


def _is_here(spot: Point, quarter: Quarter) -> bool:
    nearest = min(QUARTERS, key=lambda other: distance_m(spot, middle_of(other)) / other.spread_m)
    greens = any(is_inside(spot, park) for _, park in PARKS)
    return nearest == quarter and not greens and not is_inside(spot, (*COAST, *OPEN_SEA))


def rounded(line: Line) -> list[list[float]]:
    return [[round(lat, 4), round(lon, 4)] for lat, lon in line]


def drawing() -> dict[str, object]:
    return {
        "bounds": rounded(BOUNDS),
        "sea": rounded((*COAST, *OPEN_SEA)),
        "stream": rounded(STREAM),
        "piers": [rounded(pier) for pier in PIERS],
        "railway": rounded(RAILWAY),
        "parks": [{"name": name, "area": rounded(area)} for name, area in PARKS],
        "streets": [{"name": name, "kind": kind, "line": rounded(line)} for name, kind, line in STREETS],
        "lanes": [rounded(lane) for quarter in QUARTERS for lane in lanes_of(quarter)],
        "quarters": [{"name": quarter.name, "at": rounded([middle_of(quarter)])[0]} for quarter in QUARTERS],
    }


def lines() -> str:
    """One part on each line, so that a change can be read."""
    parts = (
        f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False, separators=(',', ':'))}"
        for name, part in drawing().items()
    )
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    DRAWING.write_text(lines())
