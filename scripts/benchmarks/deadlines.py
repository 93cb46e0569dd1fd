"""The time from the deadline of an offer to the committed next offer, with ten thousand to a million open offers and
their keys in Redis, of which a hundred to two thousand fall due each second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.redis_store import keys
from benchmarks import neighbourhoods
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.deadline_runs import RIVAL_PATIENCE_S, WARM_UP, DeadlineRuns
from benchmarks.figures import Spread, number, spread, spread_of_rounds
from benchmarks.replay import Template
from benchmarks.report import Row, Section
from benchmarks.roles import eventually

DATABASE = "deadlines"
GOAL_PER_SECOND = 1_000
GOAL_P99_MS, GOAL_TIMES_FLOOR = 10.0, 2.5

TITLE = (
    "deadlines: from an offer's deadline to the committed next offer, ms late, p50 / p99; floor: the same SQL by bare"
    " psycopg that has all deadlines in memory; rival: a Celery task with an ETA that runs the same SQL"
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
class Scenario:
    open_offers: int
    loads: tuple[Load, ...]

    @property
    def due(self) -> int:
        return WARM_UP + max(load.due for load in self.loads)

    @property
    def students_each(self) -> int:
        """In each round ours, the floor and perhaps the rival use up one student of each task. Three more are needed:
        for the first offer, for the template, and one who is left."""
        return 3 + sum(load.rounds * 2 + load.rival for load in self.loads)


SCENARIOS = (
    Scenario(10_000, (Load(100, 10), Load(2_000, 4))),
    Scenario(100_000, (Load(100, 10), Load(2_000, 4))),
    Scenario(1_000_000, (Load(100, 10, rival=True), Load(GOAL_PER_SECOND, 10, rounds=3, rival=True), Load(2_000, 4))),
)
QUICK = (Scenario(2_000, (Load(100, 2), Load(GOAL_PER_SECOND, 1, rival=True))),)


def measure(bench: Bench) -> Section:
    rows: list[Row] = []
    notes: list[str] = []
    with keeping(lambda: _section(rows, notes)):
        for scenario in QUICK if bench.quick else SCENARIOS:
            _measure_scenario(bench, scenario, rows, notes)
    return _section(rows, notes)


def _section(rows: Sequence[Row], notes: Sequence[str]) -> Section:
    about = (
        "Measured until another connection is notified of the commit. The first"
        f" {WARM_UP} offers warm the matcher up and are not counted. A next offer that never came counts as infinitely"
        " late."
    )
    return Section("deadlines", TITLE, rows, [*notes, about])


def _measure_scenario(bench: Bench, scenario: Scenario, rows: list[Row], notes: list[str]) -> None:
    bystanders = max(scenario.open_offers - scenario.due, 0)
    world = neighbourhoods.build(bench, DATABASE, scenario.due, scenario.students_each, bystanders)
    with bench.redis() as client:
        neighbourhoods.write_bystander_keys(world, client)
        client.set(keys.SENTINEL, "1")
        eventually(lambda: not int(client.info("persistence")["aof_rewrite_in_progress"]))
        runs = DeadlineRuns(bench, DATABASE, world, client)
        template = runs.template()
        for load in scenario.loads:
            _measure_load(bench, runs, template, scenario, load, rows)
        notes.append(
            f"{scenario.open_offers:,} open offers: the matcher uses {1e3 * runs.processor_s / runs.settled:.2f} ms of"
            " processor time for each offer that falls due."
        )
        if scenario is SCENARIOS[-1]:
            notes.append(_event_alone_note(runs, scenario))
    bench.drop(DATABASE)


def _measure_load(
    bench: Bench, runs: DeadlineRuns, template: Template, scenario: Scenario, load: Load, rows: list[Row]
) -> None:
    """Adds a row of the rounds that are complete, even if the next one fails, or the rival."""
    rounds: list[tuple[list[float], list[float]]] = []
    rival: Spread | None = None
    try:
        for turn in range(load.rounds):
            say(f"deadlines: {scenario.open_offers:,} open, {load.per_second:,}/s, round {turn + 1} of {load.rounds}")
            ours = runs.ours(load.due, load.per_second)
            rounds.append((ours, runs.floor(load.due, load.per_second, template)))
        if load.rival:
            rival = spread(runs.celery(load.due, load.per_second, template))
    finally:
        if rounds:
            rows.append(_row(bench, scenario, replace(load, rounds=len(rounds)), rounds, rival))


def _row(
    bench: Bench,
    scenario: Scenario,
    load: Load,
    rounds: Sequence[tuple[list[float], list[float]]],
    rival: Spread | None,
) -> Row:
    ours, floor = (spread_of_rounds(measured) for measured in zip(*rounds, strict=True))
    never = sum(math.isinf(late) for one, _ in rounds for late in one)
    row = Row(
        f"{scenario.open_offers:,} open, {load.per_second:,} a second for {load.seconds} s"
        + (f", {load.rounds} times" if load.rounds > 1 else ""),
        ours,
        floor,
        rival,
        facts={"ours_never_came": never},
    )
    if load.per_second != GOAL_PER_SECOND or rival is None:
        return row
    met = _is_met(ours, floor, rival) and not row.facts["ours_never_came"]
    goal = f"p99 ≤{GOAL_P99_MS:.0f} ms, ≤{GOAL_TIMES_FLOOR}x floor, < rival"
    return replace(row, goal=goal, met=None if bench.quick else met)


def _is_met(ours: Spread, floor: Spread, rival: Spread) -> bool:
    return ours.p99 <= GOAL_P99_MS and ours.p99 <= GOAL_TIMES_FLOOR * floor.p99 and ours.p99 < rival.p99


def _event_alone_note(runs: DeadlineRuns, scenario: Scenario) -> str:
    load = scenario.loads[0]
    say(f"deadlines: the expired event of Redis alone, {load.per_second} a second")
    late_ms = runs.event_alone(load.due, load.per_second)
    never = sum(map(math.isinf, late_ms))
    return (
        f"The expired event of Redis alone, {load.per_second} a second among {scenario.open_offers:,} keys: p50"
        f" {number(spread(late_ms).p50)} ms, p99 {number(spread(late_ms).p99)} ms; {never:,} of {len(late_ms):,} had"
        f" not come {RIVAL_PATIENCE_S:.0f} s after the last deadline."
    )
