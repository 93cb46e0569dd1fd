"""The only matcher is killed and offers fall due: how long a new matcher takes to handle them all."""

import math

from app.redis_store import keys
from benchmarks import neighbourhoods
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.deadline_runs import WARM_UP, DeadlineRuns
from benchmarks.figures import spread
from benchmarks.report import Row, Section

DATABASE = "recovery"
MARGIN = 500
"""Additional offers, because some are handled before the matcher is killed."""

TITLE = (
    "recovery: from the log line that a new matcher is ready to the next offer of each overdue task, s, p50 / p99;"
    " floor: as many settled by bare psycopg"
)


def measure(bench: Bench) -> Section:
    overdue = bench.size(5_000, 300)
    world = neighbourhoods.build(bench, DATABASE, overdue + MARGIN + WARM_UP, 6)
    rows: list[Row] = []
    notes: list[str] = []

    def section() -> Section:
        return Section("recovery", TITLE, rows, notes)

    with keeping(section), bench.redis() as client:
        client.set(keys.SENTINEL, "1")
        runs = DeadlineRuns(bench, DATABASE, world, client)
        floor = spread(runs.bare_recovery(overdue, runs.template()))
        notes.append(f"The floor settled its last task after {floor.most:.2f} s.")
        for emptied, goal_s in ((False, 2.0), (True, 10.0)):
            name = "Redis came back empty" if emptied else "Redis kept its lists"
            say(f"recovery: {name}")
            took = runs.after_a_crash(overdue + MARGIN, emptied=emptied)
            lost = sum(map(math.isinf, took))
            met = len(took) >= overdue and not lost and max(took) < goal_s
            rows.append(
                Row(
                    name,
                    spread(took),
                    floor,
                    goal=f"last <{goal_s:.0f} s, lost 0",
                    met=None if bench.quick else met,
                    facts={"lost": lost, "last_s": max(took)},
                    more=f"{len(took):,} overdue, last {max(took):.2f} s, lost {lost}",
                )
            )
    bench.drop(DATABASE)
    return section()
