"""From the deadline of an offer to the committed next one, while others are open: ten thousand to a million of them,
with their keys in Redis, a hundred to two thousand falling due in a second.
"""

import math
from dataclasses import dataclass, replace

from app.redis_store import keys
from benchmarks import neighbourhoods
from benchmarks.bench import Bench, say
from benchmarks.figures import Spread, number, spread
from benchmarks.replay import Template
from benchmarks.report import Row, Section
from benchmarks.roles import eventually
from benchmarks.stage import RIVAL_PATIENCE_S, WARM_UP, Stage

DATABASE = "deadlines"
GOAL_PER_SECOND = 1_000
GOAL_P99_MS, GOAL_TIMES_FLOOR = 10.0, 2.5

TITLE = (
    "deadlines: from an offer's deadline to the committed next offer, ms late, p50 / p99; floor: the same SQL by bare"
    " psycopg that knows all deadlines; rival: a Celery task with an ETA that runs the same SQL"
)


@dataclass(frozen=True)
class Load:
    per_second: int
    seconds: int
    rounds: int = 1
    rival: bool = False

    @property
    def due(self) -> int:
        return self.per_second * self.seconds


@dataclass(frozen=True)
class Scene:
    open_offers: int
    loads: tuple[Load, ...]

    @property
    def due(self) -> int:
        return WARM_UP + max(load.due for load in self.loads)

    @property
    def students_each(self) -> int:
        """Everybody who settles a round uses up one of each task's, besides the first, the template's and a last."""
        return 3 + sum(load.rounds * 2 + load.rival for load in self.loads)


SCENES = (
    Scene(10_000, (Load(100, 10), Load(2_000, 4))),
    Scene(100_000, (Load(100, 10), Load(2_000, 4))),
    Scene(1_000_000, (Load(100, 10, rival=True), Load(GOAL_PER_SECOND, 10, rounds=3, rival=True), Load(2_000, 4))),
)
QUICK = (Scene(2_000, (Load(100, 2), Load(GOAL_PER_SECOND, 1, rival=True))),)


def measure(bench: Bench) -> Section:
    rows: list[Row] = []
    notes: list[str] = []
    for scene in QUICK if bench.quick else SCENES:
        measured = _play(bench, scene)
        rows += measured[0]
        notes += measured[1]
    notes.append(
        "Measured until another connection hears of the commit. A matcher that has been running: its first"
        f" {WARM_UP} offers are not counted. What never came is infinitely late."
    )
    return Section("deadlines", TITLE, rows, notes)


def _play(bench: Bench, scene: Scene) -> tuple[list[Row], list[str]]:
    bystanders = max(scene.open_offers - scene.due, 0)
    world = neighbourhoods.build(bench, DATABASE, scene.due, scene.students_each, bystanders)
    with bench.redis() as client:
        neighbourhoods.show_bystanders(world, client)
        client.set(keys.SENTINEL, "1")
        eventually(lambda: not int(client.info("persistence")["aof_rewrite_in_progress"]))
        stage = Stage(bench, DATABASE, world, client)
        template = stage.template()
        rows = [_row(bench, stage, template, scene, load) for load in scene.loads]
        notes = [
            f"{scene.open_offers:,} open offers: the matcher uses {1e3 * stage.processor_s / stage.settled:.2f} ms of"
            " processor for each that is due."
        ]
        if scene is SCENES[-1]:
            notes.append(_beside_the_event_alone(stage, scene))
    bench.drop(DATABASE)
    return rows, notes


def _row(bench: Bench, stage: Stage, template: Template, scene: Scene, load: Load) -> Row:
    ours: list[float] = []
    floor: list[float] = []
    for turn in range(load.rounds):
        say(f"deadlines: {scene.open_offers:,} open, {load.per_second:,} a second, round {turn + 1} of {load.rounds}")
        ours += stage.ours(load.due, load.per_second)
        floor += stage.floor(load.due, load.per_second, template)
    rival = spread(stage.celery(load.due, load.per_second, template)) if load.rival else None
    row = Row(
        f"{scene.open_offers:,} open, {load.per_second:,} a second for {load.seconds} s"
        + (f", {load.rounds} times" if load.rounds > 1 else ""),
        spread(ours),
        spread(floor),
        rival,
        facts={"ours_never_came": sum(map(math.isinf, ours))},
    )
    if load.per_second != GOAL_PER_SECOND or rival is None:
        return row
    met = _is_met(spread(ours), spread(floor), rival) and not row.facts["ours_never_came"]
    goal = f"p99 ≤{GOAL_P99_MS:.0f} ms, ≤{GOAL_TIMES_FLOOR}x floor's, ahead of rival"
    return replace(row, goal=goal, met=None if bench.quick else met)


def _is_met(ours: Spread, floor: Spread, rival: Spread) -> bool:
    return ours.p99 <= GOAL_P99_MS and ours.p99 <= GOAL_TIMES_FLOOR * floor.p99 and ours.p99 < rival.p99


def _beside_the_event_alone(stage: Stage, scene: Scene) -> str:
    load = scene.loads[0]
    say(f"deadlines: Redis's event alone, {load.per_second} a second")
    late = stage.event_alone(load.due, load.per_second)
    never = sum(map(math.isinf, late))
    return (
        f"Redis's expired event alone, {load.per_second} a second among {scene.open_offers:,} keys: p50"
        f" {number(spread(late).p50)} ms, p99 {number(spread(late).p99)} ms; {never:,} of {len(late):,} had not come"
        f" {RIVAL_PATIENCE_S:.0f} s after the last deadline."
    )
