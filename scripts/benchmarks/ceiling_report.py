"""The rows and notes of `ceiling`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks import ceiling_costs, least_sql
from benchmarks.bench import Bench
from benchmarks.ceiling_costs import CostFigures, Delay, PressCosts
from benchmarks.figures import number, spread
from benchmarks.overload import Level
from benchmarks.processor_time import API, BACKENDS, CLIENT, OTHERS, REDIS, ROLES, STRANGERS
from benchmarks.report import Row, Section
from benchmarks.wait_events import shares

OF_THE_SERVICE = (API, BACKENDS, OTHERS, REDIS)
TITLE = (
    "ceiling: presses a second that the api role accepts; floor: the least SQL by pgbench with as many clients; rival:"
    " the least SQL by psycopg from a bare Flask route, in the same server with as many processes"
)


@dataclass(frozen=True)
class GrowthRound:
    """One round with a number of connections."""

    ours: Level
    floor_per_s: float
    rival_per_s: float


@dataclass
class Growth:
    """With a number of processes: the rounds of each number of connections."""

    points: dict[int, list[GrowthRound]] = field(default_factory=dict[int, list[GrowthRound]])

    def add(self, connections: int, point: GrowthRound) -> None:
        self.points.setdefault(connections, []).append(point)

    def per_s(self, connections: int) -> float:
        return _mean([point.ours.a_second for point in self.points[connections]])

    @property
    def best(self) -> int:
        return max(self.points, key=self.per_s)


def section(bench: Bench, growth: Mapping[tuple[str, int], Growth], found: CostFigures) -> Section:
    rows = [_growth_row(placement, number, grown) for (placement, number), grown in growth.items()]
    notes = [
        f"{bench.size(1_000_000, 10_000):,} students; offers are ended between the rounds. PostgreSQL and Redis run on"
        " the cores of the service, and no matcher. The client is one event loop; pgbench runs where the client does.",
        *(_growth_note(placement, number, grown) for (placement, number), grown in growth.items()),
    ]
    return Section("ceiling", TITLE, [*rows, *cost_rows(found)], [*notes, *cost_notes(found)])


# ---- growth ----


def _growth_row(placement: str, processes: int, growth: Growth) -> Row:
    points = growth.points[growth.best]
    latencies = spread([ms for point in points for ms in point.ours.latencies_ms])
    rates = {
        "ours_per_s": [point.ours.a_second for point in points],
        "floor_per_s": [point.floor_per_s for point in points],
    }
    return Row(
        f"{placement}, {processes} process{'es' * (processes > 1)}: presses a second",
        _mean(rates["ours_per_s"]),
        _mean(rates["floor_per_s"]),
        _mean([point.rival_per_s for point in points]),
        facts=rates | {"connections": growth.best, "p50_ms": latencies.p50, "p99_ms": latencies.p99},
        more_is_better=True,
    )


def _growth_note(placement: str, processes: int, growth: Growth) -> str:
    def one(connections: int) -> str:
        points = growth.points[connections]
        latencies = spread([ms for point in points for ms in point.ours.latencies_ms])
        refused = sum(point.ours.refused for point in points)
        return (
            f"{connections}: {number(growth.per_s(connections))} ({latencies.shown()} ms; {refused} refused with 503)"
        )

    by_connections = ", ".join(one(connections) for connections in growth.points)
    return f"{placement}, {processes} process{'es' * (processes > 1)}; by connections: {by_connections}"


# ---- costs ----


def cost_rows(found: CostFigures) -> list[Row]:
    rows: list[Row] = []
    if found.ours:
        rows += [_time_row(role, found) for role in ROLES] + _wal_rows(found, found.ours)
    if found.round_trips:
        least = least_sql.costs(least_sql.PRESS).round_trips
        rows += [
            Row("round trips to PostgreSQL for a press", found.round_trips["PostgreSQL"], float(least)),
            Row("round trips to Redis for a press", found.round_trips["Redis"]),
        ]
    return rows


def _time_row(role: str, found: CostFigures) -> Row:
    """Ratios of the small ones would only be noise."""
    assert found.ours is not None, "rows are made of what was measured"
    floor = found.floor if role == BACKENDS else None
    rival = found.rival if role in (API, BACKENDS) else None
    return Row(
        f"processor time of a press, ms: {role}",
        used_ms(found.ours, role),
        floor and used_ms(floor, role),
        rival and used_ms(rival, role),
    )


def used_ms(costs: PressCosts, *roles: str) -> float:
    return sum(costs.spent.by_role[role].used_s for role in roles) * 1e3 / costs.presses


def _wal_rows(found: CostFigures, ours: PressCosts) -> list[Row]:
    def each(costs: PressCosts | None, of: str, unit: float) -> float | None:
        return costs and getattr(costs.written, of) / unit / costs.presses

    rows = [
        Row(name, each(ours, of, unit) or 0.0, each(found.floor, of, unit), each(found.rival, of, unit))
        for name, of, unit in (
            ("WAL of a press without page images, KB", "records", 1e3),
            ("commits of a press", "commits", 1),
        )
    ]
    # Floor and rival have not touched as many pages since the last checkpoint, so there is nothing to compare with.
    images = {
        "page images in it, KB": ours,
        "page images in it directly after a checkpoint, KB": found.after_checkpoint,
    }
    return rows + [Row(name, each(costs, "page_images", 1e3) or 0.0) for name, costs in images.items() if costs]


def cost_notes(found: CostFigures) -> list[str]:
    notes: list[str] = []
    if found.ours:
        notes += [_setup(), _busy(found.ours), _redis(found.ours)]
    if found.synced_presses and found.syncs.times:
        each_ms = found.syncs.took_ms / found.syncs.times
        per_press = found.syncs.times / found.synced_presses
        notes.append(f"fsyncs of WAL: {number(per_press)} for a press, {number(each_ms)} ms each.")
    if found.waits:
        notes.append(f"Backends that were not idle: {_listed(shares(found.waits))}.")
    notes += [_delay_note(delay_us, delay) for delay_us, delay in found.delays.items()]
    return [*notes, found.flame] if found.flame else notes


def _setup() -> str:
    return (
        f"The costs of a press are those of {ceiling_costs.API_PROCESSES} processes of the api and"
        f" {ceiling_costs.CONNECTIONS} connections; the client first on a core of its own."
    )


def _busy(ours: PressCosts) -> str:
    """Near 100 % the processor is the limit."""
    used, client, strangers = (
        sum(ours.spent.by_role[role].used_s for role in roles) / ours.spent.lasted_s
        for roles in (OF_THE_SERVICE, (CLIENT,), (STRANGERS,))
    )
    waited = ", ".join(
        f"{role} {number(ours.spent.by_role[role].waited_s * 1e3 / ours.presses)}" for role in OF_THE_SERVICE
    )
    return (
        f"The service used {used:.2f} cores, the client {client:.2f}, and {STRANGERS} {strangers:.2f}."
        f" Ready to run while others had the processor, ms for a press, summed over threads: {waited}."
    )


def _redis(ours: PressCosts) -> str:
    calls = {name: n / ours.presses for name, n in ours.written.redis_calls.items()}
    most = sorted(((name, n) for name, n in calls.items() if n >= 0.05), key=lambda one: -one[1])
    listed = ", ".join(f"{name} {number(n)}" for name, n in most)
    return f"Redis commands for a press, those in scripts too: {number(sum(calls.values()))} ({listed})."


def _listed(found: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in found)


def _delay_note(delay_us: int, delay: Delay) -> str:
    presses, commits, notifying = map(_mean, (delay.presses, delay.commits, delay.notifying))
    return (
        f"commit_delay {delay_us:,} µs: {number(presses)} presses a second; an INSERT by pgbench over"
        f" {ceiling_costs.CONNECTIONS} connections commits {number(commits)} times a second, with NOTIFY"
        f" {number(notifying)}."
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
