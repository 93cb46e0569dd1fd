"""The time from the deadline of an offer to the committed next offer, with ten thousand to a million open offers and
their keys in Redis, of which a hundred to two thousand fall due each second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import median

from app.redis_store import keys
from benchmarks import neighbourhoods
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.deadline_runs import RIVAL_PATIENCE_S, WARM_UP, DeadlineRuns, Lateness
from benchmarks.figures import Spread, number, spread, spread_of_rounds
from benchmarks.replay import Template
from benchmarks.report import Row, Section
from benchmarks.roles import eventually

DATABASE = "deadlines"
GOAL_P99_MS, GOAL_P99_TIMES_FLOOR = 10.0, 1.7
GOAL_P50_TIMES_FLOOR = 2.0
GOAL_GROWTH = 1.1
GOAL_PROCESSOR_MS = 1.5

TITLE = (
    "deadlines: from an offer's deadline to the committed next offer, ms late, p50 / p99, and ms of processor for each"
    " offer; floor: the same SQL by bare psycopg that has all deadlines in memory; rival: a Celery task with an ETA"
    " that runs the same SQL"
)


class Goal(Enum):
    """What is promised of the lateness under one load."""

    P99 = f"p99 ≤{GOAL_P99_MS:.0f} ms, or ≤{GOAL_P99_TIMES_FLOOR}x floor"
    P50 = f"p50 ≤{GOAL_P50_TIMES_FLOOR:.0f}x floor"

    def is_met(self, ours: Spread, floor: Spread) -> bool:
        if self is Goal.P50:
            return ours.p50 <= GOAL_P50_TIMES_FLOOR * floor.p50
        return ours.p99 <= max(GOAL_P99_MS, GOAL_P99_TIMES_FLOOR * floor.p99)


@dataclass(frozen=True)
class Load:
    per_second: int
    seconds: int
    rounds: int = 1
    rival: bool = False
    goal: "Goal | None" = None
    processor_goal: bool = False

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


FEW = (Load(100, 10), Load(2_000, 4))
MANY = (
    Load(100, 10, rival=True, processor_goal=True),
    Load(1_000, 10, rounds=3, rival=True, goal=Goal.P99),
    Load(2_000, 4, goal=Goal.P50),
)
SCENARIOS = (Scenario(10_000, FEW), Scenario(100_000, FEW), Scenario(1_000_000, MANY))
QUICK = (
    Scenario(1_000, (Load(100, 2),)),
    Scenario(2_000, (Load(100, 2, processor_goal=True), Load(1_000, 1, rival=True, goal=Goal.P99))),
)


@dataclass(frozen=True)
class Rounds:
    """What was measured under one load: ours and the floor in turns, and the rival."""

    ours: Sequence[Lateness]
    floor: Sequence[Lateness]
    rival: Sequence[float] | None = None

    @property
    def spreads(self) -> tuple[Spread, Spread]:
        ours, floor = (spread_of_rounds([one.ms for one in rounds]) for rounds in (self.ours, self.floor))
        return ours, floor

    @property
    def processor_ms(self) -> tuple[float, float]:
        ours, floor = (median(one.processor_ms for one in rounds) for rounds in (self.ours, self.floor))
        return ours, floor


Measured = dict[tuple[Scenario, Load], Rounds]


def measure(bench: Bench) -> Section:
    measured: Measured = {}
    notes: list[str] = []
    with keeping(lambda: _section(bench, measured, notes)):
        for scenario in QUICK if bench.quick else SCENARIOS:
            _measure_scenario(bench, scenario, measured, notes)
    return _section(bench, measured, notes)


def _section(bench: Bench, measured: Measured, notes: Sequence[str]) -> Section:
    about = (
        "Measured until another connection is notified of the commit. The first"
        f" {WARM_UP} offers warm the matcher up and are not counted. A next offer that never came counts as infinitely"
        " late."
    )
    late = [_row(*key, rounds) for key, rounds in measured.items()]
    processor = [_processor_row(*key, rounds) for key, rounds in measured.items()]
    rows = [*late, *_growth_rows(measured), *processor]
    # Small sizes say nothing about a goal.
    return Section(
        "deadlines", TITLE, [replace(row, met=None) for row in rows] if bench.quick else rows, [*notes, about]
    )


def _measure_scenario(bench: Bench, scenario: Scenario, measured: Measured, notes: list[str]) -> None:
    bystanders = max(scenario.open_offers - scenario.due, 0)
    world = neighbourhoods.build(bench, DATABASE, scenario.due, scenario.students_each, bystanders)
    with bench.redis() as client:
        neighbourhoods.write_bystander_keys(world, client)
        client.set(keys.SENTINEL, "1")
        eventually(lambda: not int(client.info("persistence")["aof_rewrite_in_progress"]))
        runs = DeadlineRuns(bench, DATABASE, world, client)
        template = runs.template()
        for load in scenario.loads:
            _measure_load(runs, template, scenario, load, measured)
        if scenario is SCENARIOS[-1]:
            notes.append(_event_alone_note(runs, scenario))
    bench.drop(DATABASE)


def _measure_load(runs: DeadlineRuns, template: Template, scenario: Scenario, load: Load, measured: Measured) -> None:
    """Keeps the rounds that are complete, even if the next one fails, or the rival."""
    rounds = Rounds((), ())
    for turn in range(load.rounds):
        say(f"deadlines: {scenario.open_offers:,} open, {load.per_second:,}/s, round {turn + 1} of {load.rounds}")
        ours = runs.ours(load.due, load.per_second)
        floor = runs.floor(load.due, load.per_second, template)
        measured[scenario, load] = rounds = Rounds([*rounds.ours, ours], [*rounds.floor, floor])
    if load.rival:
        measured[scenario, load] = replace(rounds, rival=runs.celery(load.due, load.per_second, template))


def _row(scenario: Scenario, load: Load, rounds: Rounds) -> Row:
    ours, floor = rounds.spreads
    never = sum(math.isinf(late) for one in rounds.ours for late in one.ms)
    times = f", {len(rounds.ours)} times" if len(rounds.ours) > 1 else ""
    row = Row(
        f"{scenario.open_offers:,} open, {load.per_second:,} a second for {load.seconds} s{times}",
        ours,
        floor,
        None if rounds.rival is None else spread(rounds.rival),
        facts={"ours_never_came": never},
    )
    if load.goal is None:
        return row
    return replace(row, goal=load.goal.value, met=load.goal.is_met(ours, floor) and not never)


def _processor_row(scenario: Scenario, load: Load, rounds: Rounds) -> Row:
    ours, floor = rounds.processor_ms
    row = Row(
        f"processor of the matcher for each offer, {load.per_second:,} a second of {scenario.open_offers:,}",
        ours,
        floor,
    )
    return replace(row, goal=f"<{GOAL_PROCESSOR_MS} ms", met=ours < GOAL_PROCESSOR_MS) if load.processor_goal else row


def _growth_rows(measured: Measured) -> list[Row]:
    """The median lateness with the most open offers, by that with the fewest."""
    by_rate: dict[int, list[tuple[Scenario, Rounds]]] = {}
    for (scenario, load), rounds in measured.items():
        by_rate.setdefault(load.per_second, []).append((scenario, rounds))
    return [_growth_row(per_second, *found[0], *found[-1]) for per_second, found in by_rate.items() if len(found) > 1]


def _growth_row(per_second: int, few: Scenario, fewest: Rounds, many: Scenario, most: Rounds) -> Row:
    """The machine may be slower in the minutes of one scenario than in those of the other, and the floor with it."""
    ours, floor = (last.p50 / first.p50 for first, last in zip(fewest.spreads, most.spreads, strict=True))
    return Row(
        f"times as late with {many.open_offers:,} open as with {few.open_offers:,}, {per_second:,} a second, p50",
        ours,
        floor,
        goal=f"≤{GOAL_GROWTH}, or ≤{GOAL_GROWTH}x floor",
        met=ours <= GOAL_GROWTH * max(1.0, floor),
    )


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
