"""The only matcher is killed, and offers fall due while there is none: how long until a new one has caught up?"""

import math

from app.redis_store import keys
from benchmarks import neighbourhoods
from benchmarks.bench import Bench, say
from benchmarks.figures import spread
from benchmarks.report import Row, Section
from benchmarks.stage import WARM_UP, Stage

DATABASE = "recovery"
MARGIN = 500
"""So many more fall due than are wanted overdue, because some are settled before the matcher is killed."""

TITLE = (
    "recovery: from a new matcher's first sign of life to the next offer of each overdue task, s, p50 / p99; floor: as"
    " many settled by bare psycopg"
)


def measure(bench: Bench) -> Section:
    overdue = bench.size(5_000, 300)
    world = neighbourhoods.build(bench, DATABASE, overdue + MARGIN + WARM_UP, 6)
    with bench.redis() as client:
        client.set(keys.SENTINEL, "1")
        stage = Stage(bench, DATABASE, world, client)
        floor = spread(stage.bare_recovery(overdue, stage.template()))
        rows: list[Row] = []
        for emptied, goal_s in ((False, 2.0), (True, 10.0)):
            name = "Redis came back empty" if emptied else "its lists are alive"
            say(f"recovery: {name}")
            took = stage.after_a_crash(overdue + MARGIN, emptied=emptied)
            lost = sum(map(math.isinf, took))
            met = len(took) >= overdue and not lost and max(took) < goal_s
            rows.append(
                Row(
                    f"{len(took):,} overdue, {name}, last {max(took):.2f} s, lost {lost}",
                    spread(took),
                    floor,
                    goal=f"last <{goal_s:.0f} s, lost 0",
                    met=None if bench.quick else met,
                    facts={"lost": lost, "last_s": max(took)},
                )
            )
    bench.drop(DATABASE)
    return Section("recovery", TITLE, rows, [f"The floor settled its last after {floor.most:.2f} s."])
